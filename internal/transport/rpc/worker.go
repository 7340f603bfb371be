package rpc

import (
	"context"
	"log/slog"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
)

// WorkerService is the name of the service that masters and other tasks call on a task.
const WorkerService = "tensorflow.WorkerService"

// Full names of the methods of WorkerService.
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

// Worker serves WorkerService. The caller owns a request and its tensors, and the tensors of a
// response. Errors have codes; RunGraph returns them in the body of the response if the request
// asks for that.
type Worker interface {
	// GetStatus lists the task's devices.
	GetStatus(context.Context, *pb.GetStatusRequest) (*pb.GetStatusResponse, error)
	// CreateWorkerSession creates a master's session on the task.
	CreateWorkerSession(context.Context, *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error)
	// DeleteWorkerSession ends the task's part of a session.
	DeleteWorkerSession(context.Context, *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error)
	// RegisterGraph registers the task's partition of a graph.
	RegisterGraph(context.Context, *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error)
	// DeregisterGraph drops a registered graph.
	DeregisterGraph(context.Context, *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error)
	// RunGraph runs the task's partition of a step.
	RunGraph(context.Context, *message.RunGraphRequest) (*message.RunGraphResponse, error)
	// CleanupGraph drops the state of a step.
	CleanupGraph(context.Context, *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error)
	// CleanupAll drops resource containers.
	CleanupAll(context.Context, *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error)
	// RecvTensor waits for a tensor that the task produces, and returns it.
	RecvTensor(context.Context, *message.RecvTensorRequest) (*message.RecvTensorResponse, error)
	// MarkRecvFinished acknowledges a tensor or buffer.
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

// RegisterWorker makes a server serve WorkerService. Panics of w are logged.
func RegisterWorker(s *Server, w Worker, logger *slog.Logger) {
	unary(s, logger, MethodGetStatus, w.GetStatus)
	unary(s, logger, MethodCreateWorkerSession, w.CreateWorkerSession)
	unary(s, logger, MethodDeleteWorkerSession, w.DeleteWorkerSession)
	unary(s, logger, MethodRegisterGraph, w.RegisterGraph)
	unary(s, logger, MethodDeregisterGraph, w.DeregisterGraph)
	unary(s, logger, MethodRunGraph, w.RunGraph)
	unary(s, logger, MethodCleanupGraph, w.CleanupGraph)
	unary(s, logger, MethodCleanupAll, w.CleanupAll)
	unary(s, logger, MethodRecvTensor, w.RecvTensor)
	unary(s, logger, MethodMarkRecvFinished, w.MarkRecvFinished)
	unary(s, logger, MethodLogging, w.Logging)
	unary(s, logger, MethodTracing, w.Tracing)
	unary(s, logger, MethodRecvBuf, w.RecvBuf)
	unary(s, logger, MethodGetStepSequence, w.GetStepSequence)
	unary(s, logger, MethodCompleteGroup, w.CompleteGroup)
	unary(s, logger, MethodCompleteInstance, w.CompleteInstance)
}
