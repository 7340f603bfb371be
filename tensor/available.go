package tensor

import (
	"runtime/debug"
	"sync"

	"github.com/weft-ml/weft/internal/sys/memlimit"
)

// minChecked is the smallest allocation, in bytes, for which available memory is checked first. The
// operating system ends a process that writes to more memory than there is, with all its sessions;
// an error ends one step.
const minChecked = 64 << 20

// left returns the available memory in bytes, or false if it is unknown. Tests replace it.
var left = memlimit.Left

// reserveMu is held from the check until the memory is allocated, so that concurrent allocations do
// not count the same memory as available.
var reserveMu sync.Mutex

// allocIfAvailable calls take, which allocates size bytes, if that much memory is available, and
// reports whether it did.
func allocIfAvailable(size int, take func()) bool {
	if size < minChecked {
		take()
		return true
	}
	reserveMu.Lock()
	defer reserveMu.Unlock()
	ok := isAvailableLocked(int64(size))
	if ok {
		take()
	}
	return ok
}

func isAvailableLocked(size int64) bool {
	n, known := left()
	if !known || size <= n {
		return true
	}
	if size > n+int64(memlimit.Held()) {
		return false // even if all memory of the process were garbage
	}
	dropFree()
	debug.FreeOSMemory() // runs a garbage collection
	n, _ = left()
	return size <= n
}
