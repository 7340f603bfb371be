package membudget

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/weft-ml/weft/internal/sys/tensormem"
)

// inUse returns the number of bytes that the process has mapped, less those that the next
// allocations reuse or that were returned to the system.
func inUse() int64 {
	s := [...]metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s[:])
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64() - s[2].Value.Uint64())
}

// collectGarbage drops the free lists of tensors and collects garbage. The first collection leaves
// what is in pools.
func collectGarbage() {
	if tensormem.DropFree != nil {
		tensormem.DropFree()
	}
	runtime.GC()
	debug.FreeOSMemory()
}
