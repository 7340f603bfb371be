package testcluster

import (
	"context"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/status"
)

// view is the cluster from the point of view of one task, under the cluster's own names or those of
// a session's cluster. It implements master.Workers and worker.Peers.
type view struct {
	cluster *Cluster
	self    cluster.Task // the name of the task in the view
	node    *Node        // the task
	spec    cluster.Spec // of the session; nil for the cluster's own
}

// Tasks implements master.Workers.
func (v *view) Tasks() []cluster.Task {
	if v.spec != nil {
		return v.spec.Tasks()
	}
	return v.cluster.spec.Tasks()
}

// Worker implements master.Workers. The own worker is called directly.
func (v *view) Worker(task cluster.Task) (master.Worker, error) {
	if task == v.self {
		return v.node.Worker, nil
	}
	real, err := v.resolve(task)
	if err != nil {
		return nil, err
	}
	return &remote{v, real}, nil
}

// resolve returns the running task with a name in the view.
func (v *view) resolve(task cluster.Task) (cluster.Task, error) {
	spec := v.spec
	if spec == nil {
		spec = v.cluster.spec
	}
	address := spec.Address(task)
	for _, t := range v.cluster.spec.Tasks() {
		if v.cluster.spec.Address(t) == address {
			return t, nil
		}
	}
	return task, status.NotFoundf("worker %v", task)
}

// StartRecv implements worker.Peers.
func (v *view) StartRecv(
	ctx context.Context, task string, req *message.RecvTensorRequest, done func(*message.RecvTensorResponse, error),
) {
	go func() { done(v.recvTensor(ctx, task, req)) }()
}

// StartRecvAll implements worker.Peers.
func (v *view) StartRecvAll(
	ctx context.Context, task string, requests []*message.RecvTensorRequest, done func(i int, resp *message.RecvTensorResponse, err error),
) {
	for i, req := range requests {
		v.StartRecv(ctx, task, req, func(resp *message.RecvTensorResponse, err error) { done(i, resp, err) })
	}
}

func (v *view) recvTensor(ctx context.Context, task string, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	name, err := cluster.ParseTask(task)
	if err != nil {
		return nil, err
	}
	if name, err = v.resolve(name); err != nil {
		return nil, err
	}
	r := &remote{v, name}
	return call(ctx, r, "RecvTensor", req.StepID, func(w *worker.Worker) (*message.RecvTensorResponse, error) {
		asked := *req
		asked.Key = r.translate(req.Key)
		return w.RecvTensor(ctx, &asked)
	})
}

// Peer implements worker.Peers.
func (v *view) Peer(task string) (worker.Peer, error) {
	name, err := cluster.ParseTask(task)
	if err != nil {
		return nil, err
	}
	if name, err = v.resolve(name); err != nil {
		return nil, err
	}
	return &remote{v, name}, nil
}

// remote is the worker of another task. It implements master.Worker.
type remote struct {
	view *view
	task cluster.Task
}

// Address returns the address of the task.
func (r *remote) Address() string { return r.view.cluster.spec.Address(r.task) }

// Failure returns nil: there is no connection that could fail.
func (r *remote) Failure() error { return nil }

// LastHeard reports false: the time of calls is not recorded.
func (r *remote) LastHeard() (time.Duration, bool) { return 0, false }

// call calls another task like a transport: it runs the interceptor, fails if the task does not
// run, and marks the error of a cancelled call as derived.
func call[T any](ctx context.Context, r *remote, method string, step int64, f func(w *worker.Worker) (*T, error)) (*T, error) {
	c := r.view.cluster
	info := Call{Method: method, From: r.view.node.Task, To: r.task, StepID: step}
	c.mu.Lock()
	c.calls = append(c.calls, info)
	intercept := c.interceptor
	c.mu.Unlock()
	if intercept != nil {
		if err := intercept(ctx, info); err != nil {
			return nil, received(ctx, err)
		}
	}
	n := c.node(r.task)
	if n == nil {
		return nil, unavailable(r.task)
	}
	resp, err := f(n.Worker)
	if err != nil {
		return nil, received(ctx, err)
	}
	return resp, nil
}

// received returns an error in the form that the caller receives over a connection.
func received(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = status.FromContext(ctx, "waiting for a task")
	}
	e := &status.Error{Code: status.CodeOf(err), Message: err.Error(), Payloads: status.From(err).Payloads}
	if e.Code == status.Cancelled {
		return e.Derive()
	}
	return e
}

func (r *remote) GetStatus(ctx context.Context, req *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	return call(ctx, r, "GetStatus", 0, func(w *worker.Worker) (*pb.GetStatusResponse, error) {
		resp, err := w.GetStatus(ctx, req)
		return r.describe(resp), err
	})
}

func (r *remote) CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	return call(ctx, r, "CreateWorkerSession", 0, func(w *worker.Worker) (*pb.CreateWorkerSessionResponse, error) {
		if err := r.checkSession(); err != nil {
			return nil, err
		}
		return w.CreateWorkerSession(ctx, req)
	})
}

func (r *remote) DeleteWorkerSession(ctx context.Context, req *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error) {
	return call(ctx, r, "DeleteWorkerSession", 0, func(w *worker.Worker) (*pb.DeleteWorkerSessionResponse, error) {
		return w.DeleteWorkerSession(ctx, req)
	})
}

func (r *remote) RegisterGraph(ctx context.Context, req *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error) {
	return call(ctx, r, "RegisterGraph", 0, func(w *worker.Worker) (*pb.RegisterGraphResponse, error) {
		ctx, err := r.receive(ctx, req)
		if err != nil {
			return nil, err
		}
		return w.RegisterGraph(ctx, req)
	})
}

func (r *remote) DeregisterGraph(ctx context.Context, req *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error) {
	return call(ctx, r, "DeregisterGraph", 0, func(w *worker.Worker) (*pb.DeregisterGraphResponse, error) {
		return w.DeregisterGraph(ctx, req)
	})
}

func (r *remote) RunGraph(ctx context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error) {
	return call(ctx, r, "RunGraph", req.StepID, func(w *worker.Worker) (*message.RunGraphResponse, error) {
		return w.RunGraph(ctx, req)
	})
}

func (r *remote) CleanupGraph(ctx context.Context, req *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error) {
	return call(ctx, r, "CleanupGraph", req.StepId, func(w *worker.Worker) (*pb.CleanupGraphResponse, error) {
		return w.CleanupGraph(ctx, req)
	})
}

func (r *remote) CleanupAll(ctx context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	return call(ctx, r, "CleanupAll", 0, func(w *worker.Worker) (*pb.CleanupAllResponse, error) { return w.CleanupAll(ctx, req) })
}

func (r *remote) Logging(ctx context.Context, req *pb.LoggingRequest) (*pb.LoggingResponse, error) {
	return call(ctx, r, "Logging", 0, func(w *worker.Worker) (*pb.LoggingResponse, error) { return w.Logging(ctx, req) })
}

// HasSession implements worker.Peer.
func (r *remote) HasSession(ctx context.Context, handle string) (bool, error) {
	resp, err := call(ctx, r, "ListDevices", 0, func(*worker.Worker) (*bool, error) {
		n := r.view.cluster.node(r.task)
		if n == nil {
			return nil, unavailable(r.task)
		}
		_, err := n.Master.ListDevices(ctx, &pb.ListDevicesRequest{SessionHandle: handle})
		has := err == nil
		return &has, nil
	})
	return resp != nil && *resp, err
}

func (r *remote) MarkRecvFinished(ctx context.Context, req *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error) {
	return call(ctx, r, "MarkRecvFinished", 0, func(w *worker.Worker) (*pb.MarkRecvFinishedResponse, error) {
		return w.MarkRecvFinished(ctx, req)
	})
}

func (r *remote) RecvBuf(ctx context.Context, req *pb.RecvBufRequest) (*pb.RecvBufResponse, error) {
	return call(ctx, r, "RecvBuf", req.StepId, func(w *worker.Worker) (*pb.RecvBufResponse, error) { return w.RecvBuf(ctx, req) })
}

func (r *remote) GetStepSequence(ctx context.Context, req *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error) {
	return call(ctx, r, "GetStepSequence", 0, func(w *worker.Worker) (*pb.GetStepSequenceResponse, error) {
		return w.GetStepSequence(ctx, req)
	})
}

func (r *remote) CompleteGroup(ctx context.Context, req *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error) {
	return call(ctx, r, "CompleteGroup", 0, func(w *worker.Worker) (*pb.CompleteGroupResponse, error) {
		return w.CompleteGroup(ctx, req)
	})
}

func (r *remote) CompleteInstance(ctx context.Context, req *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error) {
	return call(ctx, r, "CompleteInstance", 0, func(w *worker.Worker) (*pb.CompleteInstanceResponse, error) {
		return w.CompleteInstance(ctx, req)
	})
}
