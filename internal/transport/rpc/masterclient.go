package rpc

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
)

// A MasterClient calls the MasterService of a server.
type MasterClient struct{ caller }

// NewMasterClient returns a client of the server at the other end of conn. Errors name the server
// by target.
func NewMasterClient(conn *Conn, target string) *MasterClient {
	return &MasterClient{caller{conn: conn, remote: "the master at " + target}}
}

// CreateSession starts a session with a first graph.
func (c *MasterClient) CreateSession(ctx context.Context, req *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	return invoke[pb.CreateSessionResponse](ctx, &c.caller, MethodCreateSession, req)
}

// ExtendSession adds nodes to a session's graph.
func (c *MasterClient) ExtendSession(ctx context.Context, req *pb.ExtendSessionRequest) (*pb.ExtendSessionResponse, error) {
	return invoke[pb.ExtendSessionResponse](ctx, &c.caller, MethodExtendSession, req)
}

// PartialRunSetup declares the feeds and fetches of a partial run.
func (c *MasterClient) PartialRunSetup(ctx context.Context, req *pb.PartialRunSetupRequest) (*pb.PartialRunSetupResponse, error) {
	return invoke[pb.PartialRunSetupResponse](ctx, &c.caller, MethodPartialRunSetup, req)
}

// RunStep runs one step, or the next part of a partial run.
func (c *MasterClient) RunStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	return invoke[message.RunStepResponse](ctx, &c.caller, MethodRunStep, req)
}

// CloseSession ends a session.
func (c *MasterClient) CloseSession(ctx context.Context, req *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error) {
	return invoke[pb.CloseSessionResponse](ctx, &c.caller, MethodCloseSession, req)
}

// ListDevices lists the devices of a session, or of the cluster.
func (c *MasterClient) ListDevices(ctx context.Context, req *pb.ListDevicesRequest) (*pb.ListDevicesResponse, error) {
	return invoke[pb.ListDevicesResponse](ctx, &c.caller, MethodListDevices, req)
}

// Reset drops resource containers, and the sessions with them.
func (c *MasterClient) Reset(ctx context.Context, req *pb.ResetRequest) (*pb.ResetResponse, error) {
	return invoke[pb.ResetResponse](ctx, &c.caller, MethodReset, req)
}

// MakeCallable prepares a subgraph to be run many times.
func (c *MasterClient) MakeCallable(ctx context.Context, req *pb.MakeCallableRequest) (*pb.MakeCallableResponse, error) {
	return invoke[pb.MakeCallableResponse](ctx, &c.caller, MethodMakeCallable, req)
}

// RunCallable runs a callable.
func (c *MasterClient) RunCallable(ctx context.Context, req *message.RunCallableRequest) (*message.RunCallableResponse, error) {
	return invoke[message.RunCallableResponse](ctx, &c.caller, MethodRunCallable, req)
}

// ReleaseCallable drops a callable.
func (c *MasterClient) ReleaseCallable(ctx context.Context, req *pb.ReleaseCallableRequest) (*pb.ReleaseCallableResponse, error) {
	return invoke[pb.ReleaseCallableResponse](ctx, &c.caller, MethodReleaseCallable, req)
}
