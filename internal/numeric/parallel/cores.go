package parallel

import "sync/atomic"

// computing counts the goroutines of the process that compute: those that said so, and the workers
// of loops. Whatever would take another core looks here first, so that kernels that run beside each
// other do not fight for the same ones.
var computing atomic.Int32

// Enter counts the calling goroutine among those that compute until Leave. It need not do so for
// the loops it runs.
func Acquire() { computing.Add(1) }

// Leave ends what Enter or TryEnter began.
func Release() { computing.Add(-1) }

// TryEnter counts one more goroutine among those that compute unless there are as many as Threads,
// and reports whether it has.
func TryAcquire() bool { return tryAcquire(Threads()) }

func tryAcquire(threads int) bool {
	n := computing.Load()
	return int(n) < threads && computing.CompareAndSwap(n, n+1)
}

// Busy reports whether a goroutine computes.
func Busy() bool { return computing.Load() > 0 }

// HasIdleCore reports whether fewer goroutines than Threads compute.
func HasIdleCore() bool { return int(computing.Load()) < Threads() }
