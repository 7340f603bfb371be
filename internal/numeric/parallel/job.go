package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/spin"
)

var freeJobs = sync.Pool{New: func() any { return &job{done: make(chan struct{}, 1)} }}

// job is one loop in progress. It belongs to the caller of Run. A worker may use it only between
// its change of the slot to busy and its decrement of pending.
type job struct {
	body     Body
	n, grain int
	blocks   int
	offered  []*worker // workers that it was offered to

	next atomic.Int64 // index of the next block
	// workers that have started and not ended, plus pendingBias until finish has counted them
	pending  atomic.Int64
	done     chan struct{} // receives one value from the worker that decrements pending to 0
	panicked atomic.Pointer[Panic]
}

// Panic is the value that the caller of a loop panics with if the body panicked on another
// goroutine.
type Panic struct {
	Value any    // panic value of the body
	Stack []byte // stack of the goroutine that panicked
}

func (p *Panic) Error() string {
	return fmt.Sprintf("panic in a parallel loop: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the panic value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

const pendingBias = 1 << 32 // exceeds any number of workers

func (j *job) start(n, grain int, body Body) {
	j.body, j.n, j.grain, j.blocks = body, n, grain, Blocks(n, grain)
	j.offered = j.offered[:0]
	j.next.Store(0)
	j.pending.Store(pendingBias)
}

// runBlock runs the next block and reports false if there is none.
func (j *job) runBlock() bool {
	i := int(j.next.Add(1)) - 1
	if i >= j.blocks {
		return false
	}
	lo := i * j.grain
	j.body.Range(lo, min(j.n, lo+j.grain))
	return true
}

// help runs blocks on worker w, which has started the job.
func (j *job) help(w *worker) {
	defer func() {
		if v := recover(); v != nil {
			j.panicked.CompareAndSwap(nil, &Panic{Value: v, Stack: debug.Stack()})
			j.cancel()
		}
		w.slot.Store(idle)
		Release()
		if j.pending.Add(-1) == 0 {
			j.done <- struct{}{}
		}
	}()
	var yielder Yielder
	for j.runBlock() {
		yielder.MaybeYield()
	}
}

// cancel prevents the start of further blocks.
func (j *job) cancel() { j.next.Store(int64(j.blocks)) }

// finish revokes the job from workers that have not started it, waits for the others, and passes on
// their panic. Run defers it, so that no worker uses the body after Run has returned or panicked.
func (j *job) finish() {
	j.cancel()
	started := int64(0)
	for _, w := range j.offered {
		if w.revoke(j) {
			Release()
		} else {
			started++
		}
	}
	if j.pending.Add(started-pendingBias) != 0 {
		j.waitForWorkers()
	}
	p := j.panicked.Swap(nil)
	j.body = nil
	freeJobs.Put(j)
	if p != nil {
		panic(p)
	}
}

// waitForWorkers returns when all workers have ended. Blocks are short, so it spins for about 40 µs
// before it blocks.
func (j *job) waitForWorkers() {
	for range 400 {
		if j.pending.Load() == 0 {
			break
		}
		spin.Pause()
	}
	if j.pending.Load() != 0 {
		runtime.Gosched()
	}
	<-j.done
}
