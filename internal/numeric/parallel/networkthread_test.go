package parallel

import (
	"runtime"
	"testing"
)

func TestReserveNetworkThread(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	setThreads(t, 1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	ReserveNetworkThread()
	if Threads() != before || runtime.GOMAXPROCS(0) != before+1 {
		t.Errorf("%d threads of loops, %d of the scheduler; want %d and %d", Threads(), runtime.GOMAXPROCS(0), before, before+1)
	}
}
