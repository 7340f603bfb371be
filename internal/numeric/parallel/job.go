package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/spin"
)

var jobs = sync.Pool{New: func() any { return &job{done: make(chan struct{}, 1)} }}

// job is one loop in progress. The caller of Run owns it; a worker touches it only between its step
// to busy and its decrement of left.
type job struct {
	body     Body
	n, grain int
	blocks   int
	claimed  []*worker // workers that the job was offered to

	next atomic.Int64 // next block to hand out
	// workers that have begun and not ended; higher by leftBias until finish counts them
	left   atomic.Int64
	done   chan struct{} // one token when a worker brings left to zero
	failed atomic.Pointer[Panic]
}

// Panic is what a loop's caller panics with when the body panicked on another goroutine.
type Panic struct {
	Value any    // the body's panic value
	Stack []byte // the stack of the goroutine that panicked
}

func (p *Panic) Error() string {
	return fmt.Sprintf("panic in a parallel loop: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the panic value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

const leftBias = 1 << 32 // more than any number of workers

func (j *job) start(n, grain int, body Body) {
	j.body, j.n, j.grain, j.blocks = body, n, grain, Blocks(n, grain)
	j.claimed = j.claimed[:0]
	j.next.Store(0)
	j.left.Store(leftBias)
}

// block runs the next block and reports false if there is none.
func (j *job) block() bool {
	i := int(j.next.Add(1)) - 1
	if i >= j.blocks {
		return false
	}
	lo := i * j.grain
	j.body.Range(lo, min(j.n, lo+j.grain))
	return true
}

// help works on the job from worker w, which has begun.
func (j *job) help(w *worker) {
	defer func() {
		if v := recover(); v != nil {
			j.failed.CompareAndSwap(nil, &Panic{Value: v, Stack: debug.Stack()})
			j.drop()
		}
		w.slot.Store(idle)
		Release()
		if j.left.Add(-1) == 0 {
			j.done <- struct{}{}
		}
	}()
	var pace Yielder
	for j.block() {
		pace.MaybeYield()
	}
}

// drop hands out no more blocks.
func (j *job) drop() { j.next.Store(int64(j.blocks)) }

// finish takes the job back from workers that have not begun, waits for the others and passes their
// panic on. It runs deferred: when the caller's own part panicked it makes sure that no worker uses
// the body any more.
func (j *job) finish() {
	j.drop()
	begun := int64(0)
	for _, w := range j.claimed {
		if w.revoke(j) {
			Release()
		} else {
			begun++
		}
	}
	if j.left.Add(begun-leftBias) != 0 {
		j.await()
	}
	p := j.failed.Swap(nil)
	j.body = nil
	jobs.Put(j)
	if p != nil {
		panic(p)
	}
}

// await spins for a while, as blocks are short, then sleeps.
func (j *job) await() {
	for range 400 {
		if j.left.Load() == 0 {
			break
		}
		spin.Pause()
	}
	if j.left.Load() != 0 {
		runtime.Gosched()
	}
	<-j.done
}
