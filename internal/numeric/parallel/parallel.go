// Package parallel runs loops on several cores.
//
// A loop over [0, n) is divided into blocks of grain iterations. Block boundaries depend on n and
// grain only, so a body that computes one partial result per block returns the same bits for any
// number of cores. The caller and the idle workers of a persistent pool take blocks from a shared
// counter, while fewer goroutines compute than there are threads ([Acquire]). The caller never
// waits for a worker that has not started: if no core is free, it runs all blocks itself. So loops
// may be nested and run on any number of goroutines, without deadlock and without more threads than
// cores.
//
// Waking a worker takes about 2 µs of the caller's time, and the worker starts 5 to 20 µs later, or
// sooner if it still spins after another loop. A block should therefore hold at least 10 µs of
// work.
package parallel

import "runtime"

// Body is the body of a loop.
type Body interface {
	// Range runs the iterations [lo, hi). It is called concurrently and must not call
	// runtime.Goexit.
	Range(lo, hi int)
}

type bodyFunc func(lo, hi int)

func (f bodyFunc) Range(lo, hi int) { f(lo, hi) }

// For calls fn(lo, hi) for the blocks [0, grain), [grain, 2*grain), … of [0, n) and returns when
// all calls have returned. A loop of one block runs on the caller. A grain below 1 counts as 1.
//
// A panic in fn ends the loop: blocks that have not started are skipped. The panic reaches the
// caller, unchanged if it occurred on the caller's goroutine, otherwise as a *Panic.
func For(n, grain int, fn func(lo, hi int)) { Run(n, grain, bodyFunc(fn)) }

// Run is For without a closure. A caller that pools its Body allocates nothing.
func Run(n, grain int, body Body) {
	grain = max(grain, 1)
	if n > grain {
		if p := current(); len(p.workers) > 0 {
			p.run(n, grain, body)
			return
		}
	}
	var yielder Yielder
	for lo := 0; lo < n; {
		body.Range(lo, min(n, lo+grain))
		if lo += grain; lo < n {
			yielder.MaybeYield()
		}
	}
}

// Blocks returns the number of blocks of a loop with n iterations. The block that starts at lo has
// the index lo/grain.
func Blocks(n, grain int) int {
	grain = max(grain, 1)
	return (max(n, 0) + grain - 1) / grain
}

// Threads returns the largest number of goroutines that a loop uses, the caller included: the value
// of SetThreads, or GOMAXPROCS at the time of the first loop.
func Threads() int { return len(current().workers) + 1 }

// SetThreads sets the number of threads and returns the previous one. n below 1 means GOMAXPROCS.
// It waits until the old workers have ended; running loops keep the workers that have started and
// lose no block. SetThreads(1) leaves no goroutine behind.
func SetThreads(n int) int {
	if n < 1 {
		n = runtime.GOMAXPROCS(0)
	}
	old := active.Swap(newPool(n - 1))
	if old == nil {
		return runtime.GOMAXPROCS(0)
	}
	old.stop()
	return len(old.workers) + 1
}
