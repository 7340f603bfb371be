package membudget

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/weft-ml/weft/internal/sys/tensormem"
)

// inUse returns the number of bytes that the process has mapped and not returned to the system, and
// the part of them that the next allocations do not reuse.
func inUse() (used, mapped int64) {
	s := [...]metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s[:])
	mapped = int64(s[0].Value.Uint64() - s[1].Value.Uint64())
	return mapped - int64(s[2].Value.Uint64()), mapped
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
