package metrics

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Registry holds the values of the metrics in the catalog. It may be used concurrently.
//
// The library of Prometheus does the same. It is not linked, because it takes 1.6 MiB of the memory
// of every task, with or without metrics, and 0.7 MiB of the program.
type Registry struct {
	families map[string]*family // by name; not modified
}

// family holds the series of a metric.
type family struct {
	description
	series sync.Map // of *series, by labelKey
}

// labelKey holds up to three values of labels.
type labelKey [3]string

// series is a metric with given values of its labels.
type series struct {
	labels  []string
	n       atomic.Int64    // added to the value; nanoseconds for a histogram
	bits    atomic.Uint64   // the rest of the value
	buckets []atomic.Uint64 // of a histogram: observations up to each bound, and the rest; else nil
}

// bounds are the upper bounds of the buckets of histograms, in seconds.
var bounds = []float64{
	50e-6, 100e-6, 250e-6, 500e-6, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
}

// nanoBounds are the bounds in nanoseconds.
var nanoBounds = func() []int64 {
	out := make([]int64, len(bounds))
	for i, b := range bounds {
		out[i] = int64(math.Round(b * 1e9))
	}
	return out
}()

// NewRegistry returns a registry without values.
func NewRegistry() *Registry {
	r := &Registry{families: map[string]*family{}}
	for _, d := range catalog {
		r.families[d.name] = &family{description: d}
	}
	return r
}

// series returns a series of a metric, which must be in the catalog. It is created on first use.
func (r *Registry) series(name string, values ...string) *series {
	f := r.families[name]
	var key labelKey
	copy(key[:], values)
	if s, ok := f.series.Load(key); ok {
		return s.(*series) //nolint:forcetypeassert // see family
	}
	n := &series{labels: slices.Clone(values)}
	if f.kind == histogram {
		n.buckets = make([]atomic.Uint64, len(bounds)+1)
	}
	s, _ := f.series.LoadOrStore(key, n)
	return s.(*series) //nolint:forcetypeassert // see family
}

// value returns the value of a series, or the sum of a histogram in seconds.
func (s *series) value() float64 {
	n := float64(s.n.Load())
	if s.buckets != nil {
		n /= float64(time.Second)
	}
	return n + math.Float64frombits(s.bits.Load())
}

// set sets the value of a series to which nothing is added.
func (s *series) set(v float64) { s.bits.Store(math.Float64bits(v)) }

func (s *series) add(n int64) { s.n.Add(n) }

func (s *series) observe(took time.Duration) {
	i, _ := slices.BinarySearch(nanoBounds, int64(took))
	s.buckets[i].Add(1)
	s.n.Add(int64(took))
}

// append appends all metrics that have values in the text format of Prometheus, sorted.
func (r *Registry) append(b []byte) []byte {
	for _, d := range catalog {
		b = r.families[d.name].append(b)
	}
	return b
}

func (f *family) append(b []byte) []byte {
	var all []*series
	f.series.Range(func(_, v any) bool {
		all = append(all, v.(*series)) //nolint:forcetypeassert // see family
		return true
	})
	if len(all) == 0 {
		return b
	}
	slices.SortFunc(all, func(a, b *series) int { return slices.Compare(a.labels, b.labels) })
	b = append(b, "# HELP "+f.name+" "+f.help+"\n# TYPE "+f.name+" "+string(f.kind)+"\n"...)
	for _, s := range all {
		if f.kind != histogram {
			b = appendSample(b, f.name, f.labels, s.labels, s.value())
			continue
		}
		names, values := slices.Concat(f.labels, []string{"le"}), append(slices.Clone(s.labels), "")
		total := uint64(0)
		for i := range s.buckets {
			total += s.buckets[i].Load()
			bound := math.Inf(1)
			if i < len(bounds) {
				bound = bounds[i]
			}
			values[len(values)-1] = formatFloat(bound)
			b = appendSample(b, f.name+"_bucket", names, values, float64(total))
		}
		b = appendSample(b, f.name+"_sum", f.labels, s.labels, s.value())
		b = appendSample(b, f.name+"_count", f.labels, s.labels, float64(total))
	}
	return b
}

// escaper escapes the values of labels.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func appendSample(b []byte, name string, labels, values []string, v float64) []byte {
	b = append(b, name...)
	for i, l := range labels {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		b = append(append(b, separator), l+`="`+escaper.Replace(values[i])+`"`...)
	}
	if len(labels) > 0 {
		b = append(b, '}')
	}
	b = append(b, ' ')
	return append(append(b, formatFloat(v)...), '\n')
}

func formatFloat(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// page returns all metrics: those of the registry and those of the process.
func (r *Registry) page() []byte { return appendProcess(r.append(nil)) }
