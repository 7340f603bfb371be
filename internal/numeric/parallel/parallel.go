// Package parallel runs loops on several cores.
//
// A loop over [0, n) is cut into blocks of grain iterations; block boundaries depend on n and grain
// alone, so a body that keeps one partial result per block gives the same bits whatever the number
// of cores. The blocks are handed out from a shared counter to the calling goroutine and to those
// workers of a persistent pool that are idle, as long as fewer goroutines compute than there are
// threads ([Enter]). The caller never waits for a worker that has not begun: when no core is free
// it does all the work itself. Loops may therefore be nested and may run on any number of
// goroutines at once, without deadlock and without more threads than cores.
//
// Waking a worker takes about 2 µs of the caller's time and the worker starts some 5 to 20 µs later
// (less if it has just finished another loop and still spins), so a block should hold at least 10
// µs of work.
package parallel

import "runtime"

// Body is the body of a loop.
type Body interface {
	// Range runs the iterations [lo, hi). It is called from several goroutines at once and must not
	// end its goroutine (runtime.Goexit).
	Range(lo, hi int)
}

type bodyFunc func(lo, hi int)

func (f bodyFunc) Range(lo, hi int) { f(lo, hi) }

// For calls fn(lo, hi) for the blocks [0, grain), [grain, 2*grain), … of [0, n) and returns when
// all are done. A loop of one block runs on the caller. A grain below 1 counts as 1.
//
// A panic in fn reaches the caller: unchanged if it came up on the caller's goroutine, as a *Panic
// otherwise. Blocks that were not yet begun are then dropped.
func For(n, grain int, fn func(lo, hi int)) { Run(n, grain, bodyFunc(fn)) }

// Run is For without the closure: a caller that keeps its Body in a pool allocates nothing.
func Run(n, grain int, body Body) {
	grain = max(grain, 1)
	if n > grain {
		if p := current(); len(p.workers) > 0 {
			p.run(n, grain, body)
			return
		}
	}
	var pace Yielder
	for lo := 0; lo < n; {
		body.Range(lo, min(n, lo+grain))
		if lo += grain; lo < n {
			pace.MaybeYield()
		}
	}
}

// Blocks is the number of blocks that For makes of n iterations. The block that starts at lo has
// the index lo/grain.
func Blocks(n, grain int) int {
	grain = max(grain, 1)
	return (max(n, 0) + grain - 1) / grain
}

// Threads is the number of goroutines, the caller included, that a loop uses at most: GOMAXPROCS at
// the time of the first loop unless SetThreads said otherwise.
func Threads() int { return len(current().workers) + 1 }

// SetThreads sets the number of threads and returns the previous one; n below 1 stands for
// GOMAXPROCS. The old workers are stopped before it returns; loops that are running go on with the
// workers they have and lose none of their blocks. SetThreads(1) leaves no goroutine behind.
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
