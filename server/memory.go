package server

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/weft-ml/weft/internal/sys/tensormem"
)

// reclaimer returns memory to the machine that the process holds and does not use: garbage, and the
// free lists of tensors. It may be used concurrently.
type reclaimer struct {
	mu       sync.Mutex
	released uint64 // bytes allocated by the process until the last release; guarded by mu
}

// minReclaim is the number of allocated bytes from which a release is worth two garbage
// collections.
const minReclaim = 8 << 20

// release returns unused memory to the machine.
func (r *reclaimer) release() { r.releaseFrom(0) }

// releaseIfLarge is release, unless little has been allocated since the last one. A task calls it
// at the end of its last session, because there may never be another one.
func (r *reclaimer) releaseIfLarge() { r.releaseFrom(minReclaim) }

// releaseFrom is release if at least that many bytes were allocated since the last one, which it
// reports.
func (r *reclaimer) releaseFrom(least uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if allocated()-r.released < least {
		return false
	}
	tensormem.DropFree()
	runtime.GC() // pools keep what they have until the second collection
	debug.FreeOSMemory()
	r.released = allocated()
	return true
}

// allocated returns the number of bytes that the process has allocated since it began.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
