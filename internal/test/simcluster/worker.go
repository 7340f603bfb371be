package simcluster

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// view is the cluster from the point of view of one master. It implements master.Workers.
type view struct {
	cluster *Cluster
	self    cluster.Task
	tasks   []cluster.Task
}

// Tasks implements master.Workers.
func (v *view) Tasks() []cluster.Task {
	if slices.Contains(v.tasks, v.self) {
		return v.tasks
	}
	return append([]cluster.Task{v.self}, v.tasks...)
}

// Worker implements master.Workers.
func (v *view) Worker(task cluster.Task) (master.Worker, error) {
	to := v.cluster.nodes[task]
	if to == nil {
		return nil, status.InvalidArgumentf("the cluster has no task %v", task)
	}
	return &worker{cluster: v.cluster, task: task, from: v.cluster.nodes[v.self], to: to}, nil
}

// worker answers the calls of a master to a task. It implements master.Worker.
type worker struct {
	cluster  *Cluster
	task     cluster.Task
	from, to *node
}

// answer returns resp after the time of a call.
func answer[Resp any](ctx context.Context, w *worker, method string, req proto.Message, work time.Duration, resp *Resp) (*Resp, error) {
	if err := w.cluster.call(ctx, method, req, w.from, w.to, work); err != nil {
		return nil, status.FromContext(ctx, method)
	}
	return resp, nil
}

func (w *worker) GetStatus(ctx context.Context, req *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	return answer(ctx, w, "GetStatus", req, 0, &pb.GetStatusResponse{DeviceAttributes: []*pb.DeviceAttributes{{
		Name: w.task.String() + "/device:CPU:0", DeviceType: "CPU", MemoryLimit: 1 << 28, Incarnation: 1,
	}}})
}

func (w *worker) CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	return answer(ctx, w, "CreateWorkerSession", req, 0, &pb.CreateWorkerSessionResponse{})
}

func (w *worker) DeleteWorkerSession(ctx context.Context, req *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error) {
	return answer(ctx, w, "DeleteWorkerSession", req, 0, &pb.DeleteWorkerSessionResponse{})
}

func (w *worker) RegisterGraph(ctx context.Context, req *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error) {
	return answer(ctx, w, "RegisterGraph", req, 0, &pb.RegisterGraphResponse{GraphHandle: "1"})
}

func (w *worker) DeregisterGraph(ctx context.Context, req *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error) {
	return answer(ctx, w, "DeregisterGraph", req, 0, &pb.DeregisterGraphResponse{})
}

// RunGraph returns zeros for all fetches.
func (w *worker) RunGraph(ctx context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error) {
	resp := &message.RunGraphResponse{}
	for _, key := range req.RecvKeys {
		resp.Recv = append(resp.Recv, message.NamedTensor{Name: key, Tensor: tensor.Scalar(float32(0))})
	}
	return answer(ctx, w, "RunGraph", nil, w.cluster.Model.Compute, resp)
}

func (w *worker) CleanupGraph(ctx context.Context, req *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error) {
	return answer(ctx, w, "CleanupGraph", req, 0, &pb.CleanupGraphResponse{})
}

func (w *worker) CleanupAll(ctx context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	return answer(ctx, w, "CleanupAll", req, 0, &pb.CleanupAllResponse{})
}

func (w *worker) Logging(ctx context.Context, req *pb.LoggingRequest) (*pb.LoggingResponse, error) {
	return answer(ctx, w, "Logging", req, 0, &pb.LoggingResponse{})
}

func (w *worker) GetStepSequence(ctx context.Context, req *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error) {
	return answer(ctx, w, "GetStepSequence", req, 0, &pb.GetStepSequenceResponse{})
}
