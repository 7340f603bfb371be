// Package metrics serves a task's metrics to Prometheus, in its text format, at /metrics.
//
// catalog.go describes the metrics that a task counts, and the table in process.go those of the
// process, which need no other part of the task: to add one, add a row with its name and unit, its
// kind, its help text, and the function that reads its value when the page is requested.
package metrics

import (
	"fmt"
	"maps"
	"slices"
)

// A metric is one value of the page.
type metric struct {
	name string // with its unit, and with _total for counters, as Prometheus recommends
	kind string // "counter" or "gauge"
	help string
	read func(s *sample) float64 // may be called by several goroutines
}

// table is the page, in its order, except for the summary of pauses at its end.
var table = []metric{
	{
		"weft_cpu_seconds_total", "counter", "CPU time of the process, user and system.",
		func(*sample) float64 { return cpuTime().Seconds() },
	},
	{
		"weft_gc_cpu_seconds_total", "counter",
		"CPU time of the garbage collector up to its last cycle, without collection on idle cores.",
		func(s *sample) float64 { return s.value(gcCPU) - s.value(gcIdleCPU) },
	},
	{
		"weft_gc_idle_cpu_seconds_total", "counter",
		"CPU time of the garbage collector on cores that were idle otherwise.",
		func(s *sample) float64 { return s.value(gcIdleCPU) },
	},
	{
		"weft_gc_cycles_total", "counter", "Completed garbage collections.",
		func(s *sample) float64 { return s.value(gcCycles) },
	},
	{
		"weft_allocated_bytes_total", "counter", "Bytes allocated on the heap.",
		func(s *sample) float64 { return s.value(heapAllocs) },
	},
	{
		"weft_allocated_objects_total", "counter", "Objects allocated on the heap.",
		func(s *sample) float64 { return s.value(heapObjects) },
	},
	{
		"weft_heap_live_bytes", "gauge", "Bytes in use on the heap after the last garbage collection.",
		func(s *sample) float64 { return s.value(heapLive) },
	},
	{
		"weft_heap_goal_bytes", "gauge", "Size of the heap at which the next garbage collection starts.",
		func(s *sample) float64 { return s.value(heapGoal) },
	},
	{
		"weft_memory_bytes", "gauge",
		"Memory that the Go runtime holds, without what it returned to the system.",
		func(s *sample) float64 { return s.value(memoryTotal) - s.value(memoryReleased) },
	},
	{
		"weft_goroutines", "gauge", "Goroutines.",
		func(s *sample) float64 { return s.value(goroutines) },
	},
}

// appendPage appends the metrics of the process in the text format of Prometheus. limited returns
// how often clients have reached each limit.
func appendPage(b []byte, limited func() map[string]uint64) []byte {
	return appendProcess(AppendLimited(b, limited()))
}

// AppendLimited appends how often clients have reached each limit, in the text format of
// Prometheus.
func AppendLimited(b []byte, counts map[string]uint64) []byte {
	b = append(b, "# HELP weft_limited_total Times that clients have reached a limit.\n# TYPE weft_limited_total counter\n"...)
	for _, limit := range slices.Sorted(maps.Keys(counts)) {
		b = fmt.Appendf(b, "weft_limited_total{limit=%q} %d\n", limit, counts[limit])
	}
	return b
}

// appendProcess appends the table and the pauses of the garbage collector.
func appendProcess(b []byte) []byte {
	s := readSample()
	for _, m := range table {
		b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n%[1]s %[4]v\n", m.name, m.help, m.kind, max(m.read(s), 0))
	}
	return appendPauses(b, s.pauses())
}
