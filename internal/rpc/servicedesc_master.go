package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/weft-ml/weft/internal/pb"
)

// MasterService is the name of the service through which clients use a cluster.
const MasterService = "tensorflow.MasterService"

// Full names of the methods of MasterService, as an interceptor sees them.
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

// MasterServer serves MasterService. An error reaches the caller with its gRPC status, and as UNKNOWN without one.
type MasterServer interface {
	// CreateSession starts a session with a first graph.
	CreateSession(context.Context, *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error)
	// ExtendSession adds nodes to a session's graph.
	ExtendSession(context.Context, *pb.ExtendSessionRequest) (*pb.ExtendSessionResponse, error)
	// PartialRunSetup declares the feeds and fetches of a partial run.
	PartialRunSetup(context.Context, *pb.PartialRunSetupRequest) (*pb.PartialRunSetupResponse, error)
	// RunStep runs one step, or the next part of a partial run.
	RunStep(context.Context, *pb.RunStepRequest) (*pb.RunStepResponse, error)
	// CloseSession ends a session.
	CloseSession(context.Context, *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error)
	// ListDevices lists the devices of a session, or of the cluster.
	ListDevices(context.Context, *pb.ListDevicesRequest) (*pb.ListDevicesResponse, error)
	// Reset drops resource containers, and the sessions with them.
	Reset(context.Context, *pb.ResetRequest) (*pb.ResetResponse, error)
	// MakeCallable prepares a subgraph to be run many times.
	MakeCallable(context.Context, *pb.MakeCallableRequest) (*pb.MakeCallableResponse, error)
	// RunCallable runs a callable.
	RunCallable(context.Context, *pb.RunCallableRequest) (*pb.RunCallableResponse, error)
	// ReleaseCallable drops a callable.
	ReleaseCallable(context.Context, *pb.ReleaseCallableRequest) (*pb.ReleaseCallableResponse, error)
}

// MasterServiceDesc describes MasterService, to register a [MasterServer] with a [grpc.Server].
var MasterServiceDesc = grpc.ServiceDesc{
	ServiceName: MasterService,
	HandlerType: (*MasterServer)(nil),
	Methods: []grpc.MethodDesc{
		unary(MethodCreateSession, MasterServer.CreateSession),
		unary(MethodExtendSession, MasterServer.ExtendSession),
		unary(MethodPartialRunSetup, MasterServer.PartialRunSetup),
		unary(MethodRunStep, MasterServer.RunStep),
		unary(MethodCloseSession, MasterServer.CloseSession),
		unary(MethodListDevices, MasterServer.ListDevices),
		unary(MethodReset, MasterServer.Reset),
		unary(MethodMakeCallable, MasterServer.MakeCallable),
		unary(MethodRunCallable, MasterServer.RunCallable),
		unary(MethodReleaseCallable, MasterServer.ReleaseCallable),
	},
}

// MasterClient calls MasterService over a connection.
type MasterClient struct{ conn grpc.ClientConnInterface }

// NewMasterClient returns a client that calls over conn, which stays the caller's to close.
func NewMasterClient(conn grpc.ClientConnInterface) MasterClient { return MasterClient{conn: conn} }

// CreateSession starts a session with a first graph.
func (c MasterClient) CreateSession(ctx context.Context, req *pb.CreateSessionRequest, opts ...grpc.CallOption) (*pb.CreateSessionResponse, error) {
	return invoke[pb.CreateSessionResponse](ctx, c.conn, MethodCreateSession, req, opts)
}

// ExtendSession adds nodes to a session's graph.
func (c MasterClient) ExtendSession(ctx context.Context, req *pb.ExtendSessionRequest, opts ...grpc.CallOption) (*pb.ExtendSessionResponse, error) {
	return invoke[pb.ExtendSessionResponse](ctx, c.conn, MethodExtendSession, req, opts)
}

// PartialRunSetup declares the feeds and fetches of a partial run.
func (c MasterClient) PartialRunSetup(ctx context.Context, req *pb.PartialRunSetupRequest, opts ...grpc.CallOption) (*pb.PartialRunSetupResponse, error) {
	return invoke[pb.PartialRunSetupResponse](ctx, c.conn, MethodPartialRunSetup, req, opts)
}

// RunStep runs one step, or the next part of a partial run.
func (c MasterClient) RunStep(ctx context.Context, req *pb.RunStepRequest, opts ...grpc.CallOption) (*pb.RunStepResponse, error) {
	return invoke[pb.RunStepResponse](ctx, c.conn, MethodRunStep, req, opts)
}

// CloseSession ends a session.
func (c MasterClient) CloseSession(ctx context.Context, req *pb.CloseSessionRequest, opts ...grpc.CallOption) (*pb.CloseSessionResponse, error) {
	return invoke[pb.CloseSessionResponse](ctx, c.conn, MethodCloseSession, req, opts)
}

// ListDevices lists the devices of a session, or of the cluster.
func (c MasterClient) ListDevices(ctx context.Context, req *pb.ListDevicesRequest, opts ...grpc.CallOption) (*pb.ListDevicesResponse, error) {
	return invoke[pb.ListDevicesResponse](ctx, c.conn, MethodListDevices, req, opts)
}

// Reset drops resource containers, and the sessions with them.
func (c MasterClient) Reset(ctx context.Context, req *pb.ResetRequest, opts ...grpc.CallOption) (*pb.ResetResponse, error) {
	return invoke[pb.ResetResponse](ctx, c.conn, MethodReset, req, opts)
}

// MakeCallable prepares a subgraph to be run many times.
func (c MasterClient) MakeCallable(ctx context.Context, req *pb.MakeCallableRequest, opts ...grpc.CallOption) (*pb.MakeCallableResponse, error) {
	return invoke[pb.MakeCallableResponse](ctx, c.conn, MethodMakeCallable, req, opts)
}

// RunCallable runs a callable.
func (c MasterClient) RunCallable(ctx context.Context, req *pb.RunCallableRequest, opts ...grpc.CallOption) (*pb.RunCallableResponse, error) {
	return invoke[pb.RunCallableResponse](ctx, c.conn, MethodRunCallable, req, opts)
}

// ReleaseCallable drops a callable.
func (c MasterClient) ReleaseCallable(ctx context.Context, req *pb.ReleaseCallableRequest, opts ...grpc.CallOption) (*pb.ReleaseCallableResponse, error) {
	return invoke[pb.ReleaseCallableResponse](ctx, c.conn, MethodReleaseCallable, req, opts)
}
