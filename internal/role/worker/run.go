package worker

import (
	"context"
	"errors"
	"slices"
	"sync"

	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// run is one run of a registered graph: the state that its executors share. It implements
// kernel.Rendezvous.
type run struct {
	worker  *Worker
	session *session
	graph   *registered
	step    *step
	local   kernel.Resources  // resources of the run alone: stacks, tensor arrays
	initial *rendezvous.Table // receives the initial tensors; nil if there are none
	view    kernel.Step       // the step, as kernels see it

	ctx   stepctx.Context // context of the executors; its cause is the error that ended the run
	calls stepctx.Calls   // calls of functions in progress
}

// runPool is a free list of runs that nothing refers to.
var runPool = sync.Pool{New: func() any {
	r := new(run)
	r.view.Cancel = r.fail
	return r
}}

func (w *Worker) newRun(s *session, graph *registered) *run {
	r := runPool.Get().(*run)
	r.worker, r.session, r.graph = w, s, graph
	return r
}

// end removes the run from its step. It recycles a run that succeeded and to which nothing can
// refer, and reports whether it did: kernels without state, and their outputs, keep nothing of a
// step.
func (r *run) end(succeeded bool) (recyclable bool) {
	r.ctx.Finish()
	quiet := succeeded && r.graph.stateless && r.initial == nil && r.ctx.Reusable()
	if !quiet {
		r.step.markHeld()
	}
	if alive := r.worker.steps.finish(r.step, r); !alive || !quiet || !r.ctx.TryReset() {
		return false
	}
	r.worker, r.session, r.graph, r.step = nil, nil, nil, nil
	r.view = kernel.Step{Cancel: r.view.Cancel}
	runPool.Put(r)
	return true
}

// RunGraph runs a registered graph as part of a step. It stores the tensors that the master sends,
// runs the graph on all its devices, and returns the tensors under the keys that the master
// requests. The error is in the response if the request asks for that.
func (w *Worker) RunGraph(ctx context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error) {
	resp := req.Into
	if resp == nil {
		resp = &message.RunGraphResponse{}
	}
	err := w.runGraph(ctx, req, resp)
	if err == nil {
		return resp, nil
	}
	for i := range resp.Recv {
		resp.Recv[i].Tensor.Release()
	}
	if !req.StoreErrorsInBody {
		return nil, err
	}
	return &message.RunGraphResponse{StepStats: resp.StepStats, Err: status.From(err)}, nil
}

func (w *Worker) runGraph(ctx context.Context, req *message.RunGraphRequest, resp *message.RunGraphResponse) error {
	method := "RunGraph (Worker)"
	if req.IsPartial {
		method = "PartialRunGraph (Worker)"
	}
	if err := w.recent.Track(req.RequestID, method, req.GraphHandle); err != nil {
		return err
	}
	if err := failpoint.Hit("worker/run-graph"); err != nil {
		return err
	}
	s, err := w.session(ctx, req.Session, req.SessionCreated)
	if err != nil {
		return err
	}
	graph, err := s.graph(req.GraphHandle)
	if err != nil {
		return err
	}
	r := w.newRun(s, graph)
	if req.IsPartial {
		return w.runPartial(ctx, r, req, resp)
	}
	defer graph.release()
	r.ctx.Begin(ctx)
	if r.step, err = w.steps.begin(req.StepID, r); err != nil {
		r.ctx.Finish()
		return err
	}
	succeeded := false
	defer func() { resp.Recyclable = r.end(succeeded) }()
	if err = r.do(ctx, req, resp); err != nil {
		return peer.FromContext(ctx).ErrorFor(err, graph.summary)
	}
	succeeded = true
	return nil
}

// do runs the graph in its step.
func (r *run) do(ctx context.Context, req *message.RunGraphRequest, resp *message.RunGraphResponse) error {
	if r.session.isClosed() { // since it was looked up: nothing else ends the step
		r.worker.steps.cleanup(req.StepID)
		return r.worker.sessionNotFound(req.Session)
	}
	if err := r.store(req.Send); err != nil {
		return err
	}
	r.requestInitialTensors()
	if r.initial != nil {
		defer r.initial.Close()
	}
	if req.OnReceivesSent != nil {
		req.OnReceivesSent()
	}
	if err := r.execute(newStats(req.Exec, r), resp); err != nil {
		if ctx.Err() != nil && status.CodeOf(err) == status.Cancelled {
			err = status.From(err).Derive() // the master knows the cause
		}
		return err
	}
	if req.Exec.GetRecordPartitionGraphs() {
		var err error
		if resp.PartitionGraphs, err = r.graph.defs(); err != nil {
			return err
		}
	}
	return r.takeAll(req.RecvKeys, resp)
}

// store sends the tensors of the master to the nodes that receive them.
func (r *run) store(sends []message.NamedTensor) error {
	if err := failpoint.Hit("worker/store-feeds"); err != nil {
		return err
	}
	for i := range sends {
		key := sends[i].Name
		if !r.graph.keys[key] {
			if _, err := kernel.ParseKey(key); err != nil {
				return err
			}
		}
		if !sends[i].Tensor.Initialized() {
			return status.InvalidArgumentf("Invalid TensorProto for feed value %d", i)
		}
		t, err := r.resolveFeed(&sends[i].Tensor)
		if err != nil {
			return err
		}
		if err := r.step.table.SendText(key, t, false); err != nil {
			return err
		}
	}
	return nil
}

// resolveFeed returns a feed, with a reference. For a handle of a session tensor, it returns that
// tensor.
func (r *run) resolveFeed(t *tensor.Tensor) (tensor.Tensor, error) {
	if t.DType() != tensor.Resource || t.NumElements() != 1 {
		return t.Retain(), nil
	}
	h := tensor.Value[*tensor.Handle](t)
	if h == nil || h.Container != kernel.SessionTensorType {
		return t.Retain(), nil
	}
	container := kernel.SessionContainer(r.session.handle)
	for _, d := range r.session.devices {
		if found, err := d.Resources.Lookup(container, kernel.SessionTensorType, h.Name); err == nil {
			if kept, ok := found.(interface{ Kept() tensor.Tensor }); ok {
				return kept.Kept(), nil
			}
		}
	}
	return tensor.Tensor{}, status.InvalidArgumentf("The tensor with handle '%s' is not in the session store.", h.Name)
}

// execute runs all parts of the graph and waits for them. The first error ends them all.
func (r *run) execute(stats *stats, resp *message.RunGraphResponse) error {
	r.ctx.Notify(r)
	step := &r.view
	step.ID, step.Context, step.Rendezvous, step.Resources, step.Session = r.step.id, &r.ctx, r, &r.local, r.session.handle
	step.Collectives, step.NewRendezvous = r.collectives(), rendezvous.NewForStep
	step.Account = r.worker.Quota.StepAccount(r.session.account)
	r.calls.Of(&r.ctx)
	step.Calls = &r.calls
	defer r.local.ClearAll()
	if stats != nil {
		defer stats.recording.Part(r.step.id)()
	}
	var err error
	if len(r.graph.units) == 1 {
		err = r.runUnit(0, step, stats)
	} else {
		err = r.executeAll(step, stats)
	}
	if err != nil {
		r.fail(err)
	}
	if !r.ctx.StopNotify() && err == nil {
		err = status.FromContext(&r.ctx, "running the step")
	}
	stats.report(resp)
	return err
}

// runUnit runs the part of the graph on one device.
func (r *run) runUnit(i int, step *kernel.Step, stats *stats) error {
	u := &r.graph.units[i]
	if o := u.device.Observer; o != nil {
		o.PartBegan(u.device.Name)
		defer o.PartEnded(u.device.Name)
	}
	return u.exec.Run(step, stats.options(i))
}

// executeAll runs the parts of several devices concurrently.
func (r *run) executeAll(step *kernel.Step, stats *stats) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var group status.Group
	for i := range r.graph.units {
		wg.Go(func() {
			err := r.runUnit(i, step, stats)
			mu.Lock()
			defer mu.Unlock()
			group.Add(err)
		})
	}
	wg.Wait()
	return group.Summary()
}

// fail ends the run because of an error of its own.
func (r *run) fail(err error) {
	r.ctx.Cancel(err)
	r.abort()
}

// OnCancel implements stepctx.CancelNotifier.
func (r *run) OnCancel() { r.abort() }

// abort ends the rendezvous of the step because the run was cancelled: consumers and peers get the
// reason, in the form that the master's release expects. An error that only says that the run was
// ended is marked as derived.
func (r *run) abort() {
	if r.step.lasting {
		return
	}
	why := status.FromContext(&r.ctx, "running the step")
	if why.Code == status.Cancelled || why.Code == status.Aborted {
		why = why.Derive()
	}
	r.step.abort(peer.FromContext(&r.ctx).ErrorFor(why, r.graph.summary))
}

// takeAll returns the tensors under the given keys. All executors have ended, so a missing tensor
// is an error.
func (r *run) takeAll(keys []string, resp *message.RunGraphResponse) error {
	if len(keys) == 0 {
		return nil
	}
	resp.Recv = slices.Grow(resp.Recv[:0], len(keys))
	for _, key := range keys {
		t, err := r.take(key)
		if err != nil {
			return fetchError(r.step.id, err)
		}
		resp.Recv = append(resp.Recv, message.NamedTensor{Name: key, Tensor: t})
	}
	return nil
}

func (r *run) take(key string) (tensor.Tensor, error) {
	if !r.graph.keys[key] {
		if _, err := kernel.ParseKey(key); err != nil {
			return tensor.Tensor{}, err
		}
	}
	t, dead, came, err := r.step.table.TakeText(key)
	switch {
	case err != nil:
		return t, err
	case !came:
		err = status.Internalf("No node of the graph produces %s", key)
		r.fail(err)
		return t, err
	case dead:
		return t, deadFetch(key)
	}
	return onHost(t)
}

// onHost returns a tensor that leaves the task, in the memory of the host. It takes over the
// reference. For a tensor on a device it waits for the work before the copy.
func onHost(t tensor.Tensor) (tensor.Tensor, error) {
	if gpu.IsPlaced(&t, nil) {
		return t, nil
	}
	return gpu.PlaceNow(t, nil)
}

// allOnHost is [onHost] for several tensors. If a copy fails, it releases all tensors.
func allOnHost(values []rendezvous.Value) error {
	errs := make([]error, len(values))
	var copies sync.WaitGroup
	for i := range values {
		t := &values[i].Tensor
		if gpu.IsPlaced(t, nil) {
			continue
		}
		copies.Add(1)
		gpu.Place(*t, nil, func(host tensor.Tensor, err error) {
			*t, errs[i] = host, err
			copies.Done()
		})
	}
	copies.Wait()
	err := errors.Join(errs...)
	if err != nil {
		for i := range values {
			values[i].Tensor.Release()
		}
	}
	return err
}

func deadFetch(key string) error {
	return status.InvalidArgumentf("The tensor returned for %s was not valid.", key)
}

// fetchError hides the code of an error: a fetch that fails after the graph has run is not caused
// by its input.
func fetchError(step int64, err error) error {
	return status.Internalf("Failed to fetch outputs for step %d. (Original error message: %v)", step, err)
}

// defs returns the graph of each device.
func (reg *registered) defs() ([]*pb.GraphDef, error) {
	out := make([]*pb.GraphDef, len(reg.units))
	for i := range reg.units {
		var err error
		if out[i], err = pbconv.GraphToProto(reg.units[i].graph.Def()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var _ kernel.Rendezvous = (*run)(nil)
