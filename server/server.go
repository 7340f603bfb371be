// Package server runs one task of a cluster: it listens on the task's address and serves
// TensorFlow's MasterService for clients, and WorkerService for the other tasks.
//
//	s, err := server.New(def)
//	if err != nil {
//		return err
//	}
//	return s.Run(ctx) // until ctx ends
//
// [Server.Start] and [Server.Join] are for programs that are written like those of TensorFlow.
//
// Several servers can run in one process. A client of package weft in the same process calls a
// server directly, without a connection.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/inspect/logging"
	"github.com/weft-ml/weft/internal/inspect/metrics"
	"github.com/weft-ml/weft/internal/inspect/web"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/role/task"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/sys/memlimit"
	"github.com/weft-ml/weft/internal/sys/observe"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/internal/transport/samehost"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels" // every operation that a task can run
	"github.com/weft-ml/weft/status"
)

// closeTimeout bounds the notification of other tasks that sessions have ended, and the wait for
// clients to close their connections, while a server stops.
const closeTimeout = time.Second

// Server is one task of a cluster. Its methods may be called concurrently.
type Server struct {
	def         cluster.ServerDef
	log         *slog.Logger
	lines       *logging.Tail // last lines of log
	listener    net.Listener
	task        *task.Task
	gate        *gate
	quota       *quota.Quota
	memory      reclaimer
	files       *fileio.FS          // files of the operations
	grace       time.Duration       // time for steps to end when the context of Run has ended
	exitWithJob time.Duration       // time from the job's end to that of Run; 0 to stay
	receives    *rpc.ReceiveLimiter // limiter of all connections of the task
	conns       *rpc.Connections
	// connections for large tensors, so that other calls do not wait for them
	large          *rpc.Connections
	lender         *samehost.Lender   // passes tensors to other tasks on this machine
	borrower       *samehost.Borrower // receives tensors from them
	rpc            *rpc.Server
	health         *rpc.Health
	secure         *secureServer // nil without TLS
	loopback       bool          // only processes on this machine can connect
	exposed        bool          // other machines reach the task without certificates
	plain          net.Listener  // for tasks without TLS; nil for none
	clientClusters []netip.Prefix
	httpListener   net.Listener      // nil for none
	registry       *metrics.Registry // nil without HTTP
	observer       *metrics.Observer // nil without HTTP
	web            *web.Server       // nil before Start, and without HTTP
	inspection     *inspection
	rest           http.Handler // of sessions over HTTP; nil for none
	unregister     []func()     // remove the targets of this process that lead here

	mu    sync.Mutex
	state state // guarded by mu

	stopped chan struct{} // closed when the server has stopped
	err     error         // reason for a stop that was not requested; set before stopped is closed
}

// state is the stage in the life of a server. It only advances.
type state int

const (
	created state = iota
	started
	stopping
)

// New returns a server for a task. It listens, so that the address is taken and known, and does not
// serve yet. A task with port 0 gets a free port. The caller must call Run, Shutdown or Close.
func New(def cluster.ServerDef, opts ...Option) (*Server, error) {
	if err := def.Validate(); err != nil {
		return nil, err
	}
	o := newOptions(opts)
	lines := new(logging.Tail)
	o.log = slog.New(logging.Fields(lines.Handler(o.log.Handler()))).With("task", def.Self())
	defaults := &pb.ConfigProto{}
	if err := proto.Unmarshal(def.DefaultSessionConfig, defaults); err != nil {
		return nil, status.InvalidArgumentf("the configuration of sessions: %v", err)
	}
	memlimit.Set(o.memory)
	def.Cluster = def.Cluster.Clone()
	certs, err := newSecure(o, def.Self())
	if err != nil {
		return nil, err
	}
	listener, err := listen(&def, o)
	if err != nil {
		return nil, err
	}
	loopback := isLoopbackAddr(listener.Addr())
	exposed := o.insecure && certs == nil && !loopback
	if exposed {
		o.files.Closed = closedFiles
	}
	files, err := fileio.New(o.files)
	if err != nil {
		listener.Close()
		return nil, err
	}
	most := o.limits.quota()
	if certs != nil {
		most.Weight = certs.creds.Weight
	}
	limits := quota.New(most)
	s := &Server{
		def: def, log: o.log, lines: lines, listener: listener, gate: newGate(def.Self()), quota: limits, files: files, grace: o.grace, exitWithJob: o.exitWithJob, receives: rpc.NewReceiveLimiter(limits),
		lender: samehost.NewLender(o.log), borrower: samehost.NewBorrower(o.log), stopped: make(chan struct{}),
		secure: certs, loopback: loopback, exposed: exposed, clientClusters: o.clientClusters,
	}
	if o.receiveWindow > 0 {
		s.receives.SetWindow(o.receiveWindow, o.receiveMaxWait)
	}
	s.conns, s.large = rpc.NewConnections(s.receives), rpc.NewConnections(s.receives)
	s.conns.Keepalive, s.large.Keepalive = o.limits.keepalive(), o.limits.keepalive()
	if certs != nil {
		s.conns.Credentials, s.large.Credentials = certs.credentials, certs.credentials
		if o.plainListener != nil && len(certs.plain) > 0 {
			s.plain = &plainListener{o.plainListener, &trust.Principal{Role: trust.Task, Task: certs.plain[0]}}
		}
	}
	var observer observe.Observer
	if o.http != "" {
		s.registry = metrics.NewRegistry()
		s.observer = metrics.NewObserver(s.registry)
		observer = s.observer
		s.conns.Observer, s.large.Observer = s.observer.Made(), s.observer.Made()
	}
	var tracer observe.Tracer
	if o.tracer != nil {
		tracer = o.tracer
		s.conns.Tracer, s.large.Tracer = o.tracer, o.tracer
	}
	s.gate.rest = s.memory.release
	gpus, err := findGPUs(o.gpu, o.log)
	if err != nil {
		listener.Close()
		files.Close()
		return nil, err
	}
	s.task, err = task.New(task.Config{
		GPUs: gpus, GPUOptions: o.gpuConfig(defaults),
		Task: def.Self(), Cluster: def.Cluster, CPUDevices: def.CPUDevices, Kernels: kernel.Default, Files: files, Policy: o.policy, Quota: s.quota, Connect: s.connect,
		Lender:          s.lender,
		Unused:          s.memory.releaseIfLarge,
		SessionDefaults: defaults, SessionTTL: o.sessionTTL, OrphanTimeout: o.orphanTimeout, Placement: o.placement, Observer: observer, Tracer: tracer, Log: o.log,
	})
	if err != nil {
		listener.Close()
		files.Close()
		return nil, err
	}
	if s.httpListener, err = s.listenHTTP(o); err != nil {
		s.task.Close(context.Background()) // it has no sessions
		listener.Close()
		files.Close()
		return nil, err
	}
	s.register(o)
	s.guard(o)
	return s, nil
}

// register registers the services, over the network and in this process.
func (s *Server) register(o *options) {
	m := gatedMaster{s.task.Master, s.gate}
	addresses := newTaskAddresses(s.def.Cluster)
	s.rpc = rpc.NewServer(s.receives, s.log)
	s.rpc.Limits, s.rpc.IsTaskAddress = o.limits.wire(), addresses.has
	served, worker := rpc.Master(m), rpc.Worker(gatedWorker{s.task.Worker, s.gate})
	if s.exposed {
		served, worker = exposedMaster{m, addresses}, exposedWorker{worker, addresses}
	}
	if o.audit != nil {
		served = auditedMaster{served, o.audit, s.def.Self().String()}
	}
	rpc.RegisterMaster(s.rpc, served, s.log)
	rpc.RegisterWorker(s.rpc, worker, s.log)
	s.inspection = &inspection{s, rpc.NewPeers(s.def.Cluster, s.conns), time.Now(), o.level, o.audit}
	inspected := rpc.Inspection(s.inspection)
	if s.exposed {
		inspected = exposedInspection{inspected, addresses}
	}
	rpc.RegisterInspection(s.rpc, inspected, s.log)
	if o.rest {
		s.rest = s.newREST(served, o)
	}
	rpc.RegisterEager(s.rpc, gatedEager{s.task.Eager, s.gate}, s.log)
	if s.observer != nil {
		s.rpc.Observer = s.observer.Served()
	}
	if o.tracer != nil {
		s.rpc.Tracer = o.tracer
	}
	s.health = rpc.RegisterHealth(s.rpc)
	rpc.RegisterReflection(s.rpc, s.log)
	rpc.RegisterChannelz(s.rpc, s.log, s.conns, s.large)
	open := func(*pb.ConfigProto, *slog.Logger) (rpc.Master, func(context.Context), error) {
		return inspectedMaster{m, s.inspection}, func(context.Context) {}, nil
	}
	s.unregister = []func(){rpc.RegisterTarget(s.Target(), open), rpc.RegisterTarget("grpc://"+s.Address(), open)}
}

// Target returns the target for clients, "grpc://host:port", with the host in the cluster.
func (s *Server) Target() string { return "grpc://" + s.def.Cluster.Address(s.def.Self()) }

// Address returns the address that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Task returns the name of the task.
func (s *Server) Task() cluster.Task { return s.def.Self() }

// Cluster returns the tasks of the cluster, with the port that this server uses. It must not be
// modified.
func (s *Server) Cluster() cluster.Spec { return s.def.Cluster }

// Devices returns the full names of the task's devices.
func (s *Server) Devices() []string {
	out := make([]string, len(s.task.Devices))
	for i, d := range s.task.Devices {
		out[i] = d.Name
	}
	return out
}

// Start starts to serve. It has no effect on a server that has been started, and returns an error
// for one that was stopped.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case started:
		return nil
	case stopping:
		return status.FailedPreconditionf("the server of %v was stopped and cannot be started again", s.def.Self())
	case created:
	}
	s.state = started
	s.health.SetServing(true)
	if s.secure != nil {
		s.secure.creds.Watch()
	}
	s.serveHTTP()
	s.log.Info("the task serves", "address", s.Address())
	go s.serve()
	return nil
}

// serve accepts connections until the server is stopped.
func (s *Server) serve() {
	defer close(s.stopped)
	var plain sync.WaitGroup
	defer plain.Wait()
	if s.plain != nil {
		plain.Go(func() {
			if err := s.rpc.Serve(s.plain); err != nil && !errors.Is(err, rpc.ErrServerStopped) {
				s.log.Error("tasks without TLS can no longer connect", "error", err)
			}
		})
	}
	if err := s.rpc.Serve(s.listener); err != nil && !errors.Is(err, rpc.ErrServerStopped) {
		s.err = status.Unavailablef("the server of %v no longer accepts connections: %w", s.def.Self(), err)
	}
}

// Join waits until the server has stopped. The error is not nil if it stopped by itself.
func (s *Server) Join() error {
	<-s.stopped
	return s.err
}

// Run starts the server, serves until ctx ends, and shuts down. Running steps have the grace period
// to end; see [WithGracePeriod]. It returns the error of [Server.Shutdown], or the reason why the
// server has stopped by itself.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Start(); err != nil {
		return errors.Join(err, s.Close())
	}
	over, stop := s.awaitJob()
	select {
	case <-ctx.Done():
	case <-s.stopped:
	case <-over:
	}
	stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	return errors.Join(s.Shutdown(ctx), s.Join())
}

// Check returns nil if the server can describe itself. It does not return while a part of the
// server that it needs is stuck: service managers restart such a process.
func (s *Server) Check(ctx context.Context) error {
	_, err := s.inspection.GetTask(ctx, &pb.GetTaskRequest{})
	return err
}

// Shutdown stops the server and waits until all its goroutines have ended. It rejects new steps at
// once. Running steps may end by themselves until ctx ends; then they are cancelled, and the error
// is DeadlineExceeded. Shutdown may be called repeatedly and concurrently; only the first call
// returns that error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	was := s.state
	s.state = stopping
	s.mu.Unlock()
	if was == stopping {
		<-s.stopped
		return nil
	}
	for _, unregister := range s.unregister {
		unregister()
	}
	s.health.SetServing(false)
	s.log.Info("the task stops", "running", s.gate.count())
	err := s.gate.close(ctx)
	if err != nil {
		s.log.Warn("steps are cancelled", "error", err)
	}
	s.closeHTTP()
	s.closeRoles(ctx)
	s.closeConnections()
	if s.secure != nil {
		s.secure.creds.Close()
	}
	s.files.Close()
	if was == created {
		if s.plain != nil {
			s.plain.Close()
		}
		s.listener.Close()
		close(s.stopped)
	}
	<-s.stopped
	return err
}

// Close stops the server at once: it cancels the steps that run, and waits until all goroutines of
// the server have ended. It may be called after Shutdown, and more than once.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(ctx) // the error only says that steps were cancelled
	return nil
}

// closeRoles ends sessions and steps, on this task and, as far as closeTimeout allows, on others.
func (s *Server) closeRoles(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	defer s.conns.Close()
	defer s.large.Close()
	stop := context.AfterFunc(ctx, func() {
		s.conns.Close()
		s.large.Close()
	})
	defer stop()
	s.task.Close(ctx)
	s.borrower.Close()
	s.lender.Close()
}

// closeConnections waits for calls that are being answered, at most closeTimeout, and closes all
// connections.
func (s *Server) closeConnections() {
	s.health.Close()
	timer := time.AfterFunc(closeTimeout, s.rpc.Close)
	defer timer.Stop()
	s.rpc.Shutdown()
}

// connect returns the network of a cluster in which the server has the given name.
func (s *Server) connect(spec cluster.Spec, self cluster.Task) (task.Network, error) {
	_, port, err := net.SplitHostPort(spec.Address(self))
	if err != nil {
		return nil, status.InvalidArgumentf("Could not interpret \"%s\" as a host-port pair.", spec.Address(self))
	}
	if _, bound, _ := net.SplitHostPort(s.Address()); self != s.def.Self() && port != bound {
		return nil, status.InvalidArgumentf("Requested port %s differs from expected port %s", port, bound)
	}
	main, large := rpc.NewPeers(spec, s.conns), rpc.NewPeers(spec, s.large)
	if self != s.def.Self() {
		if err := s.checkCluster(spec); err != nil {
			return nil, err
		}
		nameOf := func(t cluster.Task) cluster.Task { return s.ownName(spec, t) }
		main.NameOf, large.NameOf = nameOf, nameOf
	}
	return network{main, large, s.borrower}, nil
}

// network calls the tasks of a cluster over gRPC, and reads large tensors from the memory of tasks
// on the same machine where that is possible.
type network struct {
	*rpc.Peers
	large    *rpc.Peers // clients over the connections for large tensors
	borrower *samehost.Borrower
}

// StartRecv requests a tensor from a task.
func (n network) StartRecv(
	ctx context.Context, task string, req *message.RecvTensorRequest, done func(*message.RecvTensorResponse, error),
) {
	address, ways, err := n.ways(task)
	if err != nil {
		done(nil, err)
		return
	}
	n.borrower.StartRecv(ctx, address, req, ways, done)
}

// StartRecvAll requests several tensors of a step from a task.
func (n network) StartRecvAll(
	ctx context.Context, task string, requests []*message.RecvTensorRequest, done func(i int, resp *message.RecvTensorResponse, err error),
) {
	address, ways, err := n.ways(task)
	if err != nil {
		for i := range requests {
			done(i, nil, err)
		}
		return
	}
	n.borrower.StartRecvAll(ctx, address, requests, ways, done)
}

// ways returns the address of a task and the clients that call it.
func (n network) ways(task string) (address string, ways samehost.Routes, err error) {
	c, err := n.Named(task)
	if err != nil {
		return "", ways, err
	}
	large, err := n.large.Named(task)
	if err != nil {
		return "", ways, err
	}
	return c.Address(), samehost.Routes{Main: c, Large: large}, nil
}

// Worker returns the worker of a task, as a master uses it.
func (n network) Worker(task cluster.Task) (master.Worker, error) { return n.Peers.Worker(task) }

// Peer returns a task, as a worker uses it.
func (n network) Peer(task string) (worker.Peer, error) { return n.Named(task) }

// The roles and the clients that call them have the same methods.
var (
	_ rpc.Master    = (*master.Master)(nil)
	_ master.Worker = (*rpc.WorkerClient)(nil)
	_ rpc.Master    = (*rpc.MasterClient)(nil)
	_ rpc.Worker    = (*rpc.WorkerClient)(nil)
)
