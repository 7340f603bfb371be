package rpc

import (
	"context"
	"log/slog"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
)

// MasterService is the name of the service that clients use.
const MasterService = "tensorflow.MasterService"

// Full names of the methods of MasterService.
const (
	MethodCreateSession   = "/" + MasterService + "/CreateSession"
	MethodExtendSession   = "/" + MasterService + "/ExtendSession"
	MethodPartialRunSetup = "/" + MasterService + "/PartialRunSetup"
	MethodRunStep         = "/" + MasterService + "/RunStep"
	MethodCloseSession    = "/" + MasterService + "/CloseSession"
	MethodListDevices     = "/" + MasterService + "/ListDevices"
	MethodReset           = "/" + MasterService + "/Reset"
	MethodMakeCallable    = "/" + MasterService + "/MakeCallable"
	MethodRunCallable     = "/" + MasterService + "/RunCallable"
	MethodReleaseCallable = "/" + MasterService + "/ReleaseCallable"
)

// Master serves MasterService. The caller owns a request and its tensors, and the tensors of a
// response. Errors have codes; RunStep returns them in the body of the response if the request asks
// for that.
type Master interface {
	// CreateSession starts a session with a first graph.
	CreateSession(context.Context, *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error)
	// ExtendSession adds nodes to a session's graph.
	ExtendSession(context.Context, *pb.ExtendSessionRequest) (*pb.ExtendSessionResponse, error)
	// PartialRunSetup declares the feeds and fetches of a partial run.
	PartialRunSetup(context.Context, *pb.PartialRunSetupRequest) (*pb.PartialRunSetupResponse, error)
	// RunStep runs one step, or the next part of a partial run.
	RunStep(context.Context, *message.RunStepRequest) (*message.RunStepResponse, error)
	// CloseSession ends a session.
	CloseSession(context.Context, *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error)
	// ListDevices lists the devices of a session, or of the cluster.
	ListDevices(context.Context, *pb.ListDevicesRequest) (*pb.ListDevicesResponse, error)
	// Reset drops resource containers, and the sessions with them.
	Reset(context.Context, *pb.ResetRequest) (*pb.ResetResponse, error)
	// MakeCallable prepares a subgraph to be run many times.
	MakeCallable(context.Context, *pb.MakeCallableRequest) (*pb.MakeCallableResponse, error)
	// RunCallable runs a callable.
	RunCallable(context.Context, *message.RunCallableRequest) (*message.RunCallableResponse, error)
	// ReleaseCallable drops a callable.
	ReleaseCallable(context.Context, *pb.ReleaseCallableRequest) (*pb.ReleaseCallableResponse, error)
}

// RegisterMaster registers MasterService with a server. Panics of m are logged.
func RegisterMaster(s *Server, m Master, logger *slog.Logger) {
	withRollback(s, logger, MethodCreateSession, m.CreateSession, func(resp *pb.CreateSessionResponse) {
		_, err := m.CloseSession(context.Background(), &pb.CloseSessionRequest{SessionHandle: resp.GetSessionHandle()})
		if err != nil {
			logger.Debug("cannot close the session of a client that has gone", "error", err)
		}
	})
	unary(s, logger, MethodExtendSession, m.ExtendSession)
	unary(s, logger, MethodPartialRunSetup, m.PartialRunSetup)
	unary(s, logger, MethodRunStep, m.RunStep)
	unary(s, logger, MethodCloseSession, m.CloseSession)
	unary(s, logger, MethodListDevices, m.ListDevices)
	unary(s, logger, MethodReset, m.Reset)
	unary(s, logger, MethodMakeCallable, m.MakeCallable)
	unary(s, logger, MethodRunCallable, m.RunCallable)
	unary(s, logger, MethodReleaseCallable, m.ReleaseCallable)
}
