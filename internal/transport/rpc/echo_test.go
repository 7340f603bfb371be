package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// An echo is a master and a worker that answers with its error, or with the mark of the request:
// unknown bytes, or the name of a session or key.
type echo struct{ err error }

func echoed[Resp proto.Message](e echo, req proto.Message, resp Resp) (Resp, error) {
	if e.err != nil {
		var none Resp
		return none, e.err
	}
	resp.ProtoReflect().SetUnknown(req.ProtoReflect().GetUnknown())
	return resp, nil
}

func (e echo) CreateSession(_ context.Context, req *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	return echoed(e, req, &pb.CreateSessionResponse{})
}

func (e echo) ExtendSession(_ context.Context, req *pb.ExtendSessionRequest) (*pb.ExtendSessionResponse, error) {
	return echoed(e, req, &pb.ExtendSessionResponse{})
}

func (e echo) PartialRunSetup(_ context.Context, req *pb.PartialRunSetupRequest) (*pb.PartialRunSetupResponse, error) {
	return echoed(e, req, &pb.PartialRunSetupResponse{})
}

func (e echo) CloseSession(_ context.Context, req *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error) {
	return echoed(e, req, &pb.CloseSessionResponse{})
}

func (e echo) ListDevices(_ context.Context, req *pb.ListDevicesRequest) (*pb.ListDevicesResponse, error) {
	return echoed(e, req, &pb.ListDevicesResponse{})
}

func (e echo) Reset(_ context.Context, req *pb.ResetRequest) (*pb.ResetResponse, error) {
	return echoed(e, req, &pb.ResetResponse{})
}

func (e echo) MakeCallable(_ context.Context, req *pb.MakeCallableRequest) (*pb.MakeCallableResponse, error) {
	return echoed(e, req, &pb.MakeCallableResponse{})
}

func (e echo) ReleaseCallable(_ context.Context, req *pb.ReleaseCallableRequest) (*pb.ReleaseCallableResponse, error) {
	return echoed(e, req, &pb.ReleaseCallableResponse{})
}

func (e echo) GetTask(_ context.Context, req *pb.GetTaskRequest) (*pb.TaskInfo, error) {
	return echoed(e, req, &pb.TaskInfo{})
}

func (e echo) GetCluster(_ context.Context, req *pb.GetClusterRequest) (*pb.ClusterInfo, error) {
	return echoed(e, req, &pb.ClusterInfo{})
}

func (e echo) Record(_ context.Context, req *pb.RecordRequest) (*pb.RecordResponse, error) {
	return echoed(e, req, &pb.RecordResponse{})
}

func (e echo) RecordCluster(_ context.Context, req *pb.RecordClusterRequest) (*pb.ClusterRecording, error) {
	return echoed(e, req, &pb.ClusterRecording{})
}

func (e echo) GetLog(_ context.Context, req *pb.GetLogRequest) (*pb.Log, error) {
	return echoed(e, req, &pb.Log{})
}

func (e echo) SetLogLevel(_ context.Context, req *pb.SetLogLevelRequest) (*pb.SetLogLevelResponse, error) {
	return echoed(e, req, &pb.SetLogLevelResponse{})
}

func (e echo) CloseSessions(_ context.Context, req *pb.CloseSessionsRequest) (*pb.CloseSessionsResponse, error) {
	return echoed(e, req, &pb.CloseSessionsResponse{})
}

func (e echo) GetGraph(_ context.Context, req *pb.GetGraphRequest) (*pb.PlacedGraph, error) {
	return echoed(e, req, &pb.PlacedGraph{})
}

func (e echo) GetScalars(_ context.Context, req *pb.GetScalarsRequest) (*pb.Scalars, error) {
	return echoed(e, req, &pb.Scalars{})
}

func (e echo) GetStatus(_ context.Context, req *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	return echoed(e, req, &pb.GetStatusResponse{})
}

func (e echo) CreateWorkerSession(_ context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	return echoed(e, req, &pb.CreateWorkerSessionResponse{})
}

func (e echo) DeleteWorkerSession(_ context.Context, req *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error) {
	return echoed(e, req, &pb.DeleteWorkerSessionResponse{})
}

func (e echo) RegisterGraph(_ context.Context, req *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error) {
	return echoed(e, req, &pb.RegisterGraphResponse{})
}

func (e echo) DeregisterGraph(_ context.Context, req *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error) {
	return echoed(e, req, &pb.DeregisterGraphResponse{})
}

func (e echo) CleanupGraph(_ context.Context, req *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error) {
	return echoed(e, req, &pb.CleanupGraphResponse{})
}

func (e echo) CleanupAll(_ context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	return echoed(e, req, &pb.CleanupAllResponse{})
}

func (e echo) MarkRecvFinished(_ context.Context, req *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error) {
	return echoed(e, req, &pb.MarkRecvFinishedResponse{})
}

func (e echo) Logging(_ context.Context, req *pb.LoggingRequest) (*pb.LoggingResponse, error) {
	return echoed(e, req, &pb.LoggingResponse{})
}

func (e echo) Tracing(_ context.Context, req *pb.TracingRequest) (*pb.TracingResponse, error) {
	return echoed(e, req, &pb.TracingResponse{})
}

func (e echo) RecvBuf(_ context.Context, req *pb.RecvBufRequest) (*pb.RecvBufResponse, error) {
	return echoed(e, req, &pb.RecvBufResponse{})
}

func (e echo) GetStepSequence(_ context.Context, req *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error) {
	return echoed(e, req, &pb.GetStepSequenceResponse{})
}

func (e echo) CompleteGroup(_ context.Context, req *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error) {
	return echoed(e, req, &pb.CompleteGroupResponse{})
}

func (e echo) CompleteInstance(_ context.Context, req *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error) {
	return echoed(e, req, &pb.CompleteInstanceResponse{})
}

func (e echo) RunStep(_ context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	switch {
	case e.err != nil && req.StoreErrorsInBody:
		return &message.RunStepResponse{Err: status.From(e.err)}, nil
	case e.err != nil:
		return nil, e.err
	}
	return &message.RunStepResponse{Tensors: []message.NamedTensor{{Name: req.Session, Tensor: tensor.Scalar(int32(1))}}}, nil
}

func (e echo) RunCallable(_ context.Context, req *message.RunCallableRequest) (*message.RunCallableResponse, error) {
	if e.err != nil {
		return nil, e.err
	}
	return &message.RunCallableResponse{Fetches: []tensor.Tensor{tensor.Scalar(req.Session)}}, nil
}

func (e echo) RunGraph(_ context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error) {
	switch {
	case e.err != nil && req.StoreErrorsInBody:
		return &message.RunGraphResponse{Err: status.From(e.err)}, nil
	case e.err != nil:
		return nil, e.err
	}
	return &message.RunGraphResponse{Recv: []message.NamedTensor{{Name: req.Session, Tensor: tensor.Scalar(int32(1))}}}, nil
}

func (e echo) RecvTensor(_ context.Context, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	if e.err != nil {
		return nil, e.err
	}
	return &message.RecvTensorResponse{Tensor: tensor.Scalar(req.Key)}, nil
}
