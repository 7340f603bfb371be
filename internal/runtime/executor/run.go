package executor

import (
	"sync/atomic"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// run is the state of one run of an executor. Its owner has everything but the last group of fields
// to itself.
type run struct {
	p       *program
	step    *kernel.Step
	opts    RunOptions
	done    func(error)     // of RunAsync; nil for Run
	stepCtx stepContext     // of the step; nil if its context does not tell
	stopped <-chan struct{} // closed when the step is cancelled; nil with life
	err     *status.Error   // the first
	over    bool

	ready    []activation // a stack
	root     frame
	inFlight int   // tasks that are not finished, or in the inbox
	inline   *task // for kernels that the owner runs itself
	tasks    *task // recycled, linked by next
	frames   *frame
	iters    []*iteration // recycled, by the index of their frame
	tick     uint
	pace     parallel.Yielder

	completions completionQueue
	queue       runQueue
	parked      atomic.Bool   // the goroutine of Run waits for wake
	wake        chan struct{} // a token makes it the owner, or ends its wait
	refs        atomic.Int32  // goroutines that may touch the run, plus one until it is over
}

// stepContext is a context that can be asked cheaply whether it has ended, and at the price of a look at
// the clock whether its time is over. Who waits makes it watch both first.
type stepContext interface {
	Cancelled() bool
	CancelledOrExpired() bool
	Arm()
}

var _ stepContext = (*stepctx.Context)(nil)

// activation is a node that is ready in an iteration.
type activation struct {
	node *node
	it   *iteration
	dead bool
}

// begin returns the state of a new run, which the caller owns and is a visitor of.
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
	r.step, r.opts, r.pace = step, opts, parallel.Yielder{}
	if r.stepCtx, _ = step.Context.(stepContext); r.stepCtx == nil {
		r.stopped = step.Context.Done()
	}
	r.refs.Store(2)
	r.bind(r.inline)
	it := r.newIteration(&r.root, 0)
	r.root.oldest, r.root.newest = it, it
	for _, n := range p.roots {
		r.activate(n, it, false)
	}
	// The stack hands out the last first.
	for i, j := 0, len(r.ready)-1; i < j; i, j = i+1, j-1 {
		r.ready[i], r.ready[j] = r.ready[j], r.ready[i]
	}
	return r
}

// work runs nodes as the owner, or jobs, as long as there is something for this goroutine. It
// reports whether the run is over.
func (r *run) work(owner bool) (over bool) {
	var pace parallel.Yielder
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
		pace.MaybeYield()
	}
}

// runTask executes a task, unless the step has been cancelled. It reports false if the task is still
// under way.
func (r *run) runTask(t *task) bool {
	r.checkDeadline()
	if r.isStopped() {
		t.err = status.FromContext(r.step.Context, "running the step")
		return true
	}
	return t.executeTimed()
}

// own runs nodes as the owner. It returns when the run is over, or else without the ownership: with
// a job to run, or with nothing because all that is left is under way elsewhere.
func (r *run) runAsOwner() (job *task, over bool) {
	for {
		r.runReady()
		if r.collect() {
			continue
		}
		job := r.queue.takeNewest()
		switch {
		case job != nil && r.inFlight == 1: // nobody else could make progress
			if r.runTask(job) {
				r.complete(job)
			}
			r.pace.MaybeYield()
		case job != nil:
			if r.completions.release() {
				return job, false
			}
			r.queue.put(job)
		case r.inFlight == 0:
			r.end()
			return nil, true
		case r.completions.release():
			return nil, false
		}
	}
}

// pollInterval is how many nodes the owner runs while a job waits, before it calls for help, and before
// it looks at the clock: whether the step's time is over, and whether to offer its core to others.
const pollInterval = 64

// runReady runs ready nodes until there are none.
func (r *run) runReady() {
	for n := 1; len(r.ready) > 0; n++ {
		top := len(r.ready) - 1
		a := r.ready[top]
		r.ready = r.ready[:top]
		if r.isStopped() {
			r.fail(status.FromContext(r.step.Context, "running the step"))
			return
		}
		r.process(a)
		if r.completions.head.Load() != nil {
			r.collect()
		}
		if n%pollInterval == 0 {
			r.checkDeadline()
			r.pace.MaybeYield()
			if r.queue.waiting.Load() > 0 {
				r.startHelper()
			}
		}
	}
}

// isStopped reports whether the step is cancelled.
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

// check ends a step whose time is over. It is called before kernels that take long, and now and
// then between others.
func (r *run) checkDeadline() {
	if r.stepCtx != nil {
		r.stepCtx.CancelledOrExpired()
	}
}

// collect completes the tasks in the inbox.
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

// launch hands a task over to whoever has time first: the owner, when it is through with what is
// cheap, or another goroutine.
func (r *run) enqueue(t *task) {
	r.inFlight++
	if r.queue.put(t) > 1 {
		r.startHelper()
	}
}

// help starts a goroutine for the jobs that wait if a core is idle.
func (r *run) startHelper() {
	if parallel.TryAcquire() {
		r.spawn(false)
	}
}

// spawn starts a goroutine, for which a core was claimed, that works on the run. An owner gives it
// the ownership.
func (r *run) spawn(owner bool) {
	r.refs.Add(1)
	go func() {
		r.runHelper(owner)
		parallel.Release()
	}()
}

// resume goes on with a run that the caller has just become the owner of, on another goroutine: the
// caller is a kernel's callback.
func (r *run) resume() {
	if r.parked.CompareAndSwap(true, false) {
		r.wake <- struct{}{}
		return
	}
	parallel.Acquire()
	r.spawn(true)
}

// park waits until the run is over, which it reports, or until this goroutine, that of Run, is made
// its owner.
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

// assist works on the run, of which this goroutine is a visitor, and leaves it.
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

// leave ends the visits of n refs. The last recycles the state.
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
		r.p.pool.Put(r) // from which collections take what is not used
	}
}

// end is called by the owner when nothing is left to do.
func (r *run) end() {
	r.dropIterations(&r.root)
	for i := range r.opts.Args {
		r.opts.Args[i].Release()
	}
	r.over = true
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

// bind gives a task what is the same for all tasks of a run.
func (r *run) bind(t *task) {
	t.ctx.Step, t.ctx.Device, t.ctx.Depth, t.ctx.Stats = r.step, r.p.e.device, r.opts.Depth, r.opts.Stats
}

func (r *run) freeTask(t *task) {
	t.node, t.it, t.err, t.stats = nil, nil, nil, nil
	t.next = r.tasks
	r.tasks = t
}
