package tensor

import (
	"runtime/debug"
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
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

// allocIfAvailable calls take, which allocates size bytes, if that much memory is available and the
// process stays below its limit, and reports whether it did.
func allocIfAvailable(size int, take func()) bool {
	if size < minChecked {
		return membudget.Reserve(int64(size), take)
	}
	reserveMu.Lock()
	defer reserveMu.Unlock()
	return isAvailableLocked(int64(size)) && membudget.Reserve(int64(size), take)
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
