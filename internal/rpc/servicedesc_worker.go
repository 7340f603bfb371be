package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/weft-ml/weft/internal/pb"
)

// WorkerService is the name of the service through which masters and other tasks use a task.
const WorkerService = "tensorflow.WorkerService"

// Full names of the methods of WorkerService, as an interceptor sees them.
const (
	MethodGetStatus           = "/" + WorkerService + "/GetStatus"
	MethodCreateWorkerSession = "/" + WorkerService + "/CreateWorkerSession"
	MethodDeleteWorkerSession = "/" + WorkerService + "/DeleteWorkerSession"
	MethodRegisterGraph       = "/" + WorkerService + "/RegisterGraph"
	MethodDeregisterGraph     = "/" + WorkerService + "/DeregisterGraph"
	MethodRunGraph            = "/" + WorkerService + "/RunGraph"
	MethodCleanupGraph        = "/" + WorkerService + "/CleanupGraph"
	MethodCleanupAll          = "/" + WorkerService + "/CleanupAll"
	MethodRecvTensor          = "/" + WorkerService + "/RecvTensor"
	MethodMarkRecvFinished    = "/" + WorkerService + "/MarkRecvFinished"
	MethodLogging             = "/" + WorkerService + "/Logging"
	MethodTracing             = "/" + WorkerService + "/Tracing"
	MethodRecvBuf             = "/" + WorkerService + "/RecvBuf"
	MethodGetStepSequence     = "/" + WorkerService + "/GetStepSequence"
	MethodCompleteGroup       = "/" + WorkerService + "/CompleteGroup"
	MethodCompleteInstance    = "/" + WorkerService + "/CompleteInstance"
)

// WorkerServer serves WorkerService. An error reaches the caller with its gRPC status, and as UNKNOWN without one.
type WorkerServer interface {
	// GetStatus lists the task's devices.
	GetStatus(context.Context, *pb.GetStatusRequest) (*pb.GetStatusResponse, error)
	// CreateWorkerSession makes a master's session known.
	CreateWorkerSession(context.Context, *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error)
	// DeleteWorkerSession ends the task's part of a session.
	DeleteWorkerSession(context.Context, *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error)
	// RegisterGraph takes the task's part of a graph.
	RegisterGraph(context.Context, *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error)
	// DeregisterGraph drops a registered graph.
	DeregisterGraph(context.Context, *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error)
	// RunGraph runs the task's part of a step.
	RunGraph(context.Context, *pb.RunGraphRequest) (*pb.RunGraphResponse, error)
	// CleanupGraph drops what is left of a step.
	CleanupGraph(context.Context, *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error)
	// CleanupAll drops resource containers.
	CleanupAll(context.Context, *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error)
	// RecvTensor waits for a tensor that the task produces, and returns it.
	RecvTensor(context.Context, *pb.RecvTensorRequest) (*pb.RecvTensorResponse, error)
	// MarkRecvFinished says that a tensor or buffer has arrived.
	MarkRecvFinished(context.Context, *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error)
	// Logging controls and returns the record of transfers.
	Logging(context.Context, *pb.LoggingRequest) (*pb.LoggingResponse, error)
	// Tracing profiles the task.
	Tracing(context.Context, *pb.TracingRequest) (*pb.TracingResponse, error)
	// RecvBuf waits for a buffer of a collective op, and returns it.
	RecvBuf(context.Context, *pb.RecvBufRequest) (*pb.RecvBufResponse, error)
	// GetStepSequence returns the step ids that all masters are to use.
	GetStepSequence(context.Context, *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error)
	// CompleteGroup waits until a collective group has all its members.
	CompleteGroup(context.Context, *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error)
	// CompleteInstance agrees on one op of a collective group.
	CompleteInstance(context.Context, *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error)
}

// WorkerServiceDesc describes WorkerService, to register a [WorkerServer] with a [grpc.Server].
var WorkerServiceDesc = grpc.ServiceDesc{
	ServiceName: WorkerService,
	HandlerType: (*WorkerServer)(nil),
	Methods: []grpc.MethodDesc{
		unary(MethodGetStatus, WorkerServer.GetStatus),
		unary(MethodCreateWorkerSession, WorkerServer.CreateWorkerSession),
		unary(MethodDeleteWorkerSession, WorkerServer.DeleteWorkerSession),
		unary(MethodRegisterGraph, WorkerServer.RegisterGraph),
		unary(MethodDeregisterGraph, WorkerServer.DeregisterGraph),
		unary(MethodRunGraph, WorkerServer.RunGraph),
		unary(MethodCleanupGraph, WorkerServer.CleanupGraph),
		unary(MethodCleanupAll, WorkerServer.CleanupAll),
		unary(MethodRecvTensor, WorkerServer.RecvTensor),
		unary(MethodMarkRecvFinished, WorkerServer.MarkRecvFinished),
		unary(MethodLogging, WorkerServer.Logging),
		unary(MethodTracing, WorkerServer.Tracing),
		unary(MethodRecvBuf, WorkerServer.RecvBuf),
		unary(MethodGetStepSequence, WorkerServer.GetStepSequence),
		unary(MethodCompleteGroup, WorkerServer.CompleteGroup),
		unary(MethodCompleteInstance, WorkerServer.CompleteInstance),
	},
}

// WorkerClient calls WorkerService over a connection.
type WorkerClient struct{ conn grpc.ClientConnInterface }

// NewWorkerClient returns a client that calls over conn, which stays the caller's to close.
func NewWorkerClient(conn grpc.ClientConnInterface) WorkerClient { return WorkerClient{conn: conn} }

// GetStatus lists the task's devices.
func (c WorkerClient) GetStatus(ctx context.Context, req *pb.GetStatusRequest, opts ...grpc.CallOption) (*pb.GetStatusResponse, error) {
	return invoke[pb.GetStatusResponse](ctx, c.conn, MethodGetStatus, req, opts)
}

// CreateWorkerSession makes a master's session known.
func (c WorkerClient) CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest, opts ...grpc.CallOption) (*pb.CreateWorkerSessionResponse, error) {
	return invoke[pb.CreateWorkerSessionResponse](ctx, c.conn, MethodCreateWorkerSession, req, opts)
}

// DeleteWorkerSession ends the task's part of a session.
func (c WorkerClient) DeleteWorkerSession(ctx context.Context, req *pb.DeleteWorkerSessionRequest, opts ...grpc.CallOption) (*pb.DeleteWorkerSessionResponse, error) {
	return invoke[pb.DeleteWorkerSessionResponse](ctx, c.conn, MethodDeleteWorkerSession, req, opts)
}

// RegisterGraph takes the task's part of a graph.
func (c WorkerClient) RegisterGraph(ctx context.Context, req *pb.RegisterGraphRequest, opts ...grpc.CallOption) (*pb.RegisterGraphResponse, error) {
	return invoke[pb.RegisterGraphResponse](ctx, c.conn, MethodRegisterGraph, req, opts)
}

// DeregisterGraph drops a registered graph.
func (c WorkerClient) DeregisterGraph(ctx context.Context, req *pb.DeregisterGraphRequest, opts ...grpc.CallOption) (*pb.DeregisterGraphResponse, error) {
	return invoke[pb.DeregisterGraphResponse](ctx, c.conn, MethodDeregisterGraph, req, opts)
}

// RunGraph runs the task's part of a step.
func (c WorkerClient) RunGraph(ctx context.Context, req *pb.RunGraphRequest, opts ...grpc.CallOption) (*pb.RunGraphResponse, error) {
	return invoke[pb.RunGraphResponse](ctx, c.conn, MethodRunGraph, req, opts)
}

// CleanupGraph drops what is left of a step.
func (c WorkerClient) CleanupGraph(ctx context.Context, req *pb.CleanupGraphRequest, opts ...grpc.CallOption) (*pb.CleanupGraphResponse, error) {
	return invoke[pb.CleanupGraphResponse](ctx, c.conn, MethodCleanupGraph, req, opts)
}

// CleanupAll drops resource containers.
func (c WorkerClient) CleanupAll(ctx context.Context, req *pb.CleanupAllRequest, opts ...grpc.CallOption) (*pb.CleanupAllResponse, error) {
	return invoke[pb.CleanupAllResponse](ctx, c.conn, MethodCleanupAll, req, opts)
}

// RecvTensor waits for a tensor that the task produces, and returns it.
func (c WorkerClient) RecvTensor(ctx context.Context, req *pb.RecvTensorRequest, opts ...grpc.CallOption) (*pb.RecvTensorResponse, error) {
	return invoke[pb.RecvTensorResponse](ctx, c.conn, MethodRecvTensor, req, opts)
}

// MarkRecvFinished says that a tensor or buffer has arrived.
func (c WorkerClient) MarkRecvFinished(ctx context.Context, req *pb.MarkRecvFinishedRequest, opts ...grpc.CallOption) (*pb.MarkRecvFinishedResponse, error) {
	return invoke[pb.MarkRecvFinishedResponse](ctx, c.conn, MethodMarkRecvFinished, req, opts)
}

// Logging controls and returns the record of transfers.
func (c WorkerClient) Logging(ctx context.Context, req *pb.LoggingRequest, opts ...grpc.CallOption) (*pb.LoggingResponse, error) {
	return invoke[pb.LoggingResponse](ctx, c.conn, MethodLogging, req, opts)
}

// Tracing profiles the task.
func (c WorkerClient) Tracing(ctx context.Context, req *pb.TracingRequest, opts ...grpc.CallOption) (*pb.TracingResponse, error) {
	return invoke[pb.TracingResponse](ctx, c.conn, MethodTracing, req, opts)
}

// RecvBuf waits for a buffer of a collective op, and returns it.
func (c WorkerClient) RecvBuf(ctx context.Context, req *pb.RecvBufRequest, opts ...grpc.CallOption) (*pb.RecvBufResponse, error) {
	return invoke[pb.RecvBufResponse](ctx, c.conn, MethodRecvBuf, req, opts)
}

// GetStepSequence returns the step ids that all masters are to use.
func (c WorkerClient) GetStepSequence(ctx context.Context, req *pb.GetStepSequenceRequest, opts ...grpc.CallOption) (*pb.GetStepSequenceResponse, error) {
	return invoke[pb.GetStepSequenceResponse](ctx, c.conn, MethodGetStepSequence, req, opts)
}

// CompleteGroup waits until a collective group has all its members.
func (c WorkerClient) CompleteGroup(ctx context.Context, req *pb.CompleteGroupRequest, opts ...grpc.CallOption) (*pb.CompleteGroupResponse, error) {
	return invoke[pb.CompleteGroupResponse](ctx, c.conn, MethodCompleteGroup, req, opts)
}

// CompleteInstance agrees on one op of a collective group.
func (c WorkerClient) CompleteInstance(ctx context.Context, req *pb.CompleteInstanceRequest, opts ...grpc.CallOption) (*pb.CompleteInstanceResponse, error) {
	return invoke[pb.CompleteInstanceResponse](ctx, c.conn, MethodCompleteInstance, req, opts)
}
