package function

import (
	"sync"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/executor"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// function is a function with its attributes. It implements kernel.Function.
type function struct {
	runtime *Runtime
	fn      opdef.Func
	op      *opdef.Op

	prepare sync.Once // guards the writing of the next fields
	err     error
	exec    *executor.Executor
	args    int // their number
	rets    int

	calls sync.Pool // of *call
}

// call is one execution of a function. It is reused with its callback.
type call struct {
	f      *function
	done   func([]tensor.Tensor, error)
	rets   []tensor.Tensor
	finish func(error)
}

// Op implements kernel.Function.
func (f *function) Op() *opdef.Op { return f.op }

// Call implements kernel.Function.
func (f *function) Call(ctx *kernel.Context, args []tensor.Tensor, done func(rets []tensor.Tensor, err error)) {
	if err := f.check(ctx, args); err != nil {
		for i := range args {
			args[i].Release()
		}
		done(nil, err)
		return
	}
	c, _ := f.calls.Get().(*call)
	if c == nil {
		c = &call{f: f, rets: make([]tensor.Tensor, f.rets)}
		c.finish = c.end
	}
	c.done = done
	stats, _ := ctx.Stats.(executor.Collector)
	f.exec.RunAsync(ctx.Step, executor.RunOptions{Args: args, Rets: c.rets, Depth: ctx.Depth + 1, Stats: stats}, c.finish)
}

// check prepares the function and reports why it cannot be called.
func (f *function) check(ctx *kernel.Context, args []tensor.Tensor) error {
	f.prepare.Do(func() {
		var body *graph.Body
		f.exec, body, f.err = f.runtime.compile(f.fn)
		if f.err == nil {
			f.args, f.rets = len(body.Args), len(body.Rets)
		}
	})
	switch {
	case f.err != nil:
		return f.err
	case len(args) != f.args:
		return status.InvalidArgumentf("Function %s takes %d arguments, got %d", f.fn.Name, f.args, len(args))
	case ctx.Depth >= maxDepth:
		return status.ResourceExhaustedf("Calls of functions are nested more than %d deep, in function %s", maxDepth, f.fn.Name)
	}
	return nil
}

// end passes on what a body has returned.
func (c *call) end(err error) {
	if err == nil {
		err = c.missing()
	}
	done := c.done
	c.done = nil
	if err != nil {
		for i := range c.rets {
			c.rets[i].Release()
		}
		c.f.calls.Put(c)
		done(nil, err)
		return
	}
	done(c.rets, nil)
	clear(c.rets)
	c.f.calls.Put(c)
}

// missing reports a result without value.
func (c *call) missing() error {
	for i := range c.rets {
		if !c.rets[i].Initialized() {
			return status.Internalf("Retval[%d] does not have value", i)
		}
	}
	return nil
}
