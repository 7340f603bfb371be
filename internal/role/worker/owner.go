package worker

import (
	"context"
	"strings"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// callerOf returns the task that makes a request over the network. It is zero for the task's own
// master, and without certificates.
func callerOf(ctx context.Context) cluster.Task {
	if p := trust.FromContext(ctx); p != nil && p.Role == trust.Task {
		return p.Task
	}
	return cluster.Task{}
}

// checkMaster checks that the master that a request names is the caller. A request with another
// incarnation of this task's own master is false, and would drop the sessions of that master.
func (w *Worker) checkMaster(ctx context.Context, s *session) error {
	own := w.Task.String()
	if s.master == own && s.task == w.Task && len(w.Devices) > 0 && uint64(s.masterIncarnation) != w.Devices[0].Incarnation {
		return status.Errorf(status.PermissionDenied, "the incarnation of the master %q is not %016x", own, uint64(s.masterIncarnation))
	}
	caller := callerOf(ctx)
	if caller == (cluster.Task{}) || s.master == s.nameOf(caller) {
		return nil
	}
	return status.Errorf(status.PermissionDenied, "task %s may not create a session in the name of the master %q",
		caller.Short(), s.master)
}

// admits reports whether a task may use the session: its master, or a task whose devices the
// session has, which may run parts of functions here.
func (s *session) admits(caller cluster.Task) bool {
	if caller == s.owner {
		return true
	}
	prefix := s.nameOf(caller) + "/"
	for name := range s.shared {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// nameOf returns the name that a task has in the cluster of the session.
func (s *session) nameOf(t cluster.Task) string {
	if alias, ok := s.aliases[t]; ok {
		return alias.String()
	}
	return t.String()
}

// aliases returns the names of tasks in the cluster that a session brings, by their address.
func aliases(own, spec cluster.Spec) map[cluster.Task]cluster.Task {
	byAddress := map[string]cluster.Task{}
	for _, t := range spec.Tasks() {
		byAddress[spec.Address(t)] = t
	}
	out := map[cluster.Task]cluster.Task{}
	for _, t := range own.Tasks() {
		if alias, ok := byAddress[own.Address(t)]; ok {
			out[t] = alias
		}
	}
	return out
}

// checkReceiver checks that a tensor or buffer for a device is sent to the caller.
func (w *Worker) checkReceiver(ctx context.Context, sendDevice, recvDevice string) error {
	caller := callerOf(ctx)
	if caller == (cluster.Task{}) || strings.HasPrefix(recvDevice, caller.String()+"/") {
		return nil
	}
	if !w.legacy.isLocal(sendDevice) { // a session has brought its own cluster
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.sessions {
			if s.aliases != nil && s.isLocal(sendDevice) && strings.HasPrefix(recvDevice, s.nameOf(caller)+"/") {
				return nil
			}
		}
	}
	return status.Errorf(status.PermissionDenied, "task %s may not receive what is sent to %s", caller.Short(), recvDevice)
}

// checkMember checks that a device belongs to the caller.
func (w *Worker) checkMember(ctx context.Context, device string) error {
	caller := callerOf(ctx)
	if caller == (cluster.Task{}) || strings.HasPrefix(device, caller.String()+"/") {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sessions {
		if s.aliases != nil && strings.HasPrefix(device, s.nameOf(caller)+"/") {
			return nil
		}
	}
	return status.Errorf(status.PermissionDenied, "task %s may not act for the device %s", caller.Short(), device)
}

// tenantDevices returns the devices with the resources of a tenant, which no other tenant can
// name. The empty tenant has those of the devices themselves.
func (w *Worker) tenantDevices(tenant string) []*kernel.Device {
	if tenant == "" {
		return w.Devices
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	devices := w.tenants[tenant]
	if devices == nil {
		devices = privateDevices(w.Devices, w.Task, true)
		if w.tenants == nil {
			w.tenants = map[string][]*kernel.Device{}
		}
		w.tenants[tenant] = devices
	}
	return devices
}

// cleanedDevices returns the devices whose resources a CleanupAll concerns.
func (w *Worker) cleanedDevices(ctx context.Context, req *pb.CleanupAllRequest) []*kernel.Device {
	p := trust.FromContext(ctx)
	all := p == nil && peer.IsForAll(req) || p != nil && (p.Role == trust.Operator || p.Role == trust.Task && peer.IsForAll(req))
	tenant, _ := peer.Delegated(req)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !all {
		if tenant == "" {
			return w.Devices
		}
		return w.tenants[tenant]
	}
	devices := append([]*kernel.Device(nil), w.Devices...)
	for _, d := range w.tenants {
		devices = append(devices, d...)
	}
	return devices
}

// ClearTenants drops the resources of all tenants. The worker must be closed.
func (w *Worker) ClearTenants() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, devices := range w.tenants {
		for _, d := range devices {
			d.Resources.ClearAll()
		}
	}
}
