package tensor

import (
	"runtime/debug"
	"sync"

	"github.com/weft-ml/weft/internal/sys/memlimit"
)

// minAsked is the size in bytes from which memory is taken only if there is so much. A process that
// takes more is ended by the system when it writes to it, with all the sessions that it has; an
// error ends one step.
const minAsked = 64 << 20

// left returns how many bytes there are to be had, or false if that is not known. Tests have their
// own.
var left = memlimit.Left

// asking is held from the question until the memory is the process's, whether it is written to at
// once or not: what others ask for meanwhile has to be there besides.
var asking sync.Mutex

// ifThereIsRoom calls take, which allocates size bytes, and reports whether there was memory for
// them.
func ifThereIsRoom(size int, take func()) bool {
	if size < minAsked {
		take()
		return true
	}
	asking.Lock()
	defer asking.Unlock()
	ok := roomLocked(int64(size))
	if ok {
		take()
	}
	return ok
}

func roomLocked(size int64) bool {
	n, known := left()
	if !known || size <= n {
		return true
	}
	if size > n+int64(memlimit.Held()) {
		return false // whatever part of it is garbage
	}
	DropSpare()
	debug.FreeOSMemory() // after a garbage collection
	n, _ = left()
	return size <= n
}
