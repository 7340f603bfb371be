package device

import (
	"sync"
	"sync/atomic"
)

// detours counts the executions of operations that have no kernel for GPUs, by operation.
var detours sync.Map // *atomic.Int64 by string

// CountDetour counts an execution of an operation on the CPU for a GPU.
func CountDetour(op string) {
	n, ok := detours.Load(op)
	if !ok {
		n, _ = detours.LoadOrStore(op, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1) //nolint:forcetypeassert // the map has no other values
}

// Detours returns the numbers of executions of operations on the CPU for GPUs of this process.
func Detours() map[string]int64 {
	out := map[string]int64{}
	for op, n := range detours.Range {
		out[op.(string)] = n.(*atomic.Int64).Load() //nolint:forcetypeassert // the map has no other values
	}
	return out
}
