// Package metrics measures predictions: accuracy, precision, recall, areas under curves, confusion
// and errors of regressions. Names and numbers are those of Keras.
//
// A metric adds a small vector of sums to a graph for each batch. The sums of all batches, and of
// all workers, add up to a total, from which the result is computed. [train.Fit] does so for the
// metrics of a model:
//
//	m := &nn.Model{…, Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}, metrics.TopK{K: 5}}}
//
// A program with steps of its own fetches the sums and adds them to a [Counter]:
//
//	sums := metric.Sums(s, labels, predictions, op.Output{})
//	counter := metrics.Counter{Metric: metric}
//	for … {
//		out, err := sess.Fetch(ctx, feeds, sums)
//		…
//		counter.Add(tensor.Values[float64](&out[0]))
//	}
//	counter.Merge(ofAnotherWorker)
//	fmt.Println(counter.Result())
//
// Weights have shape [batch]. Results of no elements are 0.
package metrics
