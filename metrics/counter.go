package metrics

import "github.com/weft-ml/weft/train"

// Counter adds up the sums of a metric. It must not be used concurrently.
type Counter struct {
	Metric train.Metric
	Total  []float64 // nil before the first sums
}

// Add adds the sums of a batch.
func (c *Counter) Add(sums []float64) {
	if c.Total == nil {
		c.Total = make([]float64, len(sums))
	}
	for i, v := range sums {
		c.Total[i] += v
	}
}

// Merge adds the total of another counter of the same metric, such as that of another worker.
func (c *Counter) Merge(other *Counter) {
	if other.Total != nil {
		c.Add(other.Total)
	}
}

// Reset forgets all sums.
func (c *Counter) Reset() { c.Total = nil }

// Result returns the metric for all sums; 0 if there are none.
func (c *Counter) Result() float64 {
	if c.Total == nil {
		return 0
	}
	return c.Metric.Result(c.Total)
}
