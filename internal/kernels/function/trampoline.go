package function

import (
	"sync/atomic"

	"github.com/weft-ml/weft/tensor"
)

// trampoline makes calls one after another. After a call that completes synchronously, a loop
// starts the next; after an asynchronous completion, the callback continues. The stack therefore
// does not grow with the number of calls.
type trampoline struct {
	state    atomic.Int32
	begin    func(returned func([]tensor.Tensor, error))
	end      func([]tensor.Tensor, error) bool
	callback func([]tensor.Tensor, error)
}

// States of a call.
const (
	calling  int32 = iota // neither the call nor the callback has completed
	called                // the call has returned
	returned              // the callback has been called
)

// repeat calls begin, which starts a call with the given callback, and passes the results to end,
// until end returns false. It may return while a call is in progress.
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
