package function

import (
	"context"
	"errors"
	"sync"

	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// distributed is a function with parts on several devices, or with one part on another task. It
// implements kernel.Function.
type distributed struct {
	runtime *Runtime
	fn      opdef.Func
	op      *opdef.Op
	split   func() (*layout, error)

	prepared preparation // of layout
	*layout
}

// Op implements kernel.Function.
func (f *distributed) Op() *opdef.Op { return f.op }

// Call implements kernel.Function.
func (f *distributed) Call(ctx *kernel.Context, args []tensor.Tensor, done func(rets []tensor.Tensor, err error)) {
	err := f.prepared.once(f.prepare)
	var s Step
	if err == nil {
		s, err = f.admit(ctx, len(args))
	}
	if err != nil {
		releaseAll(args)
		done(nil, err)
		return
	}
	c := &distributedCall{distributed: f, ctx: ctx, args: args, rets: make([]tensor.Tensor, f.layout.rets), done: done, exchange: s}
	c.run()
}

// prepare splits the function.
func (f *distributed) prepare() (err error) {
	f.layout, err = f.split()
	return err
}

// callMemory is about the memory of a call and of each of its parts in bytes: the context, the
// rendezvous and the runs of executors. It is an estimate.
const callMemory = 4 << 10

// admit starts the count of a call and returns the step in which its parts exchange tensors. It
// fails if the step has ended, although the context of the caller may not be cancelled yet. A call
// that exceeds a limit makes all later ones fail: otherwise the calls in progress would make more
// until its error has passed through all of its callers.
func (f *distributed) admit(ctx *kernel.Context, args int) (Step, error) {
	live := ctx.Step.Calls
	if live != nil {
		if err := live.Err(); err != nil {
			return nil, ended(err, f.fn.Name)
		}
	}
	err := checkCall(ctx, f.fn.Name, f.layout.args, args)
	if err == nil && !membudget.Take(int64(1+len(f.locals)+len(f.remotes))*callMemory) {
		endCall(live)
		err = status.ResourceExhaustedf("There is not enough memory for a call of function %s (--memory-limit).", f.fn.Name)
	}
	if err != nil {
		if live != nil && status.CodeOf(err) == status.ResourceExhausted {
			live.Fail(err)
		}
		return nil, err
	}
	s, err := f.begin(ctx.Step)
	if err != nil {
		endCall(live)
	}
	return s, err
}

// ended returns the error of a call after the end of its step, or after the failure of another
// call. It is marked as derived: the step reports the reason itself.
func ended(why error, function string) error {
	e, ok := errors.AsType[*status.Error](why)
	switch {
	case ok:
	case errors.Is(why, context.DeadlineExceeded):
		e = status.DeadlineExceededf("Deadline exceeded while calling %s", function)
	default:
		e = status.Cancelledf("Cancelled while calling %s", function)
	}
	return e.Derive()
}

// begin returns the step in which the parts of a call exchange tensors.
func (f *distributed) begin(parent *kernel.Step) (Step, error) {
	if len(f.remotes) == 0 {
		return localStep{rendezvous.New()}, nil
	}
	return f.runtime.set.cfg.Cluster.Begin(parent)
}

// localStep is the step of a call whose parts are all on this task.
type localStep struct{ *rendezvous.Table }

func (localStep) Run(context.Context, string, string, []string, []tensor.Tensor, []string) ([]tensor.Tensor, error) {
	return nil, status.Internalf("the function has no part on another task")
}

func (h localStep) Fail(err error) { h.Abort(err) }

func (h localStep) End([]string) { h.Close() }

// distributedCall is one execution of a function.
type distributedCall struct {
	*distributed
	ctx  *kernel.Context
	args []tensor.Tensor
	rets []tensor.Tensor
	done func([]tensor.Tensor, error)

	exchange Step        // step in which the parts exchange tensors
	step     kernel.Step // the caller's step with the context and the rendezvous of the call
	cancel   context.CancelCauseFunc
	stop     func() bool // ends the watch over the context

	mu      sync.Mutex
	pending int          // parts that have not ended; guarded by mu
	errs    status.Group // guarded by mu
}

// run starts all parts. A part on this task runs on this goroutine up to its first wait.
func (c *distributedCall) run() {
	ctx, cancel := context.WithCancelCause(c.ctx.Step.Context)
	c.cancel = cancel
	parent := c.ctx.Step
	c.step = kernel.Step{
		ID: parent.ID, Context: ctx, Cancel: c.fail, Rendezvous: c.exchange, Resources: parent.Resources, Session: parent.Session,
		Account: parent.Account, Collectives: parent.Collectives, NewRendezvous: parent.NewRendezvous, Calls: parent.Calls,
	}
	c.stop = context.AfterFunc(ctx, func() { c.exchange.Fail(status.FromContext(ctx, "running "+c.fn.Name)) })
	c.pending = len(c.locals) + len(c.remotes) + 1
	for _, p := range c.remotes {
		go func() { c.ended(guard.Call("a call of function "+c.fn.Name, func() error { return c.runRemote(p) })) }()
	}
	stats, _ := c.ctx.Stats.(executor.Collector)
	for i := range c.locals {
		p := &c.locals[i]
		args := make([]tensor.Tensor, len(c.args))
		for _, k := range p.args {
			args[k], c.args[k] = c.args[k], tensor.Tensor{}
		}
		p.exec.RunAsync(&c.step, executor.RunOptions{Args: args, Rets: c.rets, Depth: c.ctx.Depth + 1, Stats: stats}, c.ended)
	}
	c.ended(nil)
}

// fail cancels the call because of the error of one part. Errors of the other parts are then
// derived from it.
func (c *distributedCall) fail(err error) {
	why := status.From(err).Derive()
	c.cancel(why)
	c.exchange.Fail(why)
}

// ended records the end of a part, or of run itself. The last one finishes the call.
func (c *distributedCall) ended(err error) {
	if err != nil {
		c.fail(err)
	}
	c.mu.Lock()
	c.errs.Add(err)
	c.pending--
	last := c.pending == 0
	c.mu.Unlock()
	if last {
		c.finish()
	}
}

func (c *distributedCall) finish() {
	c.stop()
	c.cancel(nil)
	tasks := make([]string, len(c.remotes))
	for i, p := range c.remotes {
		tasks[i] = p.task
	}
	c.exchange.End(tasks)
	releaseAll(c.args)
	err := c.errs.Summary()
	if err == nil {
		err = missing(c.rets)
	}
	if err != nil {
		c.deliver(err)
		return
	}
	gpu.Gather(c.rets, c.runtime.device.GPU, c.deliver)
}

// deliver ends the call.
func (c *distributedCall) deliver(err error) {
	endCall(c.step.Calls)
	if err != nil {
		releaseAll(c.rets)
		c.done(nil, err)
		return
	}
	c.done(c.rets, nil)
}

// runRemote runs a part on another task and waits for it.
func (c *distributedCall) runRemote(p *remotePart) error {
	args := make([]tensor.Tensor, len(p.args.indices))
	for i, k := range p.args.indices {
		args[i] = c.args[k]
	}
	handle, err := p.register(c.step.Context, c.runtime.set.cfg.Cluster)
	if err != nil {
		return err
	}
	for i := range args {
		if gpu.IsPlaced(&args[i], nil) {
			continue
		}
		if args[i], err = gpu.PlaceNow(args[i].Retain(), nil); err != nil {
			return err
		}
	}
	rets, err := c.exchange.Run(c.step.Context, p.task, handle, p.args.keys, args, p.rets.keys)
	if err != nil {
		return err
	}
	for i, k := range p.rets.indices {
		c.rets[k] = rets[i]
	}
	return nil
}
