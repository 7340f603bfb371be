package function

import (
	"sync/atomic"

	"github.com/weft-ml/weft/tensor"
)

// trampoline makes calls one after another. A call that returns at once is followed by the next in
// a loop, and one that returns later goes on from its callback: however many there are, the stack
// does not grow.
type trampoline struct {
	state    atomic.Int32
	begin    func(returned func([]tensor.Tensor, error))
	end      func([]tensor.Tensor, error) bool
	callback func([]tensor.Tensor, error)
}

// States of a call.
const (
	calling  int32 = iota // neither the call nor the callback has come back
	called                // the call has
	returned              // the callback has
)

// repeat calls begin, which makes a call with the given callback, and end with what that was given,
// until end reports false. It returns while a call is under way.
func (t *trampoline) repeat(begin func(func([]tensor.Tensor, error)), end func([]tensor.Tensor, error) bool) {
	t.begin, t.end, t.callback = begin, end, t.come
	t.run()
}

func (t *trampoline) run() {
	for goOn := true; goOn; {
		t.state.Store(calling)
		t.begin(t.callback)
		goOn = !t.state.CompareAndSwap(calling, called) && t.state.Load() == returned
	}
}

// over is the state after the last call.
const over int32 = 3

func (t *trampoline) come(rets []tensor.Tensor, err error) {
	after := over
	if t.end(rets, err) {
		after = returned
	}
	if t.state.Swap(after) == called && after == returned {
		t.run()
	}
}
