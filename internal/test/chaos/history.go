package main

import (
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind is what a client has asked for.
type kind int

const (
	add kind = iota
	read
	enqueue
	dequeue
)

// input is a request to the counter or to the queue.
type input struct {
	kind  kind
	value int64 // enqueue
}

// output is what a client has learned. An unknown outcome may have had its effect, or not.
type output struct {
	value   int64
	unknown bool
}

// counterModel is a variable that clients add 1 to.
var counterModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, out any) (bool, any) {
		n := state.(int64)               //nolint:forcetypeassert // see Init
		i, o := in.(input), out.(output) //nolint:forcetypeassert // see history
		if i.kind == add {
			return true, n + 1
		}
		return o.unknown || o.value == n, n
	},
}

// queueModel is a queue of different numbers, first in first out. Its state is a string of numbers,
// which porcupine can compare.
var queueModel = porcupine.Model{
	Init: func() any { return []int64(nil) },
	Step: func(state, in, out any) (bool, any) {
		q := state.([]int64)             //nolint:forcetypeassert // see Init
		i, o := in.(input), out.(output) //nolint:forcetypeassert // see history
		switch {
		case i.kind == enqueue:
			return true, append(slices.Clone(q), i.value)
		case len(q) == 0:
			return o.unknown, q
		case o.unknown:
			return true, q[1:]
		}
		return q[0] == o.value, q[1:]
	},
	Equal: func(a, b any) bool { return slices.Equal(a.([]int64), b.([]int64)) }, //nolint:forcetypeassert // see Init
}

// A history records the operations of all clients on one object.
type history struct {
	start time.Time

	mu  sync.Mutex
	ops []porcupine.Operation // guarded by mu
}

// record adds an operation. One with an unknown outcome may take effect at any time after its call.
func (h *history) record(client int, in input, out output, called time.Time) {
	returned := time.Since(h.start)
	if out.unknown {
		returned = 1<<62 - 1
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: client, Input: in, Output: out, Call: int64(called.Sub(h.start)), Return: int64(returned),
	})
}

// check reports whether the history has an order that the model allows.
func (h *history) check(m porcupine.Model, timeout time.Duration) (porcupine.CheckResult, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// an operation with an unknown outcome has no end, so it gets a client of its own
	for i := range h.ops {
		if h.ops[i].Output.(output).unknown { //nolint:forcetypeassert // see record
			h.ops[i].ClientId = 1000 + i
		}
	}
	return porcupine.CheckOperationsTimeout(m, h.ops, timeout), len(h.ops)
}
