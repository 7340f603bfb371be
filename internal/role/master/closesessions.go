package master

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// CloseSessions closes the session with a handle, or all sessions of an owner. The first characters
// of a handle suffice. Running steps fail with CANCELLED. Sessions that the caller may not use do
// not exist for it. It fails with NOT_FOUND if there is no such session, and with INVALID_ARGUMENT
// if several handles begin alike.
func (m *Master) CloseSessions(ctx context.Context, req *pb.CloseSessionsRequest) (*pb.CloseSessionsResponse, error) {
	chosen, err := m.choose(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := &pb.CloseSessionsResponse{}
	var wg sync.WaitGroup
	for _, s := range chosen {
		info := s.inspect(ctx)
		if m.remove(s.handle) == nil {
			continue // another call has closed it
		}
		resp.Closed = append(resp.Closed, info)
		wg.Go(func() { s.close(ctx, closedByOperator) })
		m.Log.Info("closed a session for an operator", "session", s.handle)
	}
	wg.Wait()
	return resp, nil
}

// choose returns the sessions that a request names, the oldest first.
func (m *Master) choose(ctx context.Context, req *pb.CloseSessionsRequest) ([]*session, error) {
	handle, owner := req.GetHandle(), req.GetOwner()
	switch {
	case (handle == "") == (owner == ""):
		return nil, status.InvalidArgumentf("CloseSessions needs either a handle or an owner")
	case handle != "" && len(handle) < shownHandle:
		return nil, status.InvalidArgumentf("The handle %q is too short: at least %d characters are needed", handle, shownHandle)
	}
	chosen := slices.DeleteFunc(m.all(), func(s *session) bool {
		return !s.mayUse(ctx) || handle != "" && !strings.HasPrefix(s.handle, handle) || owner != "" && (s.owner == nil || s.owner.String() != owner)
	})
	switch {
	case len(chosen) == 0 && handle != "":
		return nil, status.NotFoundf("Session %s is not found at %v", handle, m.Task)
	case len(chosen) == 0:
		return nil, status.NotFoundf("No session of %s is found at %v", owner, m.Task)
	case len(chosen) > 1 && handle != "":
		return nil, status.InvalidArgumentf("%d handles begin with %s: give more characters of the handle", len(chosen), handle)
	}
	slices.SortFunc(chosen, func(a, b *session) int { return a.created.Compare(b.created) })
	return chosen, nil
}
