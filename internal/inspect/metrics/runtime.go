package metrics

import (
	"fmt"
	"runtime/metrics"
)

// Names of the Go runtime's own metrics.
const (
	gcCPU          = "/cpu/classes/gc/total:cpu-seconds"
	gcIdleCPU      = "/cpu/classes/gc/mark/idle:cpu-seconds"
	gcCycles       = "/gc/cycles/total:gc-cycles"
	gcPauses       = "/sched/pauses/total/gc:seconds"
	heapAllocs     = "/gc/heap/allocs:bytes"
	heapObjects    = "/gc/heap/allocs:objects"
	heapLive       = "/gc/heap/live:bytes"
	heapGoal       = "/gc/heap/goal:bytes"
	memoryTotal    = "/memory/classes/total:bytes"
	memoryReleased = "/memory/classes/heap/released:bytes"
	goroutines     = "/sched/goroutines:goroutines"
)

var runtimeNames = []string{
	gcCPU, gcIdleCPU, gcCycles, gcPauses, heapAllocs, heapObjects, heapLive, heapGoal, memoryTotal, memoryReleased,
	goroutines,
}

// A sample holds the Go runtime's metrics, read together.
type sample struct {
	values map[string]metrics.Value
}

func readSample() *sample {
	read := make([]metrics.Sample, len(runtimeNames))
	for i, name := range runtimeNames {
		read[i].Name = name
	}
	metrics.Read(read)
	s := &sample{values: make(map[string]metrics.Value, len(read))}
	for _, r := range read {
		s.values[r.Name] = r.Value
	}
	return s
}

// value returns a metric of runtimeNames that is a number.
func (s *sample) value(name string) float64 {
	v := s.values[name]
	if v.Kind() == metrics.KindUint64 {
		return float64(v.Uint64())
	}
	return v.Float64()
}

func (s *sample) pauses() *metrics.Float64Histogram { return s.values[gcPauses].Float64Histogram() }

// appendPauses appends the pauses of the garbage collector as a summary. Each pause counts as the
// upper end of its bucket.
func appendPauses(b []byte, h *metrics.Float64Histogram) []byte {
	const name = "weft_gc_pause_seconds"
	var total uint64
	sum := 0.0
	for i, n := range h.Counts {
		total += n
		sum += float64(n) * upper(h, i)
	}
	b = fmt.Appendf(b, "# HELP %s Pauses of the garbage collector.\n# TYPE %[1]s summary\n", name)
	for _, q := range []float64{0.5, 0.99, 1} {
		b = fmt.Appendf(b, "%s{quantile=\"%v\"} %v\n", name, q, quantile(h, q*float64(total)))
	}
	return fmt.Appendf(b, "%s_sum %v\n%[1]s_count %[3]d\n", name, sum, total)
}

// quantile returns the upper end of the bucket in which the rank-th pause lies, 0 without pauses.
func quantile(h *metrics.Float64Histogram, rank float64) float64 {
	var seen uint64
	at := 0.0
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		seen += n
		at = upper(h, i)
		if float64(seen) >= rank {
			break
		}
	}
	return at
}

// upper returns the upper end of a bucket. The last bucket is unbounded and counts as twice its
// lower end.
func upper(h *metrics.Float64Histogram, i int) float64 {
	return min(h.Buckets[i+1], 2*h.Buckets[len(h.Buckets)-2])
}
