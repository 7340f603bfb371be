package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	// maxCalls bounds the concurrent calls of functions with parts on other tasks. Tasks that call
	// each other endlessly would otherwise fill the memory of both.
	maxCalls = 1 << 10
	// dropTimeout bounds the calls that end a step or a graph on another task.
	dropTimeout = 5 * time.Second
)

// graphRunner is the part of another task that functions use. For their parts there, this task is
// the master.
type graphRunner interface {
	RegisterGraph(ctx context.Context, req *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error)
	DeregisterGraph(ctx context.Context, req *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error)
	RunGraph(ctx context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error)
	CleanupGraph(ctx context.Context, req *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error)
}

// functions runs the remote parts of the functions of a graph. It implements function.Cluster.
type functions struct {
	worker *Worker
	graph  *registered
}

// cluster returns the interface to other tasks for the functions of a graph, nil if there are no
// other tasks.
func (reg *registered) cluster(w *Worker) function.Cluster {
	if reg.session.peers == nil {
		return nil
	}
	return &functions{w, reg}
}

// Devices implements function.Cluster.
func (f *functions) Devices() map[string]uint64 { return f.graph.session.shared }

func (f *functions) peer(task string) (graphRunner, error) {
	p, err := f.graph.session.peers.Peer(task)
	if err != nil {
		return nil, status.InvalidArgumentf("Could not find worker with target: %s (%w)", task, err)
	}
	return p, nil
}

// Register implements function.Cluster.
func (f *functions) Register(ctx context.Context, task string, g *graph.Graph) (string, error) {
	p, err := f.peer(task)
	if err != nil {
		return "", err
	}
	def, err := pbconv.GraphToProto(g.Def())
	if err != nil {
		return "", err
	}
	s := f.graph.session
	return s.parts.use(ctx, task, def, func() (string, error) {
		resp, err := p.RegisterGraph(ctx, &pb.RegisterGraphRequest{
			SessionHandle: s.handle, CreateWorkerSessionCalled: s.handle != "", GraphDef: def,
			GraphOptions: &pb.GraphOptions{OptimizerOptions: &pb.OptimizerOptions{DoFunctionInlining: true}},
		})
		return resp.GetGraphHandle(), err
	})
}

// Deregister implements function.Cluster. It does nothing for a closed session, which its master
// drops on all tasks.
func (f *functions) Deregister(task, handle string) {
	s := f.graph.session
	p, err := f.peer(task)
	if err != nil || s.isClosed() || !s.parts.leave(task, handle) {
		return
	}
	ctx, cancel := context.WithTimeout(f.worker.ctx, dropTimeout)
	defer cancel()
	_, err = p.DeregisterGraph(ctx, &pb.DeregisterGraphRequest{
		SessionHandle: s.handle, CreateWorkerSessionCalled: s.handle != "", GraphHandle: handle,
	})
	if err != nil {
		f.worker.Log.Debug("a task did not drop a part of a function", "peer", task, "error", err)
	}
}

// Begin implements function.Cluster.
func (f *functions) Begin(step *kernel.Step) (function.Step, error) {
	if f.worker.steps.calls.Add(1) > maxCalls {
		f.worker.steps.calls.Add(-1)
		return nil, status.ResourceExhaustedf("More than %d calls of functions on other tasks are under way", maxCalls)
	}
	r := f.worker.newRun(f.graph.session, f.graph)
	r.ctx.Begin(step.Context)
	var err error
	if r.step, err = f.worker.steps.begin(rand.Int64N(1<<57-1)+1, r); err != nil {
		f.worker.steps.calls.Add(-1)
		r.ctx.Finish()
		return nil, err
	}
	r.step.markHeld()
	return &callStep{r, f}, nil
}

// callStep is the step of one function call. It implements function.Step.
type callStep struct {
	*run
	functions *functions
}

// Run implements function.Step.
func (c *callStep) Run(ctx context.Context, task, handle string, keys []string, args []tensor.Tensor, rets []string) ([]tensor.Tensor, error) {
	p, err := c.functions.peer(task)
	if err != nil {
		return nil, err
	}
	req := &message.RunGraphRequest{
		Session: c.session.handle, SessionCreated: c.session.handle != "", GraphHandle: handle, StepID: c.step.id,
		RecvKeys: rets, RequestID: requestid.New(),
	}
	for i, key := range keys {
		req.Send = append(req.Send, message.NamedTensor{Name: key, Tensor: args[i]})
	}
	resp, err := p.RunGraph(ctx, req)
	if err == nil && resp.Err != nil {
		err = resp.Err
	}
	if err != nil {
		return nil, err
	}
	return inOrder(resp, rets)
}

// inOrder returns the tensors of a response in the order of their keys.
func inOrder(resp *message.RunGraphResponse, keys []string) ([]tensor.Tensor, error) {
	defer resp.Release()
	byKey := make(map[string]*tensor.Tensor, len(resp.Recv))
	for i := range resp.Recv {
		byKey[resp.Recv[i].Name] = &resp.Recv[i].Tensor
	}
	for _, key := range keys {
		if byKey[key] == nil {
			return nil, status.Internalf("Could not find key: %s", key)
		}
	}
	out := make([]tensor.Tensor, len(keys))
	for i, key := range keys {
		out[i] = byKey[key].Retain()
	}
	return out, nil
}

// Fail implements function.Step.
func (c *callStep) Fail(err error) { c.fail(err) }

// End implements function.Step. It does not wait for the other tasks; Close of the worker does.
func (c *callStep) End(tasks []string) {
	w, id := c.worker, c.step.id
	for _, task := range tasks {
		w.steps.running.Go(func() {
			ctx, cancel := context.WithTimeout(w.ctx, dropTimeout)
			defer cancel()
			p, err := c.functions.peer(task)
			if err == nil {
				_, err = p.CleanupGraph(ctx, &pb.CleanupGraphRequest{StepId: id})
			}
			if err != nil {
				w.Log.Debug("a task did not clean up the step of a call", "step", id, "peer", task, "error", err)
			}
		})
	}
	w.steps.finish(c.step, c.run)
	c.ctx.Finish()
	w.steps.cleanup(id)
	w.steps.calls.Add(-1)
}
