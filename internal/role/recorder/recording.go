package recorder

import (
	"sync"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
)

const (
	// maxRecords bounds the records of a recording.
	maxRecords = 4_000_000
	// recordSize is about the memory of a record in bytes, here and in the response.
	recordSize = 512
)

// partition is the part of a graph on one device, whose nodes are recorded.
type partition struct {
	device string
	graph  *graph.Graph // nil if it is not known
}

// Recording collects records. Its methods may be called concurrently, and ignore what is added
// after the end. A nil *Recording ignores everything.
type Recording struct {
	id    uint64
	begin time.Time
	ended chan struct{} // closed by end
	gpus  []tracedGPU

	mu     sync.Mutex
	over   bool            // guarded by mu
	stop   time.Time       // when it ended; guarded by mu
	wanted int64           // number of steps that a call waits for; 0 for none; guarded by mu
	enough chan struct{}   // closed when they have finished; guarded by mu
	done   int64           // steps that the master has finished; guarded by mu
	lost   int64           // records without memory; guarded by mu
	meter  membudget.Meter // guarded by mu
	// Records, guarded by mu until the recording is over:
	executions []execution
	transfers  []Transfer
	parts      []part
	steps      []Step
	kernels    []kernelRun
}

type execution struct {
	step      int64
	partition *partition
	node      *executor.NodeStats
}

// part is the partition of a step on the task.
type part struct {
	step       int64
	start, end time.Time // end is zero while it runs
}

// Transfer is a tensor that the task has received from another one.
type Transfer struct {
	Step                int64
	Tensor              string
	From, To            string // devices
	Bytes               int64
	Requested, Received time.Time
	SentMicros          int64 // when it was sent, by the clock of the other task; 0 if not known
}

// Step is a step whose master is the task.
type Step struct {
	ID         int64
	Session    string // first characters of its handle
	Start, End time.Time
	Code       int32 // of its error; 0 for success
}

func newRecording(id uint64, devices []*kernel.Device) *Recording {
	return &Recording{id: id, begin: time.Now(), ended: make(chan struct{}), gpus: traceGPUs(devices)}
}

// end ends the recording. It waits for the work of GPUs, while steps go on. One call may run at a
// time.
func (r *Recording) end() {
	r.mu.Lock()
	over := r.over
	if !over {
		r.over, r.stop = true, time.Now()
		close(r.ended)
	}
	r.mu.Unlock()
	if !over {
		r.addKernels()
	}
}

// await returns a channel that is closed when the master has finished a number of steps.
func (r *Recording) await(steps int64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted, r.enough = steps, make(chan struct{})
	r.checkWanted()
	return r.enough
}

// checkWanted closes enough if the wanted steps have finished. The caller holds mu.
func (r *Recording) checkWanted() {
	if r.wanted > 0 && r.done >= r.wanted {
		r.wanted = 0
		close(r.enough)
	}
}

// admits reports whether a record may be added, and counts those that may not. The caller holds mu.
func (r *Recording) admits() bool {
	if r.over {
		return false
	}
	if r.lost > 0 || len(r.executions)+len(r.transfers)+len(r.parts)+len(r.steps) >= maxRecords || !r.meter.Take(recordSize) {
		r.lost++
		return false
	}
	return true
}

// Collector returns what adds the executions of a partition in a step, nil for a nil *Recording.
func (r *Recording) Collector(step int64, device string, g *graph.Graph) executor.Collector {
	if r == nil {
		return nil
	}
	return &collector{r, step, partition{device, g}}
}

type collector struct {
	recording *Recording
	step      int64
	partition partition
}

// Collect implements [executor.Collector]. It adds an execution of a node, of the partition or of a
// function that the partition calls.
func (c *collector) Collect(n *executor.NodeStats) {
	r := c.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.admits() {
		r.executions = append(r.executions, execution{c.step, &c.partition, n})
	}
}

// Transfer adds a received tensor.
func (r *Recording) Transfer(t Transfer) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.admits() {
		r.transfers = append(r.transfers, t)
	}
}

// Part adds the partition of a step, which begins to run. The caller calls done when it has ended.
func (r *Recording) Part(step int64) (done func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.admits() {
		return func() {}
	}
	at := len(r.parts)
	r.parts = append(r.parts, part{step: step, start: time.Now()})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.over {
			r.parts[at].end = time.Now()
		}
	}
}

// Step adds a step that the master has finished. Steps are counted even if there is no memory to
// record them.
func (r *Recording) Step(s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if r.done++; r.admits() {
		r.steps = append(r.steps, s)
	}
	r.checkWanted()
}
