package executor

import (
	"runtime/debug"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// run is the state of one run of an executor. All fields except those of the last group belong to
// the run's owner, see the package documentation.
type run struct {
	p       *program
	step    *kernel.Step
	opts    RunOptions
	done    func(error)     // of RunAsync; nil for Run
	stepCtx stepContext     // of the step; nil if its context has no such methods
	stopped <-chan struct{} // closed when the step is cancelled; nil if stepCtx is set
	err     *status.Error   // the first error
	over    bool

	ready    []activation // a stack
	root     frame
	inFlight int             // tasks that are enqueued or asynchronous and not concluded
	inline   *task           // for kernels that the owner executes itself
	tasks    *task           // recycled tasks, linked by next
	frames   *frame          // recycled frames, linked by next
	iters    []*iteration    // recycled iterations, by the index of their frame
	meter    membudget.Meter // of iterations and tasks that are not recycled
	tick     uint            // calls of cheap kernels, for sampling
	executed int             // nodes that the owner has executed or queued
	yielder  parallel.Yielder

	completions completionQueue
	queue       runQueue
	parked      atomic.Bool // the goroutine of Run waits for wake
	// a token wakes the goroutine of Run: it is the owner, or the run is over
	wake chan struct{}
	refs atomic.Int32 // goroutines that may access the run, plus one until the run is over
}

// stepContext is a context that can be polled. Cancelled costs one atomic load and ignores a
// deadline whose timer is not armed. CancelledOrExpired also reads the clock. Arm must be called
// before blocking on Done. *stepctx.Context implements it.
type stepContext interface {
	Cancelled() bool
	CancelledOrExpired() bool
	Arm()
}

var _ stepContext = (*stepctx.Context)(nil)

// activation is a ready node in an iteration.
type activation struct {
	node *node
	it   *iteration
	dead bool
}

// begin returns the state of a new run. The caller owns the run and holds one of its two
// references.
func (e *Executor) begin(step *kernel.Step, opts RunOptions) *run {
	p := e.program()
	if opts.Stats != nil {
		p = &e.plain
	}
	r := p.spare.Swap(nil)
	if r == nil {
		r, _ = p.pool.Get().(*run)
	}
	if r == nil {
		r = &run{p: p, wake: make(chan struct{}, 1), iters: make([]*iteration, len(p.frames))}
		r.root.info = p.frames[0]
		r.inline = r.newTask()
	}
	r.step, r.opts, r.yielder = step, opts, parallel.Yielder{}
	if r.stepCtx, _ = step.Context.(stepContext); r.stepCtx == nil {
		r.stopped = step.Context.Done()
	}
	r.refs.Store(2)
	r.bind(r.inline)
	it := r.newIteration(&r.root, 0)
	r.root.oldest, r.root.newest = it, it
	if it == nil {
		return r // it has failed
	}
	for _, n := range p.roots {
		r.activate(n, it, false)
	}
	// The owner takes nodes from the end of the stack.
	for i, j := 0, len(r.ready)-1; i < j; i, j = i+1, j-1 {
		r.ready[i], r.ready[j] = r.ready[j], r.ready[i]
	}
	return r
}

// work executes nodes as the owner, or queued tasks as a helper, until no work is left for this
// goroutine. It reports whether the run is over.
func (r *run) work(owner bool) (over bool) {
	if r.p.e.device.GPU != nil {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	}
	var yielder parallel.Yielder
	for {
		var t *task
		if owner {
			if t, over = r.runAsOwner(); t == nil {
				return over
			}
		} else if t = r.queue.takeOldest(); t == nil {
			return false
		}
		owner = r.runTask(t) && r.completions.push(t)
		yielder.MaybeYield()
	}
}

// runTask executes a task, or fails it if the step has been cancelled. It returns false if the task
// is still in flight.
func (r *run) runTask(t *task) bool {
	r.checkDeadline()
	if r.isStopped() {
		t.err = status.FromContext(r.step.Context, "running the step")
		return true
	}
	return t.executeTimed()
}

// runAsOwner executes nodes as the owner until the run is over or it has given up the ownership. In
// the latter case it returns the task that this goroutine executes next, or nil if all remaining
// tasks are in flight on other goroutines.
func (r *run) runAsOwner() (t *task, over bool) {
	for {
		r.runReady()
		if r.collect() {
			continue
		}
		t := r.queue.takeNewest()
		switch {
		case t != nil && r.inFlight == 1: // no other goroutine could make progress
			if r.runTask(t) {
				r.complete(t)
			}
			r.yielder.MaybeYield()
		case t != nil:
			if r.completions.release() {
				return t, false
			}
			r.queue.put(t)
		case r.inFlight == 0:
			r.end()
			return nil, true
		case r.completions.release():
			return nil, false
		}
	}
}

// pollInterval is the number of nodes that the owner executes between checks. A check reads the
// clock for the deadline, offers the core to other goroutines, and starts a helper if tasks are
// queued. Reading the clock takes 38 ns, a third of a small node, so it is not done for every node.
const pollInterval = 64

// runReady processes ready nodes until the stack is empty or the step is cancelled.
func (r *run) runReady() {
	n := 1
	for ; len(r.ready) > 0; n++ {
		top := len(r.ready) - 1
		a := r.ready[top]
		r.ready = r.ready[:top]
		if r.isStopped() {
			r.executed += n - 1
			r.fail(status.FromContext(r.step.Context, "running the step"))
			return
		}
		r.process(a)
		if r.completions.head.Load() != nil {
			r.collect()
		}
		if n%pollInterval == 0 {
			r.checkDeadline()
			r.yielder.MaybeYield()
			if r.queue.waiting.Load() > 0 {
				r.startHelper()
			}
		}
	}
	r.executed += n - 1
}

// isStopped reports whether the step is cancelled. It does not read the clock.
func (r *run) isStopped() bool {
	if r.stepCtx != nil {
		return r.stepCtx.Cancelled()
	}
	select {
	case <-r.stopped:
		return true
	default:
		return false
	}
}

// checkDeadline cancels a step whose deadline has passed. It is called before expensive kernels,
// and periodically between cheap ones.
func (r *run) checkDeadline() {
	if r.stepCtx != nil {
		r.stepCtx.CancelledOrExpired()
	}
}

// collect concludes the tasks in the completion queue. It returns false if there were none.
func (r *run) collect() bool {
	t := r.completions.take()
	if t == nil {
		return false
	}
	for t != nil {
		following := t.next
		r.complete(t)
		t = following
	}
	return true
}

// enqueue adds an expensive task to the run queue. The owner executes it when no cheap node is
// ready, unless a helper takes it first.
func (r *run) enqueue(t *task) {
	r.inFlight++
	if r.queue.put(t) > 1 {
		r.startHelper()
	}
}

// startHelper starts a helper goroutine for queued tasks if a core is idle.
func (r *run) startHelper() {
	if parallel.TryAcquire() {
		r.spawn(false)
	}
}

// spawn starts a goroutine that works on the run. The caller has acquired a core for it. If owner
// is set, the caller passes its ownership to the goroutine.
func (r *run) spawn(owner bool) {
	r.refs.Add(1)
	go func() {
		r.runHelper(owner)
		parallel.Release()
	}()
}

// resume continues a run whose ownership the caller has just gained. The caller is the callback of
// a kernel, so the work goes to another goroutine: to that of Run if it is parked, or else to a new
// one.
func (r *run) resume() {
	if r.parked.CompareAndSwap(true, false) {
		r.wake <- struct{}{}
		return
	}
	parallel.Acquire()
	r.spawn(true)
}

// park blocks the goroutine of Run until it becomes the owner or the run is over. It reports
// whether the run is over.
func (r *run) park() (over bool) {
	if r.stepCtx != nil {
		r.stepCtx.Arm()
	}
	parallel.Release()
	r.parked.Store(true)
	<-r.wake
	r.parked.Store(false)
	parallel.Acquire()
	return r.over
}

// runHelper works on the run and drops the reference of this goroutine. If the run ends here, it
// wakes the goroutine of Run, or calls done.
func (r *run) runHelper(owner bool) {
	switch over := r.work(owner); {
	case !over:
		r.unref(1)
	case r.done == nil:
		r.wake <- struct{}{}
		r.unref(1)
	default:
		done, err := r.done, r.result()
		r.unref(2)
		done(err)
	}
}

// unref drops n references. The call that drops the last one recycles the state.
func (r *run) unref(n int32) {
	if r.refs.Add(-n) != 0 {
		return
	}
	if r.err == nil {
		r.p.e.countRun()
	}
	r.step, r.opts, r.done, r.stepCtx, r.stopped, r.err, r.over = nil, RunOptions{}, nil, nil, nil, nil, false
	r.inline.ctx = kernel.Context{}
	for t := r.tasks; t != nil; t = t.next {
		t.ctx = kernel.Context{}
	}
	if r.p != r.p.e.program() || !r.p.spare.CompareAndSwap(nil, r) {
		r.p.pool.Put(r) // garbage collections clear the pool
	}
}

// end releases the remaining values of a run that has no work left. The owner calls it.
func (r *run) end() {
	r.dropIterations(&r.root)
	for i := range r.opts.Args {
		r.opts.Args[i].Release()
	}
	r.over = true
	if o := r.p.e.device.Observer; o != nil {
		o.NodesExecuted(r.executed)
	}
	r.executed = 0
}

func (r *run) result() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

func (r *run) newTask() *task {
	t := r.tasks
	if t == nil {
		t = &task{run: r}
		t.finish = t.done
	} else {
		r.tasks = t.next
	}
	r.bind(t)
	return t
}

// bind sets the fields of a task that are the same for all tasks of a run.
func (r *run) bind(t *task) {
	t.ctx.Step, t.ctx.Device, t.ctx.Depth, t.ctx.Stats = r.step, r.p.e.device, r.opts.Depth, r.opts.Stats
}

func (r *run) freeTask(t *task) {
	t.node, t.it, t.err, t.stats = nil, nil, nil, nil
	t.next = r.tasks
	r.tasks = t
}
