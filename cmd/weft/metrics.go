package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/metrics"
	"slices"
	"strings"
	"time"
)

const (
	// metricsTime bounds a request for figures, and maxMetricsRequest its size.
	metricsTime       = 5 * time.Second
	maxMetricsRequest = 16 << 10
	// metricsPause is how long nobody is served after a connection could not be taken.
	metricsPause = 100 * time.Millisecond
)

// listenForMetrics listens on an address for requests for figures: on one that others than this
// machine can reach only if that is wanted.
func listenForMetrics(address string, insecure bool) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-address: %w", err)
	}
	if !insecure && !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("--metrics-address: %s can be reached from other machines; --insecure allows it on a network that you trust", address)
	}
	l, err := net.ListenTCP("tcp", tcp)
	if err != nil {
		return nil, fmt.Errorf("--metrics-address: %w", err)
	}
	return l, nil
}

// serveMetrics answers requests one after the other until the listener is closed. It speaks as much
// of HTTP as they need: the library's server takes a task that rests 1.6 MiB of memory.
func serveMetrics(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as no descriptor for the connection: there may be one later
			<-time.After(metricsPause)
			continue
		}
		if conn.SetDeadline(time.Now().Add(metricsTime)) == nil {
			_, _ = conn.Write(answerMetrics(conn))
		}
		conn.Close()
	}
}

// answerMetrics reads a request and returns its answer, nil if there was none.
func answerMetrics(conn io.Reader) []byte {
	in := bufio.NewReader(io.LimitReader(conn, maxMetricsRequest))
	first, err := in.ReadString('\n')
	for line := first; err == nil && strings.TrimRight(line, "\r\n") != ""; {
		line, err = in.ReadString('\n')
	}
	if err != nil {
		return nil
	}
	method, rest, _ := strings.Cut(first, " ")
	target, _, _ := strings.Cut(rest, " ")
	path, _, _ := strings.Cut(target, "?")
	outcome, body := "404 Not Found", []byte("The figures are at /metrics.\n")
	switch {
	case method != "GET" && method != "HEAD":
		outcome, body = "405 Method Not Allowed\r\nAllow: GET, HEAD", nil
	case path == "/metrics":
		outcome, body = "200 OK", appendMetrics(nil)
	}
	head := fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		outcome, len(body))
	if method == "HEAD" {
		body = nil
	}
	return append([]byte(head), body...)
}

// metric is a figure of the page, made of what the Go runtime counts: the sum of some less the sum
// of others.
type metric struct {
	name, kind, help string
	plus, minus      []string
}

const (
	gcCPU     = "/cpu/classes/gc/total:cpu-seconds"
	gcIdleCPU = "/cpu/classes/gc/mark/idle:cpu-seconds"
	gcPauses  = "/sched/pauses/total/gc:seconds"
)

// pageMetrics are the figures of the page but for the processor time and the pauses.
var pageMetrics = []metric{
	{
		"weft_gc_cpu_seconds_total", "counter", "Processor time of the garbage collector until its last end, without what nobody else wanted.",
		[]string{gcCPU}, []string{gcIdleCPU},
	},
	{"weft_gc_idle_cpu_seconds_total", "counter", "Processor time of the collector on cores that had nothing else to do.", []string{gcIdleCPU}, nil},
	{"weft_gc_cycles_total", "counter", "Garbage collections.", []string{"/gc/cycles/total:gc-cycles"}, nil},
	{"weft_allocated_bytes_total", "counter", "Memory that was allocated on the heap.", []string{"/gc/heap/allocs:bytes"}, nil},
	{"weft_allocated_objects_total", "counter", "Objects that were allocated on the heap.", []string{"/gc/heap/allocs:objects"}, nil},
	{"weft_heap_live_bytes", "gauge", "What the last garbage collection found in use.", []string{"/gc/heap/live:bytes"}, nil},
	{"weft_heap_goal_bytes", "gauge", "The size of the heap at which the next one begins.", []string{"/gc/heap/goal:bytes"}, nil},
	{
		"weft_memory_bytes", "gauge", "Memory that the process has of the system, but for the program itself.",
		[]string{"/memory/classes/total:bytes"}, []string{"/memory/classes/heap/released:bytes"},
	},
	{"weft_goroutines", "gauge", "Goroutines.", []string{"/sched/goroutines:goroutines"}, nil},
}

// appendMetrics appends the figures in the text format of Prometheus.
func appendMetrics(b []byte) []byte {
	samples := []metrics.Sample{{Name: gcPauses}}
	for _, m := range pageMetrics {
		for _, name := range slices.Concat(m.plus, m.minus) {
			samples = append(samples, metrics.Sample{Name: name})
		}
	}
	metrics.Read(samples)
	b = appendMetric(b, metric{name: "weft_cpu_seconds_total", kind: "counter", help: "Processor time."}, processorTime().Seconds())
	rest := samples[1:]
	for _, m := range pageMetrics {
		v := 0.0
		for range m.plus {
			v, rest = v+figure(rest[0].Value), rest[1:]
		}
		for range m.minus {
			v, rest = v-figure(rest[0].Value), rest[1:]
		}
		b = appendMetric(b, m, max(v, 0))
	}
	return appendPauses(b, samples[0].Value.Float64Histogram())
}

func appendMetric(b []byte, m metric, value float64) []byte {
	return fmt.Appendf(b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n%[1]s %[4]v\n", m.name, m.help, m.kind, value)
}

func figure(v metrics.Value) float64 {
	if v.Kind() == metrics.KindUint64 {
		return float64(v.Uint64())
	}
	return v.Float64()
}

// appendPauses appends the pauses of the garbage collector as a summary. Each counts as the upper
// end of its bucket.
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
		var seen uint64
		at := 0.0
		for i, n := range h.Counts {
			if seen += n; n > 0 {
				at = upper(h, i)
				if float64(seen) >= q*float64(total) {
					break
				}
			}
		}
		b = fmt.Appendf(b, "%s{quantile=\"%v\"} %v\n", name, q, at)
	}
	return fmt.Appendf(b, "%s_sum %v\n%[1]s_count %[3]d\n", name, sum, total)
}

// upper returns the upper end of a bucket; the last one has none.
func upper(h *metrics.Float64Histogram, i int) float64 {
	return min(h.Buckets[i+1], 2*h.Buckets[len(h.Buckets)-2])
}
