package function

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// distributed is a function whose parts are on several devices, or on one of another task. It
// implements kernel.Function.
type distributed struct {
	runtime *Runtime
	fn      opdef.Func
	op      *opdef.Op
	split   func() (*layout, error)

	prepare sync.Once // guards the writing of the next fields
	err     error
	*layout
}

// Op implements kernel.Function.
func (f *distributed) Op() *opdef.Op { return f.op }

// Call implements kernel.Function.
func (f *distributed) Call(ctx *kernel.Context, args []tensor.Tensor, done func(rets []tensor.Tensor, err error)) {
	f.prepare.Do(func() {
		if f.layout, f.err = f.split(); f.err != nil {
			f.layout = &layout{}
		}
	})
	err := checkCall(ctx, f.fn.Name, f.err, f.layout.args, len(args))
	var s Step
	if err == nil {
		s, err = f.begin(ctx.Step)
	}
	if err != nil {
		releaseAll(args)
		done(nil, err)
		return
	}
	c := &distributedCall{distributed: f, ctx: ctx, args: args, rets: make([]tensor.Tensor, f.layout.rets), done: done, own: s}
	c.run()
}

// begin returns the step of a call.
func (f *distributed) begin(parent *kernel.Step) (Step, error) {
	if len(f.remotes) == 0 {
		return here{rendezvous.New()}, nil
	}
	return f.runtime.family.cfg.Cluster.Begin(parent)
}

// here is the step of a call that stays on this task.
type here struct{ *rendezvous.Table }

func (here) Run(context.Context, string, string, []string, []tensor.Tensor, []string) ([]tensor.Tensor, error) {
	return nil, status.Internalf("the function has no part on another task")
}

func (h here) Fail(err error) { h.Abort(err) }

func (h here) End([]string) { h.Close() }

// distributedCall is one execution of a function.
type distributedCall struct {
	*distributed
	ctx  *kernel.Context
	args []tensor.Tensor
	rets []tensor.Tensor
	done func([]tensor.Tensor, error)

	own    Step        // of the call
	step   kernel.Step // that of the caller, with what is the call's own
	cancel context.CancelCauseFunc
	stop   func() bool // ends the watch over the step

	mu      sync.Mutex
	pending int          // guarded by mu; parts that have not ended
	errs    status.Group // guarded by mu
}

// run starts all parts. The parts on this task run on this goroutine as far as they need not wait.
func (c *distributedCall) run() {
	ctx, cancel := context.WithCancelCause(c.ctx.Step.Context)
	c.cancel = cancel
	parent := c.ctx.Step
	c.step = kernel.Step{
		ID: parent.ID, Context: ctx, Cancel: c.fail, Rendezvous: c.own, Resources: parent.Resources, Session: parent.Session,
		Collectives: parent.Collectives, NewRendezvous: parent.NewRendezvous,
	}
	c.stop = context.AfterFunc(ctx, func() { c.own.Fail(status.FromContext(ctx, "running "+c.fn.Name)) })
	c.pending = len(c.locals) + len(c.remotes) + 1
	for _, p := range c.remotes {
		go func() { c.ended(c.runRemote(p)) }()
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

// fail ends the call because of an error of one part. What the others then report follows from it.
func (c *distributedCall) fail(err error) {
	why := status.From(err).Derive()
	c.cancel(why)
	c.own.Fail(why)
}

// ended takes note of the end of a part, or of run itself. The last to end ends the call.
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
	c.own.End(tasks)
	releaseAll(c.args)
	err := c.errs.Summary()
	if err == nil {
		err = missing(c.rets)
	}
	if err != nil {
		releaseAll(c.rets)
		c.done(nil, err)
		return
	}
	c.done(c.rets, nil)
}

// runRemote runs the part on another task and waits for it.
func (c *distributedCall) runRemote(p *remotePart) error {
	args := make([]tensor.Tensor, len(p.args.indices))
	for i, k := range p.args.indices {
		args[i] = c.args[k]
	}
	handle, err := p.register(c.step.Context, c.runtime.family.cfg.Cluster)
	if err != nil {
		return err
	}
	rets, err := c.own.Run(c.step.Context, p.task, handle, p.args.keys, args, p.rets.keys)
	if err != nil {
		return err
	}
	for i, k := range p.rets.indices {
		c.rets[k] = rets[i]
	}
	return nil
}
