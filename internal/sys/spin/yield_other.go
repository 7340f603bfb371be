//go:build !linux

package spin

// YieldThread is empty: sched_yield is called on Linux only.
func YieldThread() {}
