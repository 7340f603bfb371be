package metrics_test

import (
	"math"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/test/recorded"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// metricCase is what Keras computes after each of several batches.
type metricCase struct {
	Name    string
	Batches []struct {
		Labels, Predictions, Result recorded.Array
		Weights                     *recorded.Array
	}
}

var all = map[string]train.Metric{
	"accuracy":                         metrics.Accuracy{},
	"accuracy weighted":                metrics.Accuracy{},
	"binary accuracy":                  metrics.BinaryAccuracy{},
	"binary accuracy weighted":         metrics.BinaryAccuracy{},
	"categorical accuracy":             metrics.CategoricalAccuracy{},
	"sparse accuracy":                  metrics.SparseCategoricalAccuracy{},
	"sparse accuracy weighted":         metrics.SparseCategoricalAccuracy{},
	"top k":                            metrics.TopK{K: 2},
	"sparse top k":                     metrics.TopK{K: 2},
	"precision":                        metrics.Precision{},
	"precision weighted":               metrics.Precision{},
	"precision thresholds":             metrics.Precision{Threshold: 0.3},
	"recall":                           metrics.Recall{},
	"recall weighted":                  metrics.Recall{},
	"auc":                              metrics.AUC{},
	"auc weighted":                     metrics.AUC{},
	"auc pr":                           metrics.AUC{Curve: metrics.PR},
	"auc few thresholds":               metrics.AUC{Thresholds: 11},
	"f1 micro":                         metrics.F1Score{Average: metrics.Micro},
	"f1 macro":                         metrics.F1Score{Threshold: 0.5},
	"f1 weighted":                      metrics.F1Score{Average: metrics.Weighted, Threshold: 0.5},
	"mean squared error":               metrics.MeanSquaredError{},
	"root mean squared error":          metrics.RootMeanSquaredError{},
	"root mean squared error weighted": metrics.RootMeanSquaredError{},
	"mean absolute error":              metrics.MeanAbsoluteError{},
	"mean absolute error weighted":     metrics.MeanAbsoluteError{},
	"mean absolute percentage error":   metrics.MeanAbsolutePercentageError{},
	"mean squared logarithmic error":   metrics.MeanSquaredLogarithmicError{},
	"r2":                               metrics.R2Score{},
	"r2 weighted":                      metrics.R2Score{},
	"mean iou":                         metrics.MeanIoU{Classes: 4},
}

// TestMetrics compares results after each batch with those of Keras, once for one stream and once
// for two workers whose totals are merged.
func TestMetrics(t *testing.T) {
	for _, tt := range recorded.Read[metricCase](t, "testdata/metrics.json") {
		t.Run(tt.Name, func(t *testing.T) {
			metric := all[tt.Name]
			if metric == nil {
				t.Fatal("there is no such metric")
			}
			stream := metrics.Counter{Metric: metric}
			workers := [2]metrics.Counter{{Metric: metric}, {Metric: metric}}
			for i, b := range tt.Batches {
				sums := run(t, metric, b.Labels.Tensor(t), b.Predictions.Tensor(t), b.Weights)
				stream.Add(sums)
				workers[i%2].Add(sums)
				want := b.Result.Floats()[0]
				if got := stream.Result(); math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
					t.Errorf("after batch %d: got %v, want %v", i, got, want)
				}
			}
			workers[0].Merge(&workers[1])
			if got, want := workers[0].Result(), stream.Result(); math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
				t.Errorf("two workers: got %v, want %v", got, want)
			}
		})
	}
}

// run returns the sums of a batch.
func run(t *testing.T, m train.Metric, labels, predictions tensor.Tensor, w *recorded.Array) []float64 {
	t.Helper()
	s := op.NewScope()
	weights := op.Output{}
	if w != nil {
		weights = op.Const(s, w.Tensor(t))
	}
	sums := m.Sums(s, op.Const(s, labels), op.Const(s, predictions), weights)
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	out, err := sess.Fetch(t.Context(), nil, sums)
	if err != nil {
		t.Fatal(err)
	}
	return tensor.Values[float64](&out[0])
}

func TestConfusionMatrix(t *testing.T) {
	m := metrics.ConfusionMatrix{Classes: 3}
	scores, err := tensor.New([][]float32{{.9, .1, 0}, {0, .8, .2}, {.1, .7, .2}, {0, .1, .9}})
	if err != nil {
		t.Fatal(err)
	}
	sums := run(t, m, tensor.Vector[int32](0, 1, 2, 2), scores, nil)
	if got := m.Result(sums); got != 0.75 {
		t.Errorf("the accuracy is %v, want 0.75", got)
	}
	rows := m.Matrix(sums)
	if rows[0][0] != 1 || rows[1][1] != 1 || rows[2][1] != 1 || rows[2][2] != 1 || rows[0][1] != 0 {
		t.Errorf("the matrix is %v", rows)
	}
}

func TestEmptyCounter(t *testing.T) {
	c := metrics.Counter{Metric: metrics.Accuracy{}}
	c.Merge(&metrics.Counter{Metric: metrics.Accuracy{}})
	if got := c.Result(); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}
