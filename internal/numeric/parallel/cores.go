package parallel

import "sync/atomic"

// busyWorkers counts the goroutines of the process that compute: those between Acquire and Release,
// and the workers of loops.
//
// The simple design gives each loop all cores. Kernels that run concurrently then compete for the
// same ones: with two goroutines that multiply matrices on two cores, 11% of all samples were
// workers that waited for a core, and a product took 11.3 µs instead of 7.3. So a loop, an executor
// or a reader of a connection that could use another core checks this count first.
//
// The count is process-wide because the cores are the process's: kernels of all sessions, and of
// all servers in one process, run on the same cores.
var busyWorkers atomic.Int32

// Acquire counts the calling goroutine as computing until Release. It never blocks, and may exceed
// Threads. Loops that the goroutine runs need no count of their own.
func Acquire() { busyWorkers.Add(1) }

// Release ends the effect of Acquire or of a successful TryAcquire.
func Release() { busyWorkers.Add(-1) }

// TryAcquire counts one more goroutine as computing if fewer than Threads do, and reports whether
// it did. It may fail if another goroutine calls it at the same time.
func TryAcquire() bool { return tryAcquire(Threads()) }

func tryAcquire(threads int) bool {
	n := busyWorkers.Load()
	return int(n) < threads && busyWorkers.CompareAndSwap(n, n+1)
}

// Computing returns the number of goroutines that compute.
func Computing() int { return int(busyWorkers.Load()) }

// Busy reports whether any goroutine computes.
func Busy() bool { return busyWorkers.Load() > 0 }

// HasIdleCore reports whether fewer goroutines than Threads compute.
func HasIdleCore() bool { return int(busyWorkers.Load()) < Threads() }
