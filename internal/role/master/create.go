package master

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/status"
)

// CreateSession creates a session for a client's graph. It waits for all tasks that the session may
// use, until ctx ends. It places the whole graph, so a node that cannot be placed is an error here
// even if no step needs it.
func (m *Master) CreateSession(ctx context.Context, req *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	if err := m.checkSessions(ctx); err != nil { // before the graph is imported
		return nil, err
	}
	config := m.sessionConfig(req.GetConfig())
	if config.GetUsePerSessionThreads() || len(config.GetSessionInterOpThreadPool()) > 0 {
		return nil, status.InvalidArgumentf("Distributed session does not support session thread pool options.")
	}
	if config.GetGraphOptions().GetPlacePrunedGraph() {
		m.Log.Warn("Distributed session does not support the place_pruned_graph option.")
	}
	graph, err := m.importGraph(req.GetGraphDef())
	if err != nil {
		return nil, err
	}
	ctx, cancel := deadlineAfter(config.GetOperationTimeoutInMs()).before(ctx).context(ctx)
	defer cancel()
	m.Log.Debug("creating a session", "nodes", graph.NumNodes(), "device_filters", config.GetDeviceFilters())
	s, err := m.newSession(ctx, config, req.GetTarget())
	if err != nil {
		return nil, err
	}
	if s.graph, err = s.prepare(graph, nil); err == nil {
		err = s.createWorkerSessions(ctx)
	}
	if err == nil && ctx.Err() != nil { // the client does not learn the handle
		err = status.FromContext(ctx, "creating a session")
	}
	if err == nil {
		err = m.add(s)
	}
	if err != nil {
		s.close(ctx, closedByClient)
		return nil, err
	}
	m.Log.Info("created a session", "session", s.handle, "peer", origin(ctx, s.owner), "nodes", graph.NumNodes(), "tasks", len(s.tasks), "devices", len(s.devices))
	return &pb.CreateSessionResponse{SessionHandle: s.handle}, nil
}

// newSession creates a session and finds its tasks and their devices.
func (m *Master) newSession(ctx context.Context, config *pb.ConfigProto, target string) (*session, error) {
	filters, err := parseFilters(config.GetDeviceFilters())
	if err != nil {
		return nil, err
	}
	s := &session{
		master: m, handle: newHandle(), created: time.Now(), owner: trust.FromContext(ctx), config: config, task: m.Task, workers: m.Workers,
		requestKeys: map[uint64]*requestKey{}, plans: map[string]*plan{}, partials: map[string]*partialRun{},
		callables: map[int64]*callable{}, running: map[*step]struct{}{}, idle: make(chan struct{}),
	}
	s.touch()
	s.ctx, s.cancel = context.WithCancelCause(m.ctx)
	if len(config.GetClusterDef().GetJob()) > 0 {
		if err := s.useOwnCluster(target); err != nil {
			return nil, err
		}
	}
	s.tasks = filters.tasks(s.workers.Tasks(), s.task)
	found, known, err := m.findDevices(ctx, s.workers, s.tasks, s.clusterCheck())
	if err != nil {
		return nil, err
	}
	s.releases = known
	s.namedFrames = known.any(peer.NamedFrameIDs)
	for _, d := range found {
		if filters.match(d.name) || taskOf(d.name) == s.task {
			s.devices = append(s.devices, d)
		}
	}
	if !s.ownCluster {
		found.warnOfNames(m.Log)
	}
	s.incarnations = s.devices.incarnations()
	s.client, err = found.client(s.task)
	return s, err
}

// useOwnCluster makes the session use the cluster of its configuration. The master finds its own
// name there by the address through which the client has reached it.
func (s *session) useOwnCluster(target string) error {
	def := s.config.GetClusterDef()
	spec, err := cluster.FromJobs(func(yield func(string, map[int32]string) bool) {
		for _, job := range def.GetJob() {
			if !yield(job.GetName(), job.GetTasks()) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	address := target
	if scheme, rest, ok := strings.Cut(target, "://"); ok && strings.HasPrefix(scheme, "grpc") {
		address = rest
	}
	self := tasksAt(spec, address)
	if len(self) == 0 { // the client has dialled a proxy
		if own := s.master.Cluster.Address(s.master.Task); own != "" {
			self = tasksAt(spec, own)
		}
	}
	switch {
	case len(self) == 0:
		return status.InvalidArgumentf("The master (current machine) is not included in the provided cluster_def. %v", spec)
	case len(self) > 1:
		return status.InvalidArgumentf("Found multiple matching tasks that correspond to to the master. Master target: '%s'. "+
			"ClusterDef: %v", target, spec)
	case self[0] == s.master.Task:
		return status.InvalidArgumentf("The ClusterSpec names the job and task index to be the same names that were provided "+
			"when the server booted. This is currently not allowed. Job: %s, task index: %d", self[0].Job, self[0].Index)
	case s.master.Connect == nil:
		return status.Unimplementedf("The master of %v does not let sessions bring their own cluster.", s.master.Task)
	}
	if err := spec.Validate(); err != nil {
		return err
	}
	s.task, s.ownCluster = self[0], true
	s.workers, err = s.master.Connect(spec, s.task)
	return err
}

// tasksAt returns the tasks with an address.
func tasksAt(spec cluster.Spec, address string) []cluster.Task {
	var out []cluster.Task
	for _, t := range spec.Tasks() {
		if spec.Address(t) == address {
			out = append(out, t)
		}
	}
	return out
}

// createWorkerSessions creates the session on all its tasks.
func (s *session) createWorkerSessions(ctx context.Context) error {
	isolate := s.config.GetIsolateSessionState() || s.ownCluster
	if s.config.GetExperimental().GetShareSessionStateInClusterspecPropagation() {
		isolate = false
	}
	var shared []*pb.DeviceAttributes
	if s.config.GetShareClusterDevicesInSession() || s.config.GetExperimental().GetShareClusterDevicesInSession() {
		shared = s.devices.attributes()
	}
	coordination := s.coordination()
	return s.eachTask(func(task cluster.Task, w Worker) error {
		if s.releases[task].Has(peer.NoWorkerSessions) {
			return s.checkWithoutSession(task)
		}
		def := &pb.ServerDef{
			Protocol: "grpc", JobName: task.Job, TaskIndex: int32(task.Index),
			DefaultSessionConfig: &pb.ConfigProto{Experimental: &pb.ConfigProto_Experimental{CoordinationConfig: coordination}},
		}
		if s.ownCluster {
			def.Cluster = s.config.GetClusterDef()
		}
		req := &pb.CreateWorkerSessionRequest{
			SessionHandle: s.handle, ServerDef: def, IsolateSessionState: isolate, ClusterDeviceAttributes: shared,
			MasterTask: s.task.String(), MasterIncarnation: int64(s.client.attrs.Incarnation),
		}
		delegate(s.owner, req)
		_, err := w.CreateWorkerSession(ctx, req)
		return err
	})
}

// checkWithoutSession returns an error if the session needs more of a task than a release without
// worker sessions offers.
func (s *session) checkWithoutSession(task cluster.Task) error {
	switch {
	case s.ownCluster:
		return status.Unimplementedf("%v runs %v, which cannot take part in a session that brings its own cluster_def.",
			task, s.releases[task])
	case s.config.GetIsolateSessionState():
		return status.Unimplementedf("%v runs %v, which cannot isolate the state of a session (isolate_session_state).",
			task, s.releases[task])
	}
	return nil
}

// coordination returns the coordination settings for TensorFlow's workers, with the master's task
// as leader.
func (s *session) coordination() *pb.CoordinationServiceConfig {
	out := &pb.CoordinationServiceConfig{ServiceType: "standalone"}
	if given := s.config.GetExperimental().GetCoordinationConfig(); given != nil {
		out = &pb.CoordinationServiceConfig{}
		proto.Merge(out, given)
	}
	out.ServiceLeader = s.task.String()
	return out
}
