package parallel

import "runtime"

// LeaveRoom lets loops and kernels use as many threads as Go's scheduler has now, and gives the
// scheduler one more. It is for programs that serve a network, and called once, before the first
// loop.
//
// When every thread of the scheduler computes, nobody waits for the network, and what arrives is
// seen up to 10 ms later. With one to spare there is always a thread that the operating system
// wakes at once.
func ReserveNetworkThread() {
	n := runtime.GOMAXPROCS(0)
	SetThreads(n)
	runtime.GOMAXPROCS(n + 1)
}
