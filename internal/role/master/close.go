package master

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/status"
)

// CloseSession closes a session and cancels its steps.
func (m *Master) CloseSession(ctx context.Context, req *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error) {
	s := m.session(ctx, req.GetSessionHandle())
	if s == nil || m.remove(s.handle) == nil {
		return nil, status.Abortedf("Session %s is not found. Possibly, this master has restarted.", req.GetSessionHandle())
	}
	s.close(ctx, closedByClient)
	m.Log.Info("closed a session", "session", s.handle)
	return &pb.CloseSessionResponse{}, nil
}

// Reset drops the resources in the given containers on all tasks that satisfy the filters, and
// closes all sessions. A client's request concerns its tenant alone.
func (m *Master) Reset(ctx context.Context, req *pb.ResetRequest) (*pb.ResetResponse, error) {
	filters, err := parseFilters(req.GetDeviceFilters())
	if err != nil {
		return nil, err
	}
	var sessions []*session
	m.mu.Lock()
	for handle, s := range m.sessions {
		if s.concerns(ctx) {
			sessions = append(sessions, s)
			delete(m.sessions, handle)
		}
	}
	m.mu.Unlock()
	m.cleanupAll(ctx, filters.tasks(m.Workers.Tasks(), m.Task), req.GetContainer())
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() { s.close(ctx, closedByClient) })
	}
	wg.Wait()
	m.Log.Info("reset", "peer", origin(ctx, trust.FromContext(ctx)), "sessions", len(sessions), "containers", req.GetContainer())
	return &pb.ResetResponse{}, nil
}

// cleanupAll clears containers on the given tasks. Errors are logged.
func (m *Master) cleanupAll(ctx context.Context, tasks []cluster.Task, containers []string) {
	caller := trust.FromContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, task := range tasks {
		wg.Go(func() {
			w, err := m.Workers.Worker(task)
			if err == nil {
				req := &pb.CleanupAllRequest{Container: containers}
				if delegate(caller, req); caller != nil && caller.Role == trust.Operator {
					peer.DelegateAll(req)
				}
				_, err = w.CleanupAll(ctx, req)
			}
			if err != nil {
				m.Log.Error("Worker CleanupAll failed", "peer", task, "error", err)
			}
		})
	}
	wg.Wait()
}

// ListDevices describes the devices that a session can use. Without a session, it describes those
// of all tasks of the cluster.
func (m *Master) ListDevices(ctx context.Context, req *pb.ListDevicesRequest) (*pb.ListDevicesResponse, error) {
	if handle := req.GetSessionHandle(); handle != "" {
		s := m.session(ctx, handle)
		if s == nil {
			return nil, status.InvalidArgumentf("Session %s is not found. Possibly, this master has restarted.", handle)
		}
		return s.listDevices(), nil
	}
	found, _, err := m.findDevices(ctx, m.Workers, m.Workers.Tasks(), &m.clusters)
	if err != nil {
		return nil, err
	}
	return &pb.ListDevicesResponse{
		LocalDevice: found.of(m.Task).attributes(), RemoteDevice: found.notOf(m.Task).attributes(),
	}, nil
}

// listDevices reports all devices as local, those of the master's task first, as clients of
// TensorFlow expect. In a session with its own cluster, only the client's device is local.
func (s *session) listDevices() *pb.ListDevicesResponse {
	if !s.ownCluster {
		own, others := s.devices.of(s.task), s.devices.notOf(s.task)
		return &pb.ListDevicesResponse{LocalDevice: append(own.attributes(), others.attributes()...)}
	}
	resp := &pb.ListDevicesResponse{LocalDevice: []*pb.DeviceAttributes{s.client.attrs}}
	for _, d := range s.devices {
		if d.name != s.client.name {
			resp.RemoteDevice = append(resp.RemoteDevice, d.attrs)
		}
	}
	return resp
}
