package worker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// session is the part of a master's session on this task: its devices, graphs and kernels.
type session struct {
	handle  string
	task    cluster.Task // the name of this task in the session's cluster
	prefix  string       // of the names of the task's devices
	devices []*kernel.Device
	private bool   // the devices have resources of their own
	scope   *Scope // nil unless it is the session of an eager context
	peers   Peers
	// devices of other tasks that functions can use, with their incarnations
	shared  map[string]uint64
	parts   *functionParts
	account *membudget.Account // pays for tensors; nil for none

	owner  cluster.Task // the master, if it calls over the network with a certificate
	tenant string       // for which the master acts; "" for none
	// names in the session's own cluster, by those in the task's; nil for none
	aliases map[cluster.Task]cluster.Task

	master            string // task of the master that created the session; "" if unknown
	masterIncarnation int64
	active            atomic.Bool // the session has been used since the last check of leases
	lease             lease
	steps             int // number of its steps; guarded by steps.mu

	mu      sync.Mutex
	closed  atomic.Bool             // written with mu held
	graphs  map[string]*registered  // guarded by mu; by handle
	kernels map[string]*kernelCache // guarded by mu; by the session handle in RegisterGraph
	// last number in generated names and graph handles; guarded by mu
	counter int64
}

func newSession(handle string, task cluster.Task, peers Peers, devices []*kernel.Device) *session {
	return &session{
		handle: handle, task: task, prefix: task.String() + "/", devices: devices, peers: peers,
		parts: newFunctionParts(), graphs: map[string]*registered{}, kernels: map[string]*kernelCache{},
	}
}

// CreateWorkerSession creates a session; an existing one stays as it is. It drops the sessions of
// an earlier incarnation of the same master, which can no longer do that itself.
func (w *Worker) CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	if err := failpoint.Hit("worker/create-session"); err != nil {
		return nil, err
	}
	if req.GetSessionHandle() == "" {
		return nil, status.InvalidArgumentf("Session must be non-empty.")
	}
	if err := chargeSession(ctx, req); err != nil {
		return nil, err
	}
	s, err := w.makeSession(req)
	if err == nil {
		err = w.checkMaster(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	s.owner = callerOf(ctx)
	w.mu.Lock()
	if old := w.sessions[s.handle]; old != nil && old.owner != s.owner {
		w.mu.Unlock()
		return nil, status.Errorf(status.PermissionDenied, "another master has a session %s", s.handle)
	}
	var stale []*session
	if !peer.IsStranger(ctx) {
		stale = w.staleLocked(s.master, s.masterIncarnation)
	}
	_, exists := w.sessions[s.handle]
	if !exists && !w.closed {
		if err = checkCount(len(w.sessions)); err == nil {
			w.sessions[s.handle] = s
			w.startLeasesLocked()
		}
	}
	w.mu.Unlock()
	for _, old := range stale {
		w.Log.Warn("dropping the session of a master that has restarted", "session", old.handle, "peer", old.master)
		w.drop(old)
	}
	if err != nil {
		return nil, err
	}
	// the master may have requested the deletion of the session in the meantime
	if !exists && ctx.Err() != nil {
		w.remove(s.handle)
		return nil, status.FromContext(ctx, "creating a session")
	}
	w.Log.Debug("joined a session", "session", s.handle, "peer", s.master)
	return &pb.CreateWorkerSessionResponse{}, nil
}

// staleLocked removes and returns the sessions of another incarnation of a master.
func (w *Worker) staleLocked(master string, incarnation int64) []*session {
	if master == "" {
		return nil
	}
	var stale []*session
	for handle, s := range w.sessions {
		if s.master == master && s.masterIncarnation != incarnation {
			stale = append(stale, s)
			delete(w.sessions, handle)
		}
	}
	return stale
}

func (w *Worker) makeSession(req *pb.CreateWorkerSessionRequest) (*session, error) {
	tenant, _ := peer.Delegated(req)
	task, peers, devices := w.Task, w.Peers, w.tenantDevices(tenant)
	def := req.GetServerDef()
	var names map[cluster.Task]cluster.Task
	isolate := req.GetIsolateSessionState()
	if jobs := def.GetCluster().GetJob(); len(jobs) > 0 {
		spec, err := cluster.FromJobs(func(yield func(string, map[int32]string) bool) {
			for _, job := range jobs {
				if !yield(job.GetName(), job.GetTasks()) {
					return
				}
			}
		})
		if err != nil {
			return nil, err
		}
		if w.Connect == nil {
			return nil, status.Unimplementedf("%v does not allow sessions with a cluster of their own", w.Task)
		}
		task = cluster.Task{Job: def.GetJobName(), Index: int(def.GetTaskIndex())}
		if peers, err = w.Connect(spec, task); err != nil {
			return nil, err
		}
		names = aliases(w.Cluster, spec)
	}
	if isolate || task != w.Task {
		devices = privateDevices(devices, task, isolate)
	}
	s := newSession(req.GetSessionHandle(), task, peers, devices)
	s.private, s.tenant, s.aliases = isolate, tenant, names
	s.account = w.Quota.SessionAccount(s.tenant)
	s.master, s.masterIncarnation = req.GetMasterTask(), req.GetMasterIncarnation()
	if len(def.GetCluster().GetJob()) == 0 {
		w.compareSpecs(req)
	}
	return s, s.share(req.GetClusterDeviceAttributes())
}

// compareSpecs logs differences between the cluster specifications of a master and of the worker,
// as far as a request shows them. They are no errors: masters of earlier releases send less, and a
// worker may know only a subset of the tasks.
func (w *Worker) compareSpecs(req *pb.CreateWorkerSessionRequest) {
	name := cluster.Task{Job: req.GetServerDef().GetJobName(), Index: int(req.GetServerDef().GetTaskIndex())}
	if name.Job != "" && name != w.Task {
		w.Log.Warn("a master calls this task by another name: their cluster specifications differ",
			"name", name, "peer", req.GetMasterTask())
	}
	if master := req.GetMasterTask(); master != "" && w.Peers != nil && master != w.Task.String() {
		if _, err := w.Peers.Peer(master); err != nil {
			w.Log.Warn("the task of a master is not in this task's cluster specification: it cannot send tensors here",
				"peer", master, "error", err)
		}
	}
}

// share records the devices of the cluster on other tasks.
func (s *session) share(devices []*pb.DeviceAttributes) error {
	s.shared = map[string]uint64{}
	for _, d := range devices {
		name, err := device.Parse(d.GetName())
		if err != nil || !name.IsFull() {
			return status.InvalidArgumentf("Invalid device name in cluster_device_attributes: %q", d.GetName())
		}
		if full := name.String(); !s.isLocal(full) {
			s.shared[full] = d.GetIncarnation()
		}
	}
	return nil
}

// privateDevices returns copies of devices, named after the task's name in a session's cluster.
// Isolated copies have resources of their own.
func privateDevices(devices []*kernel.Device, task cluster.Task, isolate bool) []*kernel.Device {
	out := make([]*kernel.Device, len(devices))
	for i, d := range devices {
		own := *d
		_, local, _ := strings.Cut(d.Name, "/device:")
		own.Name = task.String() + "/device:" + local
		if isolate {
			own.Resources = kernel.NewResources(task.Job)
		}
		out[i] = &own
	}
	return out
}

// DeleteWorkerSession drops a session with its graphs and steps. An unknown session is no error,
// because it may have been lost in a restart.
func (w *Worker) DeleteWorkerSession(ctx context.Context, req *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error) {
	if err := failpoint.Hit("worker/delete-session"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	s := w.sessions[req.GetSessionHandle()]
	w.mu.Unlock()
	if s == nil || s.owner != callerOf(ctx) {
		return &pb.DeleteWorkerSessionResponse{}, nil
	}
	w.remove(req.GetSessionHandle())
	return &pb.DeleteWorkerSessionResponse{}, nil
}

// remove ends the session of a handle, if there is one.
func (w *Worker) remove(handle string) {
	w.mu.Lock()
	s := w.sessions[handle]
	delete(w.sessions, handle)
	last := len(w.sessions) == 0
	w.mu.Unlock()
	if s == nil {
		return
	}
	w.drop(s)
	w.Log.Debug("dropped a session", "session", handle)
	if last && w.Unused != nil {
		w.Unused()
	}
}

// drop ends the steps of a removed session and releases what it holds.
func (w *Worker) drop(s *session) {
	s.close() // runs that begin later fail
	w.steps.endSession(s, status.Abortedf("The session %s was deleted.", s.handle))
	for _, d := range s.devices {
		if s.private { // resources may hold open files
			d.Resources.ClearAll()
		} else {
			d.Resources.Clear(kernel.SessionContainer(s.handle))
		}
	}
}

// session returns the session of a request, or the shared one for masters that do not create
// sessions.
func (w *Worker) session(ctx context.Context, handle string, created bool) (*session, error) {
	caller := callerOf(ctx)
	if !created || handle == "" {
		if caller != (cluster.Task{}) {
			return nil, status.Errorf(status.PermissionDenied, "a task with a certificate must create a session before it uses one")
		}
		return w.legacy, nil
	}
	w.mu.Lock()
	s, ok := w.sessions[handle]
	w.mu.Unlock()
	if !ok || !s.admits(caller) {
		return nil, w.sessionNotFound(handle)
	}
	s.touch()
	return s, nil
}

func (w *Worker) sessionNotFound(handle string) error {
	return status.Abortedf("Session handle is not found: %s. Possibly this worker (\"%v\") just restarted.",
		handle, w.Task).WithPayload(status.PayloadWorkerRestarted, nil)
}

func (s *session) isClosed() bool { return s.closed.Load() }

// close releases the graphs and kernels of a session. A running graph is released when its run
// ends.
func (s *session) close() {
	s.mu.Lock()
	s.closed.Store(true)
	graphs := s.graphs
	s.graphs = map[string]*registered{}
	s.mu.Unlock()
	for _, g := range graphs {
		g.release()
	}
}

// device returns the device of a full name, or nil.
func (s *session) device(name string) *kernel.Device {
	for _, d := range s.devices {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// isLocal reports whether a device with a full name is on this task.
func (s *session) isLocal(name string) bool { return strings.HasPrefix(name, s.prefix) }

// newName returns an unused name for a generated node.
func (s *session) newName(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter++
	return fmt.Sprintf("%s_G%d", prefix, s.counter)
}

// taskOf returns the name of the task that a device is on.
func taskOf(deviceName string) (string, error) {
	if i := strings.Index(deviceName, "/device:"); i > 0 {
		return deviceName[:i], nil
	}
	spec, err := device.Parse(deviceName)
	if err != nil {
		return "", err
	}
	return spec.TaskName(), nil
}

// NumSessions returns the number of sessions that were created and not deleted.
func (w *Worker) NumSessions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sessions)
}
