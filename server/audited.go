package server

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/audit"
	"github.com/weft-ml/weft/status"
)

// auditedMaster notes sessions that are made and closed, and resets.
type auditedMaster struct {
	rpc.Master
	log  *AuditLog
	task string
}

// note writes a line about a call, and returns the error of the call, or that of the line if it is
// required.
func (m auditedMaster) note(ctx context.Context, event, session string, err error) error {
	e := audit.Event{Event: event, Principal: trust.FromContext(ctx), Session: session, Task: m.task, Code: status.CodeOf(err).String()}
	if err != nil {
		e.Reason = err.Error()
	}
	return m.log.Require(e, err)
}

// CreateSession implements [rpc.Master]. A session whose line cannot be written is closed.
func (m auditedMaster) CreateSession(ctx context.Context, req *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	resp, err := m.Master.CreateSession(ctx, req)
	noted := m.note(ctx, audit.SessionMade, resp.GetSessionHandle(), err)
	if err == nil && noted != nil {
		// The caller gets the error of the line.
		_, _ = m.Master.CloseSession(ctx, &pb.CloseSessionRequest{SessionHandle: resp.GetSessionHandle()})
	}
	return resp, noted
}

// CloseSession implements [rpc.Master].
func (m auditedMaster) CloseSession(ctx context.Context, req *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error) {
	resp, err := m.Master.CloseSession(ctx, req)
	return resp, m.note(ctx, audit.SessionClosed, req.GetSessionHandle(), err)
}

// Reset implements [rpc.Master].
func (m auditedMaster) Reset(ctx context.Context, req *pb.ResetRequest) (*pb.ResetResponse, error) {
	resp, err := m.Master.Reset(ctx, req)
	return resp, m.note(ctx, audit.Reset, "", err)
}
