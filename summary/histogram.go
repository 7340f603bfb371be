package summary

import (
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// Histogram counts values in buckets. Bucket i counts the values v with Limits[i-1] <= v <
// Limits[i].
type Histogram struct {
	Min, Max   float64 // of the values; without values the largest and smallest float64
	Count      float64 // number of values
	Sum        float64 // of the values
	SumSquares float64 // sum of the squares of the values
	Limits     []float64
	Buckets    []float64 // counts, one for each limit
}

// defaultLimits returns TensorFlow's limits: powers of 1.1 from 1e-12 to 1e20 on both sides of
// zero.
var defaultLimits = sync.OnceValue(func() []float64 {
	var positive []float64
	for v := 1e-12; v < 1e20; v *= 1.1 {
		positive = append(positive, v)
	}
	positive = append(positive, math.MaxFloat64)
	limits := make([]float64, 0, 2*len(positive)+1)
	for _, v := range slices.Backward(positive) {
		limits = append(limits, -v)
	}
	return append(append(limits, 0), positive...)
})

// NewHistogram counts values in TensorFlow's buckets. It merges adjacent empty buckets.
func NewHistogram(values []float64) Histogram {
	var b HistogramBuilder
	for _, v := range values {
		b.Add(v)
	}
	return b.Histogram()
}

// HistogramBuilder counts values in TensorFlow's buckets one after the other. The zero value has
// counted none. It is not safe for concurrent use.
type HistogramBuilder struct {
	counts []float64 // one for each default limit; nil before the first value
	total  Histogram // without limits and buckets
}

// Add counts a value.
func (b *HistogramBuilder) Add(v float64) {
	limits, h := defaultLimits(), &b.total
	if b.counts == nil {
		b.counts = make([]float64, len(limits))
		h.Min, h.Max = math.MaxFloat64, -math.MaxFloat64
	}
	at := sort.Search(len(limits), func(i int) bool { return limits[i] > v })
	b.counts[min(at, len(b.counts)-1)]++
	h.Min, h.Max = min(h.Min, v), max(h.Max, v)
	h.Count++
	h.Sum += v
	h.SumSquares += v * v
}

// Histogram returns the counts so far. It merges adjacent empty buckets.
func (b *HistogramBuilder) Histogram() Histogram {
	limits, counts, h := defaultLimits(), b.counts, b.total
	if counts == nil {
		return Histogram{
			Min: math.MaxFloat64, Max: -math.MaxFloat64,
			Limits: []float64{math.MaxFloat64}, Buckets: []float64{0},
		}
	}
	for i := 0; i < len(limits); i++ {
		count := counts[i]
		for count == 0 && i+1 < len(limits) && counts[i+1] == 0 {
			i++
		}
		h.Limits, h.Buckets = append(h.Limits, limits[i]), append(h.Buckets, count)
	}
	return h
}

func (h *Histogram) toProto() *pb.HistogramProto {
	return &pb.HistogramProto{
		Min: h.Min, Max: h.Max, Num: h.Count, Sum: h.Sum, SumSquares: h.SumSquares, BucketLimit: h.Limits, Bucket: h.Buckets,
	}
}

func histogramFromProto(p *pb.HistogramProto) Histogram {
	return Histogram{
		Min: p.GetMin(), Max: p.GetMax(), Count: p.GetNum(), Sum: p.GetSum(), SumSquares: p.GetSumSquares(),
		Limits: p.GetBucketLimit(), Buckets: p.GetBucket(),
	}
}
