package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/sys/buildinfo"
)

// State is what a task reports about itself when its metrics are requested.
type State struct {
	Task           string // "/job:ps/replica:0/task:0"
	Uptime         time.Duration
	Ready          bool
	CertificateEnd time.Time // zero without TLS
	Insecure       bool      // other machines reach the task without certificates

	Connections    int
	Limited        map[string]uint64
	Sessions       int
	WorkerSessions int
	Waits          int
	Graphs         int
	WorkerSteps    int
	Computing      int

	Queues           []Queue
	Resources        map[string]int // number of resources by kind
	VariableBytes    int64
	RendezvousValues int
	RendezvousBytes  int64
	Consumers        int

	LentBytes     int64  // at present
	LentTotal     uint64 // bytes since the start
	BorrowedTotal uint64 // bytes since the start
	PoolBytes     int64
	MemoryLimit   int64

	GPUs    []GPU
	Detours map[string]int64 // executions on the CPU for GPUs, by operation
}

// GPU is a GPU device and its statistics since the start.
type GPU struct {
	Device                       string
	InUse, Peak, Reserved, Limit int64 // bytes
	Launches                     int64
	KernelTime                   time.Duration // estimated
	ToDevice, ToHost, Peer       Copies
}

// Copies are copies of tensors in one direction.
type Copies struct{ Number, Bytes int64 }

// Queue is a queue and its number of elements.
type Queue struct {
	Container, Name string
	Elements        int64
}

// set stores the state in the registry.
func (r *Registry) set(st *State) {
	build := buildinfo.Read()
	r.series("weft_task_info", st.Task, build.Version, build.Commit).set(1)
	for name, v := range map[string]float64{
		"weft_insecure":       indicator(st.Insecure),
		"weft_uptime_seconds": st.Uptime.Seconds(), "weft_ready": indicator(st.Ready), "weft_grpc_server_connections": float64(st.Connections),
		"weft_sessions": float64(st.Sessions), "weft_worker_sessions": float64(st.WorkerSessions), "weft_sessions_waiting": float64(st.Waits),
		"weft_graphs": float64(st.Graphs), "weft_worker_steps": float64(st.WorkerSteps), "weft_computing": float64(st.Computing),
		"weft_rendezvous_values": float64(st.RendezvousValues), "weft_rendezvous_consumers": float64(st.Consumers),
		"weft_memory_limit_bytes": float64(st.MemoryLimit),
	} {
		r.series(name).set(v)
	}
	if !st.CertificateEnd.IsZero() {
		r.series("weft_certificate_end_seconds").set(float64(st.CertificateEnd.Unix()))
	}
	for limit, n := range st.Limited {
		r.series("weft_limited_total", limit).set(float64(n))
	}
	for _, name := range []string{"weft_queue_elements", "weft_resources"} {
		r.families[name].series.Clear() // what has been removed
	}
	r.setGPUs(st)
	for _, q := range st.Queues {
		r.series("weft_queue_elements", q.Container, q.Name).set(float64(q.Elements))
	}
	for kind, n := range st.Resources {
		r.series("weft_resources", kind).set(float64(n))
	}
	for kind, n := range map[string]int64{"variables": st.VariableBytes, "rendezvous": st.RendezvousBytes, "lent": st.LentBytes, "pool": st.PoolBytes} {
		r.series("weft_tensor_memory_bytes", kind).set(float64(n))
	}
	received := 0.0
	for _, s := range r.all(clientReceived) {
		if s.labels[0] == "WorkerService/RecvTensor" {
			received += s.value()
		}
	}
	r.series("weft_transfer_bytes_total", "grpc", "received").set(received)
	r.series("weft_transfer_bytes_total", "memory", "received").set(float64(st.BorrowedTotal))
	r.series("weft_transfer_bytes_total", "memory", "lent").set(float64(st.LentTotal))
}

// all returns the series of a metric.
func (r *Registry) all(name string) []*series {
	var out []*series
	r.families[name].series.Range(func(_, v any) bool {
		out = append(out, v.(*series)) //nolint:forcetypeassert // see family
		return true
	})
	return out
}

// Handler serves the metrics of a task.
type Handler struct {
	registry *Registry
	observer *Observer
	state    func() *State
	mu       sync.Mutex // held while a page is made
}

// NewHandler returns a handler. state is called for every page.
func NewHandler(r *Registry, o *Observer, state func() *State) *Handler {
	return &Handler{registry: r, observer: o, state: state}
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(h.page()) // the client may have gone
}

func (h *Handler) page() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.registry.set(h.state())
	h.observer.collect()
	return h.registry.page()
}

// indicator is the value of a metric of a condition: 1 or 0.
func indicator(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// setGPUs stores the state of the GPU devices.
func (r *Registry) setGPUs(st *State) {
	for _, g := range st.GPUs {
		for kind, v := range map[string]int64{"in_use": g.InUse, "peak": g.Peak, "reserved": g.Reserved, "limit": g.Limit} {
			r.series("weft_gpu_memory_bytes", g.Device, kind).set(float64(v))
		}
		r.series("weft_gpu_kernels_total", g.Device).set(float64(g.Launches))
		r.series("weft_gpu_kernel_seconds_total", g.Device).set(g.KernelTime.Seconds())
		for direction, c := range map[string]Copies{"to_device": g.ToDevice, "to_host": g.ToHost, "peer": g.Peer} {
			r.series("weft_gpu_copies_total", g.Device, direction).set(float64(c.Number))
			r.series("weft_gpu_copied_bytes_total", g.Device, direction).set(float64(c.Bytes))
		}
	}
	for op, n := range st.Detours {
		r.series("weft_gpu_detours_total", op).set(float64(n))
	}
}
