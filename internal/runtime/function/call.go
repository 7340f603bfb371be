package function

import (
	"sync"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// function is a function with its attributes whose whole body runs on one device. It implements
// kernel.Function.
type function struct {
	runtime *Runtime
	fn      opdef.Func
	op      *opdef.Op
	body    func() (*graph.Body, error)

	prepared preparation // of the following fields
	exec     *executor.Executor
	args     int // number of arguments
	rets     int // number of results

	calls sync.Pool // of *call
}

// call is one execution of a function. It is recycled together with its callback.
type call struct {
	f      *function
	live   *stepctx.Calls // of the step; nil for no limit
	done   func([]tensor.Tensor, error)
	rets   []tensor.Tensor
	finish func(error)
}

// Op implements kernel.Function.
func (f *function) Op() *opdef.Op { return f.op }

// Call implements kernel.Function.
func (f *function) Call(ctx *kernel.Context, args []tensor.Tensor, done func(rets []tensor.Tensor, err error)) {
	err := f.prepared.once(f.compile)
	if err == nil {
		err = checkCall(ctx, f.fn.Name, f.args, len(args))
	}
	if err != nil {
		releaseAll(args)
		done(nil, err)
		return
	}
	c, _ := f.calls.Get().(*call)
	if c == nil {
		c = &call{f: f, rets: make([]tensor.Tensor, f.rets)}
		c.finish = c.end
	}
	c.live, c.done = ctx.Step.Calls, done
	stats, _ := ctx.Stats.(executor.Collector)
	f.exec.RunAsync(ctx.Step, executor.RunOptions{Args: args, Rets: c.rets, Depth: ctx.Depth + 1, Stats: stats}, c.finish)
}

func (f *function) compile() error {
	body, err := f.body()
	if err != nil {
		return err
	}
	prune(body)
	f.args, f.rets = len(body.Args), len(body.Rets)
	f.exec, err = f.runtime.compile(f.fn, body.Graph)
	return err
}

// maxCalls bounds the calls of functions that are in progress in a step. Calls that wait are kept,
// so functions that call each other in a tree would take memory without bound.
const maxCalls = 100_000

// checkCall returns the reason why a function cannot be called. If there is none, it counts the
// call, and the caller must call endCall.
func checkCall(ctx *kernel.Context, name string, want, got int) error {
	switch {
	case got != want:
		return status.InvalidArgumentf("Function %s takes %d arguments, got %d", name, want, got)
	case ctx.Depth >= maxDepth:
		return status.ResourceExhaustedf("Calls of functions are nested more than %d deep, in function %s", maxDepth, name)
	}
	if live := ctx.Step.Calls; live != nil && live.Begin() > maxCalls {
		live.End()
		return status.ResourceExhaustedf("The step has more than %d calls of functions in progress, in function %s", maxCalls, name)
	}
	return nil
}

// endCall ends a call for which checkCall returned nil.
func endCall(live *stepctx.Calls) {
	if live != nil {
		live.End()
	}
}

// end passes the results of a body to the caller.
func (c *call) end(err error) {
	if err == nil {
		err = missing(c.rets)
	}
	endCall(c.live)
	done := c.done
	c.live, c.done = nil, nil
	if err != nil {
		releaseAll(c.rets)
		c.f.calls.Put(c)
		done(nil, err)
		return
	}
	done(c.rets, nil)
	clear(c.rets)
	c.f.calls.Put(c)
}

// missing returns an error if a result has no value.
func missing(rets []tensor.Tensor) error {
	for i := range rets {
		if !rets[i].Initialized() {
			return status.Internalf("Retval[%d] does not have value", i)
		}
	}
	return nil
}

func releaseAll(tensors []tensor.Tensor) {
	for i := range tensors {
		tensors[i].Release()
	}
}
