package data

import (
	"maps"
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, prefix := range []string{"", "Experimental"} {
		kernel.RegisterNew(opdef.Def{
			Name: prefix + "StatsAggregatorHandle", Doc: "Creates a resource that collects statistics of datasets.",
			Out: []string{"handle: resource"}, Attrs: []string{"container: string = ''", "shared_name: string = ''"},
			Stateful: true, Shape: opdef.ScalarShape,
		}, makeAggregator)
		kernel.RegisterFunc(opdef.Def{
			Name: prefix + "StatsAggregatorSummary", Doc: "Returns the statistics that a resource has collected, as a serialized tensorflow.Summary.",
			In: []string{"iterator: resource"}, Out: []string{"summary: string"}, Stateful: true, Shape: opdef.ScalarShape,
		}, summarize)
	}
	kernel.RegisterNew(opdef.Def{
		Name: "IteratorSetStatsAggregator", Doc: "Makes the datasets of an iterator record statistics in a resource. From TensorFlow 1.8.",
		In: []string{"iterator_handle: resource", "stats_aggregator_handle: resource"}, Stateful: true,
	}, onIterator(0, func(_ *kernel.Construction, ctx *kernel.Context, it *Iterator) error {
		to, err := resource.Find[*aggregator](ctx, 1)
		if err == nil {
			it.stats = &recorder{to: to}
		}
		return err
	}))
}

// aggregator is the resource that collects the statistics of datasets.
type aggregator struct {
	mu         sync.Mutex
	histograms map[string]*summary.HistogramBuilder // guarded by mu
	scalars    map[string]float32                   // guarded by mu
	meter      membudget.Meter                      // of the maps; guarded by mu
}

// TypeName returns TensorFlow's name of the resource.
func (*aggregator) TypeName() string { return "N10tensorflow4data23StatsAggregatorResourceE" }

func makeAggregator(c *kernel.Construction) (kernel.Kernel, error) {
	return resource.Maker[*aggregator]{
		Create: func(*kernel.Context, string) (*aggregator, error) {
			return &aggregator{histograms: map[string]*summary.HistogramBuilder{}, scalars: map[string]float32{}}, nil
		},
	}.Kernel(c)
}

// values returns the statistics: the histograms and then the scalars, each sorted by name.
func (a *aggregator) values() []summary.Value {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []summary.Value
	for _, tag := range slices.Sorted(maps.Keys(a.histograms)) {
		out = membudget.Append(out, summary.Value{Tag: tag, Data: a.histograms[tag].Histogram()})
	}
	for _, tag := range slices.Sorted(maps.Keys(a.scalars)) {
		out = membudget.Append(out, summary.Value{Tag: tag, Data: a.scalars[tag]})
	}
	return out
}

func summarize(ctx *kernel.Context) error {
	a, err := resource.Find[*aggregator](ctx, 0)
	if err != nil {
		return err
	}
	message, err := summary.Marshal(a.values()...)
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(string(message)))
	}
	return err
}

// recorder passes the statistics of stages to an aggregator. A nil recorder drops them.
type recorder struct {
	to     *aggregator
	prefix string // of the names, with its delimiter
}

// statsDelimiter separates the parts of the name of a statistic.
const statsDelimiter = "::"

// histogramMemory is the memory of a histogram, in bytes: 1,551 counts.
const histogramMemory = 12_500

// count adds a value to a histogram.
func (s *recorder) count(name string, value float64) {
	if s == nil {
		return
	}
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	h := s.to.histograms[s.prefix+name]
	if h == nil {
		s.to.meter.MustTakeEntry(histogramMemory + len(s.prefix) + len(name))
		h = &summary.HistogramBuilder{}
		s.to.histograms[s.prefix+name] = h
	}
	h.Add(value)
}

// set sets a scalar.
func (s *recorder) set(name string, value float64) {
	if s == nil {
		return
	}
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	key := s.prefix + name
	if _, ok := s.to.scalars[key]; !ok {
		s.to.meter.MustTakeEntry(len(key))
	}
	s.to.scalars[key] = float32(value)
}
