package server

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/weft-ml/weft/tensor"
)

// reserve is what the process has of memory beyond what it uses: garbage, and buffers of tensors
// that wait to be used again.
var reserve struct {
	mu sync.Mutex
	// guarded by mu; bytes that had been allocated in all when the reserve was given back last
	given uint64
}

// muchReserve is how many bytes must have been allocated for the reserve to be worth two garbage
// collections.
const muchReserve = 8 << 20

// giveMemoryBack gives the reserve back to the machine.
func giveMemoryBack() { giveBack(0) }

// giveMuchBack does so unless the reserve is small. It is for the end of a task's last session:
// what it kept for the next step nobody may ever want again.
func giveMuchBack() { giveBack(muchReserve) }

// giveBack gives the reserve back if it may be as large as that, and reports whether it did.
func giveBack(least uint64) bool {
	reserve.mu.Lock()
	defer reserve.mu.Unlock()
	if allocated()-reserve.given < least {
		return false
	}
	tensor.DropSpare()
	runtime.GC() // pools keep what they have until the second collection
	debug.FreeOSMemory()
	reserve.given = allocated()
	return true
}

// allocated returns how many bytes the process has allocated since it began.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
