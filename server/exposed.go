package server

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// A task that other machines reach without certificates ([Insecure]) has no names of callers. The
// checks below are a help against mistakes. They are no defense, because the source of a connection
// proves nothing.

// closedFiles is why operations have no files on such a task, for errors.
const closedFiles = "this task listens for other machines without certificates (--insecure), so operations have files only below --file-root"

// exposedMaster lets only tasks of the cluster drop variables and queues.
type exposedMaster struct {
	rpc.Master
	tasks *taskAddresses
}

// Reset implements [rpc.Master].
func (m exposedMaster) Reset(ctx context.Context, req *pb.ResetRequest) (*pb.ResetResponse, error) {
	if err := m.tasks.check(ctx, "Reset"); err != nil {
		return nil, err
	}
	return m.Master.Reset(ctx, req)
}

// exposedWorker is the same for workers.
type exposedWorker struct {
	rpc.Worker
	tasks *taskAddresses
}

// CleanupAll implements [rpc.Worker].
func (w exposedWorker) CleanupAll(ctx context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	if err := w.tasks.check(ctx, "CleanupAll"); err != nil {
		return nil, err
	}
	return w.Worker.CleanupAll(ctx, req)
}

// CreateWorkerSession implements [rpc.Worker]. A session may be made from any address, since the
// address of a task can be translated on the way. It does not end sessions of another master.
func (w exposedWorker) CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	if w.tasks.check(ctx, "CreateWorkerSession") != nil {
		ctx = peer.WithStranger(ctx)
	}
	return w.Worker.CreateWorkerSession(ctx, req)
}

// exposedInspection is the same for the calls of operators.
type exposedInspection struct {
	rpc.Inspection
	tasks *taskAddresses
}

// SetLogLevel implements [rpc.Inspection].
func (i exposedInspection) SetLogLevel(ctx context.Context, req *pb.SetLogLevelRequest) (*pb.SetLogLevelResponse, error) {
	if err := i.tasks.check(ctx, "SetLogLevel"); err != nil {
		return nil, err
	}
	return i.Inspection.SetLogLevel(ctx, req)
}

// CloseSessions implements [rpc.Inspection].
func (i exposedInspection) CloseSessions(ctx context.Context, req *pb.CloseSessionsRequest) (*pb.CloseSessionsResponse, error) {
	if err := i.tasks.check(ctx, "CloseSessions"); err != nil {
		return nil, err
	}
	return i.Inspection.CloseSessions(ctx, req)
}

// check returns an error if a call comes from another machine that has no task. A process of this
// machine has the address of a task.
func (a *taskAddresses) check(ctx context.Context, method string) error {
	ip := peer.Address(ctx)
	if !ip.IsValid() || ip.IsLoopback() || a.has(ip) {
		return nil
	}
	return status.Errorf(status.PermissionDenied, "%v may not call %s: without certificates (--insecure) only the addresses of tasks of the cluster may", ip, method)
}
