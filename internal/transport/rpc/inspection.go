package rpc

import (
	"context"
	"log/slog"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// InspectionService is the name of the service for those who operate a cluster.
const InspectionService = "weft.v1.Inspection"

// Full names of the methods of Inspection.
const (
	MethodGetTask       = "/" + InspectionService + "/GetTask"
	MethodGetCluster    = "/" + InspectionService + "/GetCluster"
	MethodRecord        = "/" + InspectionService + "/Record"
	MethodRecordCluster = "/" + InspectionService + "/RecordCluster"
	MethodGetLog        = "/" + InspectionService + "/GetLog"
	MethodSetLogLevel   = "/" + InspectionService + "/SetLogLevel"
	MethodCloseSessions = "/" + InspectionService + "/CloseSessions"
	MethodGetGraph      = "/" + InspectionService + "/GetGraph"
	MethodGetScalars    = "/" + InspectionService + "/GetScalars"
)

// Inspection describes a task and its cluster.
type Inspection interface {
	GetTask(context.Context, *pb.GetTaskRequest) (*pb.TaskInfo, error)
	GetCluster(context.Context, *pb.GetClusterRequest) (*pb.ClusterInfo, error)
	Record(context.Context, *pb.RecordRequest) (*pb.RecordResponse, error)
	RecordCluster(context.Context, *pb.RecordClusterRequest) (*pb.ClusterRecording, error)
	GetLog(context.Context, *pb.GetLogRequest) (*pb.Log, error)
	SetLogLevel(context.Context, *pb.SetLogLevelRequest) (*pb.SetLogLevelResponse, error)
	CloseSessions(context.Context, *pb.CloseSessionsRequest) (*pb.CloseSessionsResponse, error)
	GetGraph(context.Context, *pb.GetGraphRequest) (*pb.PlacedGraph, error)
	GetScalars(context.Context, *pb.GetScalarsRequest) (*pb.Scalars, error)
}

// RegisterInspection registers Inspection with a server. Panics of i are logged.
func RegisterInspection(s *Server, i Inspection, logger *slog.Logger) {
	unary(s, logger, MethodGetTask, i.GetTask)
	unary(s, logger, MethodGetCluster, i.GetCluster)
	unary(s, logger, MethodRecord, i.Record)
	unary(s, logger, MethodRecordCluster, i.RecordCluster)
	unary(s, logger, MethodGetLog, i.GetLog)
	unary(s, logger, MethodSetLogLevel, i.SetLogLevel)
	unary(s, logger, MethodCloseSessions, i.CloseSessions)
	unary(s, logger, MethodGetGraph, i.GetGraph)
	unary(s, logger, MethodGetScalars, i.GetScalars)
}

// GetTask asks the task to describe itself.
func (c *WorkerClient) GetTask(ctx context.Context, req *pb.GetTaskRequest) (*pb.TaskInfo, error) {
	return invoke[pb.TaskInfo](ctx, &c.caller, MethodGetTask, req)
}

// Record controls the recording of the task.
func (c *WorkerClient) Record(ctx context.Context, req *pb.RecordRequest) (*pb.RecordResponse, error) {
	return invoke[pb.RecordResponse](ctx, &c.caller, MethodRecord, req)
}

// GetLog asks the task for the last lines of its log.
func (c *WorkerClient) GetLog(ctx context.Context, req *pb.GetLogRequest) (*pb.Log, error) {
	return invoke[pb.Log](ctx, &c.caller, MethodGetLog, req)
}

// GetGraph asks the task for the graph of a session.
func (c *WorkerClient) GetGraph(ctx context.Context, req *pb.GetGraphRequest) (*pb.PlacedGraph, error) {
	return invoke[pb.PlacedGraph](ctx, &c.caller, MethodGetGraph, req)
}

// GetScalars asks the task for the numbers of summary operations.
func (c *WorkerClient) GetScalars(ctx context.Context, req *pb.GetScalarsRequest) (*pb.Scalars, error) {
	return invoke[pb.Scalars](ctx, &c.caller, MethodGetScalars, req)
}

// RecordCluster asks the server to record its cluster.
func (c *MasterClient) RecordCluster(ctx context.Context, req *pb.RecordClusterRequest) (*pb.ClusterRecording, error) {
	return invoke[pb.ClusterRecording](ctx, &c.caller, MethodRecordCluster, req)
}

// GetLog asks the server for the last lines of the log of its task or cluster.
func (c *MasterClient) GetLog(ctx context.Context, req *pb.GetLogRequest) (*pb.Log, error) {
	return invoke[pb.Log](ctx, &c.caller, MethodGetLog, req)
}

// SetLogLevel asks the server for another level of its log.
func (c *MasterClient) SetLogLevel(ctx context.Context, req *pb.SetLogLevelRequest) (*pb.SetLogLevelResponse, error) {
	return invoke[pb.SetLogLevelResponse](ctx, &c.caller, MethodSetLogLevel, req)
}

// CloseSessions asks the server to close sessions.
func (c *MasterClient) CloseSessions(ctx context.Context, req *pb.CloseSessionsRequest) (*pb.CloseSessionsResponse, error) {
	return invoke[pb.CloseSessionsResponse](ctx, &c.caller, MethodCloseSessions, req)
}

// GetCluster asks the server to describe its cluster.
func (c *MasterClient) GetCluster(ctx context.Context, req *pb.GetClusterRequest) (*pb.ClusterInfo, error) {
	return invoke[pb.ClusterInfo](ctx, &c.caller, MethodGetCluster, req)
}
