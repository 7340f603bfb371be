package eager

import (
	"context"
	"strings"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/status"
)

// Peer is another task, as the runner of a function calls it. Its errors have the texts that
// TensorFlow's tasks add: clients decide by them which task has failed.
type Peer interface {
	Enqueue(ctx context.Context, req *pb.EnqueueRequest) (*pb.EnqueueResponse, error)
	RunComponentFunction(ctx context.Context, req *pb.RunComponentFunctionRequest) (*pb.RunComponentFunctionResponse, error)
}

// cleanupTimeout bounds the calls that end a step on another task.
const cleanupTimeout = 5 * time.Second

// peer returns another task of the cluster.
func (c *Context) peer(task string) (Peer, error) {
	p, err := c.scope.Peer(task)
	if err != nil {
		return nil, err
	}
	peer, ok := p.(Peer)
	if !ok {
		return nil, status.Internalf("the connection to %s has no EagerService", task)
	}
	return peer, nil
}

// remotePart is the part of a plan on another task.
type remotePart struct {
	*function.RemotePart
	name string // of the function that is registered there
	task string
	text *pb.RegisterFunctionOp

	lock       chan struct{} // holds a token while no goroutine registers the part
	registered bool          // guarded by lock
}

// newRemotePart returns a part in the form in which it is registered with its task.
func newRemotePart(name string, part *function.RemotePart) (*remotePart, error) {
	task, _, _ := strings.Cut(part.Device, "/device:")
	p := &remotePart{RemotePart: part, name: name, task: task, lock: make(chan struct{}, 1)}
	p.lock <- struct{}{}
	def, err := part.Graph.FunctionDef(name)
	if err != nil {
		return nil, err
	}
	p.text = &pb.RegisterFunctionOp{IsComponentFunction: true}
	if p.text.FunctionDef, err = pbconv.FunctionToProto(def); err != nil {
		return nil, err
	}
	whole := part.Graph.Def()
	library, err := pbconv.GraphToProto(&graph.Def{Library: whole.Library, Gradient: whole.Gradient})
	if err != nil {
		return nil, err
	}
	p.text.Library = library.GetLibrary()
	part.Graph = nil
	return p, nil
}

// register registers the part with its task, once.
func (p *remotePart) register(ctx context.Context, peer Peer, id uint64) error {
	select {
	case <-p.lock:
	case <-ctx.Done():
		return status.FromContext(ctx, "registering a part of a function on "+p.task)
	}
	defer func() { p.lock <- struct{}{} }()
	if p.registered {
		return nil
	}
	item := &pb.QueueItem{Item: &pb.QueueItem_RegisterFunction{RegisterFunction: p.text}}
	if _, err := peer.Enqueue(ctx, &pb.EnqueueRequest{ContextId: id, Queue: []*pb.QueueItem{item}}); err != nil {
		return err
	}
	p.registered, p.text = true, nil
	return nil
}

// runRemote runs a part on its task and waits for it. Its results stay there.
func (f *call) runRemote(p *remotePart) error {
	ctx := f.run.Step().Context
	if d := f.context.timeout; d > 0 {
		c, cancel := context.WithTimeoutCause(ctx, d, status.DeadlineExceededf("Deadline Exceeded"))
		defer cancel()
		ctx = c
	}
	peer, err := f.context.peer(p.task)
	if err != nil {
		return err
	}
	if err := p.register(ctx, peer, f.context.id); err != nil {
		return err
	}
	req := &pb.RunComponentFunctionRequest{ContextId: f.context.id, Operation: &pb.Operation{
		Id: f.op.GetId(), Name: p.name, Device: p.Device, IsFunction: true, IsComponentFunction: true, FuncStepId: f.step,
	}}
	for _, i := range p.Args {
		in, err := f.input(i)
		if err != nil {
			return err
		}
		req.Operation.OpInputs = append(req.Operation.OpInputs, in)
	}
	for _, i := range p.Rets {
		req.OutputNum = append(req.OutputNum, int32(i))
	}
	resp, err := peer.RunComponentFunction(ctx, req)
	if err != nil {
		return overdue(ctx, err)
	}
	return f.take(p, resp)
}

// overdue replaces the answer of a peer whose deadline expired before the caller's timer fired: the
// peer then says that its operations were cancelled.
func overdue(ctx context.Context, err error) error {
	deadline, ok := ctx.Deadline()
	if !ok || time.Now().Before(deadline) || status.CodeOf(err) != status.Cancelled {
		return err
	}
	<-ctx.Done()
	return status.FromContext(ctx, "waiting for a part of a function")
}

// input returns an argument in the form in which another task receives it.
func (f *call) input(i int) (*pb.Operation_Input, error) {
	if h := f.args[i].remote; h != nil {
		return &pb.Operation_Input{Item: &pb.Operation_Input_RemoteHandle{RemoteHandle: h}}, nil
	}
	t, err := pbconv.TensorToProto(&f.values[i])
	if err != nil {
		return nil, err
	}
	return &pb.Operation_Input{Item: &pb.Operation_Input_Tensor{Tensor: t}}, nil
}

// take records the results of a part.
func (f *call) take(p *remotePart, resp *pb.RunComponentFunctionResponse) error {
	if f.op.GetId() < 0 {
		values, err := valuesOf(p.task, resp, len(p.Rets))
		if err != nil {
			return err
		}
		for k, i := range p.Rets {
			f.rets[i] = values[k]
		}
		return nil
	}
	if len(resp.GetShape()) != len(p.Rets) {
		return status.Internalf("%s returned %d shapes for %d results", p.task, len(resp.GetShape()), len(p.Rets))
	}
	for k, i := range p.Rets {
		f.devices[i], f.shapes[i] = p.Device, resp.GetShape()[k]
	}
	return nil
}

// cleanupOn ends a step on another task. Close of the service waits for the call.
func (c *Context) cleanupOn(task string, step int64) {
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, cleanupTimeout)
		defer cancel()
		peer, err := c.peer(task)
		if err == nil {
			item := &pb.QueueItem{Item: &pb.QueueItem_CleanupFunction{CleanupFunction: &pb.CleanupFunctionOp{StepId: step}}}
			_, err = peer.Enqueue(ctx, &pb.EnqueueRequest{ContextId: c.id, Queue: []*pb.QueueItem{item}})
		}
		if err != nil {
			s.Log.Debug("a task did not clean up the step of a function", "step", step, "peer", task, "error", err)
		}
	})
}
