package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// run is one run of a registered graph: what its executors share. It implements kernel.Rendezvous.
type run struct {
	worker  *Worker
	session *session
	graph   *registered
	step    *step
	local   kernel.Resources  // of the run alone: stacks, tensor arrays
	asked   *rendezvous.Table // where tensors come that were asked for together; nil if none were
	view    kernel.Step       // the step as kernels see it

	life stepctx.Context // of the executors; its cause is the error that ended the run
}

// runs are those that have ended and that nobody holds on to.
var runs = sync.Pool{New: func() any {
	r := new(run)
	r.view.Cancel = r.fail
	return r
}}

func (w *Worker) newRun(s *session, graph *registered) *run {
	r := runs.Get().(*run)
	r.worker, r.session, r.graph = w, s, graph
	return r
}

// end takes the run out of its step. One that succeeded is used again if nobody can hold on to it,
// which is reported: kernels without state, and what they make, keep nothing of a step.
func (r *run) end(succeeded bool) (forgotten bool) {
	r.life.Finish()
	quiet := succeeded && r.graph.plain && r.asked == nil && r.life.Reusable()
	if !quiet {
		r.step.keep()
	}
	if alive := r.worker.steps.finish(r.step, r); !alive || !quiet || !r.life.TryReset() {
		return false
	}
	r.worker, r.session, r.graph, r.step = nil, nil, nil, nil
	r.view = kernel.Step{Cancel: r.view.Cancel}
	runs.Put(r)
	return true
}

// RunGraph runs a registered graph as part of a step: it stores the tensors that the master sends,
// runs the graph on all its devices, and returns the tensors under the keys that the master asks
// for. The error is in the response where the request says so.
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
	s, err := w.session(req.Session, req.SessionCreated)
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
	r.life.Begin(ctx)
	if r.step, err = w.steps.begin(req.StepID, r); err != nil {
		r.life.Finish()
		return err
	}
	succeeded := false
	defer func() { resp.Recyclable = r.end(succeeded) }()
	err = r.do(ctx, req, resp)
	succeeded = err == nil
	return err
}

// do is the run of a graph in its step.
func (r *run) do(ctx context.Context, req *message.RunGraphRequest, resp *message.RunGraphResponse) error {
	if r.session.isClosed() { // after it was looked up: nobody else will end the step
		r.worker.steps.cleanup(req.StepID)
		return r.worker.unknownSession(req.Session)
	}
	if err := r.store(req.Send); err != nil {
		return err
	}
	r.askTogether()
	if r.asked != nil {
		defer r.asked.Close()
	}
	if req.OnReceivesSent != nil {
		req.OnReceivesSent()
	}
	if err := r.execute(newStats(req.Exec, r.graph), resp); err != nil {
		if ctx.Err() != nil && status.CodeOf(err) == status.Cancelled {
			err = status.From(err).Derive() // the master has a better one
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

// store puts what the master sends where the graph's nodes receive it.
func (r *run) store(sends []message.NamedTensor) error {
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
		t, err := r.fed(&sends[i].Tensor)
		if err != nil {
			return err
		}
		if err := r.step.table.SendText(key, t, false); err != nil {
			return err
		}
	}
	return nil
}

// fed returns what is fed, with a reference: the tensor itself or, for a handle to one that the
// session keeps, that one.
func (r *run) fed(t *tensor.Tensor) (tensor.Tensor, error) {
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
	r.life.Notify(r)
	step := &r.view
	step.ID, step.Context, step.Rendezvous, step.Resources, step.Session = r.step.id, &r.life, r, &r.local, r.session.handle
	step.Collectives, step.NewRendezvous = r.collectives(), rendezvous.NewForStep
	defer r.local.ClearAll()
	var err error
	if len(r.graph.units) == 1 {
		err = r.graph.units[0].exec.Run(step, stats.options(0))
	} else {
		err = r.executeAll(step, stats)
	}
	if err != nil {
		r.fail(err)
	}
	if !r.life.StopNotify() && err == nil {
		err = status.FromContext(&r.life, "running the step")
	}
	stats.report(resp)
	return err
}

// executeAll runs the parts on several devices at the same time.
func (r *run) executeAll(step *kernel.Step, stats *stats) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var group status.Group
	for i := range r.graph.units {
		wg.Go(func() {
			err := r.graph.units[i].exec.Run(step, stats.options(i))
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
	r.life.Cancel(err)
	r.abort()
}

// OnCancel implements stepctx.CancelNotifier.
func (r *run) OnCancel() { r.abort() }

// abort ends the exchange of the step because the run has been cancelled: the executors' consumers
// and peers get the reason. An error that says no more than that the run was ended is marked as
// following from another one.
func (r *run) abort() {
	why := status.FromContext(&r.life, "running the step")
	if why.Code == status.Cancelled || why.Code == status.Aborted {
		why = why.Derive()
	}
	r.step.abort(why)
}

// takeAll returns the tensors under the given keys. All executors have ended, so what is not there
// never comes.
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
	return t, nil
}

func deadFetch(key string) error {
	return status.InvalidArgumentf("The tensor returned for %s was not valid.", key)
}

// fetchError hides the code of an error: that a fetch cannot be had after the graph has run is no
// fault of its input.
func fetchError(step int64, err error) error {
	return status.Internalf("Failed to fetch outputs for step %d. (Original error message: %v)", step, err)
}

// defs writes down what runs on each device.
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
