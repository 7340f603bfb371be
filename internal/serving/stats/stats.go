// Package stats counts the requests of a model server, and writes the counters in the text format
// of Prometheus under TensorFlow Serving's names.
package stats

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Histograms of TensorFlow Serving have 33 buckets, whose bounds grow by 1.8 from 10 µs.
const (
	numBuckets  = 33
	firstBucket = 10
	growth      = 1.8
)

// Stats are the metrics of a server. It may be used concurrently.
type Stats struct {
	mu       sync.Mutex
	families map[string]*family // by name; guarded by mu
}

// family is all series of one metric.
type family struct {
	help   string
	names  []string           // of the labels
	series map[values]*series // by the values of the labels
}

// values are those of the labels of a metric, which has three at most. They are a key without an
// allocation: each request updates several series.
type values [3]string

// series is a counter or a histogram.
type series struct {
	count   uint64
	sum     float64
	buckets []uint64 // nil for a counter
}

// New returns metrics without values.
func New() *Stats { return &Stats{families: map[string]*family{}} }

// labels returns the labels of a series in the text format.
func (f *family) labels(v values) string {
	escapes := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	var b strings.Builder
	for i, name := range f.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name + `="` + escapes.Replace(v[i]) + `"`)
	}
	return b.String()
}

func (s *Stats) at(name, help string, pairs []string, histogram bool) *series {
	f := s.families[name]
	if f == nil {
		f = &family{help: help, series: map[values]*series{}}
		for i := 0; i < len(pairs); i += 2 {
			f.names = append(f.names, pairs[i])
		}
		s.families[name] = f
	}
	var key values
	for i := 1; i < len(pairs); i += 2 {
		key[i/2] = pairs[i]
	}
	v := f.series[key]
	if v == nil {
		v = &series{}
		if histogram {
			v.buckets = make([]uint64, numBuckets)
		}
		f.series[key] = v
	}
	return v
}

// Add adds n to a counter. pairs are names and values of labels.
func (s *Stats) Add(name, help string, n uint64, pairs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(name, help, pairs, false).count += n
}

// Observe adds a value to a histogram.
func (s *Stats) Observe(name, help string, v float64, pairs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.at(name, help, pairs, true)
	h.count++
	h.sum += v
	bound := float64(firstBucket)
	for i := range h.buckets {
		if v < bound {
			h.buckets[i]++
			break
		}
		bound *= growth
	}
}

// Prefix begins the names of TensorFlow Serving's metrics.
const Prefix = ":tensorflow:serving:"

// Request counts a request. api is the name of its method and entrypoint is "REST" or "GRPC".
func (s *Stats) Request(model, api, entrypoint, code string, took time.Duration) {
	s.Add(Prefix+"request_count", "The total number of requests.", 1, "model_name", model, "status", code)
	if code == "OK" {
		s.Observe(Prefix+"request_latency", "Distribution of wall time (in microseconds) of requests.", float64(took.Microseconds()),
			"model_name", model, "API", api, "entrypoint", entrypoint)
	}
}

// Runtime records the time of the computation of a request.
func (s *Stats) Runtime(model, api string, took time.Duration) {
	s.Observe(Prefix+"runtime_latency", "Distribution of wall time (in microseconds) of computations.", float64(took.Microseconds()),
		"model_name", model, "API", api, "runtime", "TF1")
	s.Add(":tensorflow:core:graph_runs", "The number of graph executions.", 1)
}

// Examples counts the examples of a request.
func (s *Stats) Examples(model string, n int) {
	s.Observe(Prefix+"request_example_counts", "Distribution of the number of examples of a request.", float64(n), "model", model)
	s.Add(Prefix+"request_example_count_total", "The number of examples.", uint64(n), "model", model) //nolint:gosec // not negative
}

// Counters returns the values of all counters by name, summed over their labels.
func (s *Stats) Counters() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int64{}
	for name, f := range s.families {
		for _, v := range f.series {
			if v.buckets == nil {
				out[name] += int64(v.count) //nolint:gosec // counts from zero
			}
		}
	}
	return out
}

// WriteTo writes all metrics.
func (s *Stats) WriteTo(w io.Writer) (int64, error) {
	s.mu.Lock()
	var b strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(s.families), cmp.Compare[string]) {
		s.families[name].write(&b, name)
	}
	s.mu.Unlock()
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (f *family) write(b *strings.Builder, name string) {
	kind := "counter"
	byLabels := make(map[string]*series, len(f.series))
	for v, series := range f.series {
		if byLabels[f.labels(v)] = series; series.buckets != nil {
			kind = "histogram"
		}
	}
	keys := slices.Sorted(maps.Keys(byLabels))
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, f.help, name, kind)
	for _, key := range keys {
		v := byLabels[key]
		braces := ""
		if key != "" {
			braces = "{" + key + "}"
		}
		if v.buckets == nil {
			fmt.Fprintf(b, "%s%s %d\n", name, braces, v.count)
			continue
		}
		comma := ""
		if key != "" {
			comma = ","
		}
		bound, below := float64(firstBucket), uint64(0)
		for _, n := range v.buckets {
			below += n
			fmt.Fprintf(b, "%s_bucket{%s%sle=\"%s\"} %d\n", name, key, comma, strconv.FormatFloat(bound, 'g', 6, 64), below)
			bound *= growth
		}
		fmt.Fprintf(b, "%s_bucket{%s%sle=\"+Inf\"} %d\n%s_sum%s %g\n%s_count%s %d\n", name, key, comma, v.count, name, braces, v.sum, name, braces, v.count)
	}
}
