package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	gstatus "google.golang.org/grpc/status"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestMain(m *testing.M) {
	serveChild()
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "TestWait", Doc: "Waits for the test, or for the end of the step.", Out: []string{"y: float"}, Stateful: true,
			Shape: opdef.UnknownShape,
		},
		Kernels: kernel.Any(kernel.Stateless(wait)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "TestWaitForEver", Doc: "Waits for the end of the step.", In: []string{"x: float"}, Out: []string{"y: float"}, Stateful: true,
			Shape: opdef.UnknownShape,
		},
		Kernels: kernel.Any(kernel.Stateless(func(c *kernel.Context) error {
			<-c.Context().Done()
			return status.FromContext(c.Context(), "waiting")
		})),
	})
	kernel.Register(kernel.Op{
		Def:     opdef.Def{Name: "TestPanics", Doc: "Panics.", Out: []string{"y: float"}, Stateful: true, Shape: opdef.UnknownShape},
		Kernels: kernel.Any(kernel.Stateless(func(*kernel.Context) error { panic("at the disco") })),
	})
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/weft-ml/weft/internal/numeric/parallel.(*worker).run"))
}

// waits receives, from every kernel that waits, the function that releases it.
var waits = make(chan func(), 100)

func wait(c *kernel.Context) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	waits <- cancel
	<-ctx.Done()
	if c.Context().Err() != nil {
		return status.FromContext(c.Context(), "waiting")
	}
	c.SetOutput(0, tensor.Scalar[float32](1))
	return nil
}

// home returns a loopback address for this process alone, if the system has such addresses: then a
// port that a test gives up for a while stays free.
func home() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>16&63, pid>>8&255, pid&255)
}

// addresses returns loopback addresses with free ports, and their listeners.
func addresses(t *testing.T, jobs map[string]int) (cluster.Spec, map[cluster.Task]net.Listener) {
	t.Helper()
	spec, listeners := cluster.Spec{}, map[cluster.Task]net.Listener{}
	for job, n := range jobs {
		spec[job] = cluster.Job{}
		for i := range n {
			l, err := net.Listen("tcp", home()+":0")
			if err != nil {
				t.Fatal(err)
			}
			spec[job][i] = l.Addr().String()
			listeners[cluster.Task{Job: job, Index: i}] = l
		}
	}
	return spec, listeners
}

// startCluster starts tasks of the given jobs.
func startCluster(t *testing.T, jobs map[string]int) map[cluster.Task]*Server {
	t.Helper()
	spec, listeners := addresses(t, jobs)
	out := map[cluster.Task]*Server{}
	for task, l := range listeners {
		out[task] = start(t, cluster.ServerDef{Cluster: spec, Job: task.Job, Task: task.Index}, WithListener(l))
	}
	return out
}

func start(t *testing.T, def cluster.ServerDef, opts ...Option) *Server {
	t.Helper()
	s, err := New(def, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t *testing.T, s *Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

var ps, worker0 = cluster.Task{Job: "ps"}, cluster.Task{Job: "worker"}

func session(t *testing.T, s *Server, scope *op.Scope, opts ...weft.SessionOption) *weft.Session {
	t.Helper()
	g, err := scope.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	out, err := weft.NewSession(s.Target(), g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}

// transports are the ways to reach a server in this process.
var transports = map[string][]weft.SessionOption{"in process": nil, "over the network": {weft.WithNetwork()}}

func TestStepAcrossTasks(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 2})
	for name, opts := range transports {
		root := op.NewScope()
		onPS, onWorker := root.WithDevice("/job:ps/task:0"), root.WithDevice("/job:worker/task:1")
		x := op.Placeholder(root.Named("x"), tensor.Float32)
		y := op.Pack(onPS, []op.Output{x, op.Const(onWorker, []float32{3, 4})})
		z := op.Identity(onWorker, y)
		s := session(t, servers[worker0], root, opts...)
		for range 3 {
			got, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{x: tensor.Vector[float32](1, 2)}, []graph.Output{z, y}, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if v := tensor.Values[float32](&got[0]); !slices.Equal(v, []float32{1, 2, 3, 4}) {
				t.Errorf("%s: got %v", name, v)
			}
		}
	}
}

func TestManyStepsAtOnce(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	root := op.NewScope()
	x := op.Placeholder(root.Named("x"), tensor.Float32)
	y := op.Identity(root.WithDevice("/job:ps"), x)
	s := session(t, servers[worker0], root, weft.WithNetwork())
	var wg sync.WaitGroup
	for i := range 150 {
		wg.Go(func() {
			want := float32(i)
			got, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{x: tensor.Scalar(want)}, []graph.Output{y}, nil)
			if err != nil {
				t.Error(err)
			} else if v := tensor.Value[float32](&got[0]); v != want {
				t.Errorf("got %v, want %v", v, want)
			}
		})
	}
	wg.Wait()
}

func TestPortZero(t *testing.T) {
	s := start(t, cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("localhost:0")}, Job: "ps"})
	_, port, _ := net.SplitHostPort(s.Address())
	if want := "grpc://localhost:" + port; s.Target() != want || port == "0" {
		t.Errorf("got target %s, want %s", s.Target(), want)
	}
	if got := s.Cluster().Address(ps); got != "localhost:"+port {
		t.Errorf("the cluster has address %s", got)
	}
	devices, err := weft.ListDevices(t.Context(), s.Target(), weft.WithNetwork())
	if err != nil || len(devices) != 1 || devices[0].Name != "/job:ps/replica:0/task:0/device:CPU:0" {
		t.Errorf("got devices %v, %v", devices, err)
	}
}

func TestAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	def := func(address string) cluster.ServerDef {
		return cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense(address)}, Job: "ps"}
	}
	for _, tt := range []struct {
		name string
		def  cluster.ServerDef
		opts []Option
		want status.Code
		text string
	}{
		{"taken", def(taken.Addr().String()), nil, status.AlreadyExists, taken.Addr().String()},
		{"not ours", def("192.0.2.1:0"), []Option{Insecure()}, status.FailedPrecondition, "not an address of this machine"},
		{"all interfaces", def("0.0.0.0:0"), nil, status.FailedPrecondition, "other machines"},
		{"no host", def(":0"), nil, status.FailedPrecondition, "other machines"},
		{"all interfaces, wanted", def("0.0.0.0:0"), []Option{Insecure()}, status.OK, ""},
		{"another one to listen on", def("192.0.2.1:99"), []Option{WithListen("127.0.0.1:0")}, status.OK, ""},
		{"no such host", def("no-such-host.invalid:0"), nil, status.InvalidArgument, "no-such-host.invalid"},
		{"no such task", cluster.ServerDef{Cluster: def("127.0.0.1:0").Cluster, Job: "ps", Task: 3}, nil, status.InvalidArgument, "Task 3"},
		{"bad configuration", cluster.ServerDef{Cluster: def("127.0.0.1:0").Cluster, Job: "ps", DefaultSessionConfig: []byte{0xff}}, nil,
			status.InvalidArgument, "configuration"},
	} {
		s, err := New(tt.def, tt.opts...)
		if status.CodeOf(err) != tt.want || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: got error %v", tt.name, err)
		}
		if err == nil {
			stop(t, s)
		}
	}
}

func TestStates(t *testing.T) {
	s, err := New(cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("127.0.0.1:0")}, Job: "ps"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Start(); err != nil {
			t.Error(err)
		}
	}
	joined := make(chan error)
	go func() { joined <- s.Join() }()
	stop(t, s)
	if err := <-joined; err != nil {
		t.Error(err)
	}
	stop(t, s)
	if err := s.Start(); status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("start after stop: got error %v", err)
	}
}

// Run serves until its context ends, and returns an error on a server that was stopped.
func TestRun(t *testing.T) {
	s, err := New(cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("127.0.0.1:0")}, Job: "ps"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	if _, err := weft.ListDevices(t.Context(), s.Target(), weft.WithNetwork()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close after Run: %v", err)
	}
	if err := s.Run(t.Context()); status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("Run after the end: got %v", err)
	}
}

// Run cancels steps that go on after the grace period, and returns an error.
func TestRunCancelsSteps(t *testing.T) {
	s, err := New(cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("127.0.0.1:0")}, Job: "ps"}, WithGracePeriod(0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, step := make(chan error), make(chan error)
	go func() { ended <- s.Run(ctx) }()
	root, y := waiting()
	client := session(t, s, root, weft.WithNetwork())
	go func() {
		_, err := client.Run(t.Context(), nil, []graph.Output{y}, nil)
		step <- err
	}()
	<-waits
	cancel()
	if err := <-ended; status.CodeOf(err) != status.DeadlineExceeded {
		t.Errorf("Run: got %v", err)
	}
	if err := <-step; err == nil {
		t.Error("the step has not been cancelled")
	}
}

// Close ends steps at once.
func TestCloseCancelsSteps(t *testing.T) {
	c, err := StartCluster(map[string]int{"ps": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	root, y := waiting()
	client := session(t, c.Server("ps", 0), root)
	step := make(chan error)
	go func() {
		_, err := client.Run(t.Context(), nil, []graph.Output{y}, nil)
		step <- err
	}()
	<-waits
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-step; err == nil {
		t.Error("the step has not been cancelled")
	}
}

func TestHealth(t *testing.T) {
	s := start(t, cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("127.0.0.1:0")}, Job: "ps"})
	conn, err := grpc.NewClient(s.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, service := range []string{"", rpc.MasterService, rpc.WorkerService} {
		resp, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: got %v, %v", service, resp, err)
		}
	}
}

// TestHealthWatch follows a server from its start to its end.
func TestHealthWatch(t *testing.T) {
	s := start(t, cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("127.0.0.1:0")}, Job: "ps"})
	conn, err := grpc.NewClient(s.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var watches []grpc.ServerStreamingClient[healthpb.HealthCheckResponse]
	next := func(i int) (healthpb.HealthCheckResponse_ServingStatus, error) {
		resp, err := watches[i].Recv()
		return resp.GetStatus(), err
	}
	for i, service := range []string{"", rpc.WorkerService, "another"} {
		w, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		want := healthpb.HealthCheckResponse_SERVING
		if watches = append(watches, w); service == "another" {
			want = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		}
		if got, err := next(i); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", service, got, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err == nil {
		_, err = gone.Recv()
	}
	if err != nil {
		t.Error(err)
	}
	cancel() // the server does not wait for a caller that has gone
	stop(t, s)
	for i := range watches {
		if got, err := next(i); i < 2 && (err != nil || got != healthpb.HealthCheckResponse_NOT_SERVING) {
			t.Errorf("at the end: got %v, %v", got, err)
		} else if i < 2 {
			_, err = next(i)
			if gstatus.Code(err) != codes.Unavailable {
				t.Errorf("after the end: got %v", err)
			}
		} else if gstatus.Code(err) != codes.Unavailable {
			t.Errorf("of another: got %v, %v", got, err)
		}
	}
}

// waiting returns a graph with a node that waits, on the parameter server.
func waiting() (*op.Scope, graph.Output) {
	root := op.NewScope()
	n := root.WithDevice("/job:ps").Add("TestWait", nil, nil)
	return root, n.Out(0)
}

func TestStopLetsStepsEnd(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	// the task of the step, then that of its session
	for _, first := range []cluster.Task{ps, worker0} {
		root, y := waiting()
		s := session(t, servers[worker0], root, weft.WithNetwork())
		done := make(chan error)
		go func() {
			_, err := s.Run(t.Context(), nil, []graph.Output{y}, nil)
			done <- err
		}()
		release := <-waits
		stopped := make(chan error)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { stopped <- servers[first].Shutdown(ctx) }()
		for {
			if err := servers[first].gate.enter(); err != nil {
				break // the server has begun to stop
			}
			servers[first].gate.leave()
		}
		if _, err := s.Run(t.Context(), nil, []graph.Output{y}, nil); status.CodeOf(err) != status.Unavailable {
			t.Errorf("a new step: got error %v", err)
		}
		release()
		if err := <-done; err != nil {
			t.Errorf("stopping %v: the step failed: %v", first, err)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		servers[first] = start(t, cluster.ServerDef{Cluster: servers[first].Cluster(), Job: first.Job, Task: first.Index})
	}
}

func TestStopCancelsSteps(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	root, y := waiting()
	s := session(t, servers[worker0], root, weft.WithNetwork())
	done := make(chan error)
	go func() {
		_, err := s.Run(t.Context(), nil, []graph.Output{y}, nil)
		done <- err
	}()
	<-waits
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := servers[worker0].Shutdown(ctx); status.CodeOf(err) != status.DeadlineExceeded {
		t.Errorf("got error %v", err)
	}
	if err := <-done; err == nil {
		t.Error("the step succeeded")
	}
}

// A client that gives up ends its step on all tasks.
func TestCancel(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	for name, opts := range transports {
		root, y := waiting()
		s := session(t, servers[worker0], root, opts...)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-waits
			cancel()
		}()
		if _, err := s.Run(ctx, nil, []graph.Output{y}, nil); status.CodeOf(err) != status.Cancelled {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	stop(t, servers[ps]) // it waits for the kernel
}

// A restarted task rejects the sessions that used it before.
func TestRestart(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	root := op.NewScope()
	y := op.Identity(root.WithDevice("/job:ps"), op.Const(root.WithDevice("/job:worker"), float32(1)))
	s := session(t, servers[worker0], root, weft.WithNetwork())
	run := func(s *weft.Session) error {
		_, err := s.Run(t.Context(), nil, []graph.Output{y}, nil)
		return err
	}
	if err := run(s); err != nil {
		t.Fatal(err)
	}
	stop(t, servers[ps])
	if err := run(s); status.CodeOf(err) != status.Unavailable || !strings.Contains(err.Error(), "/job:ps/replica:0/task:0") {
		t.Errorf("while the task is down: got error %v", err)
	}
	start(t, cluster.ServerDef{Cluster: servers[ps].Cluster(), Job: "ps"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := session(t, servers[worker0], root, weft.WithNetwork())
	if _, err := again.Run(ctx, nil, []graph.Output{y}, nil); err != nil {
		t.Errorf("a new session: %v", err)
	}
	if err := run(s); status.CodeOf(err) != status.Aborted {
		t.Errorf("the old session: got error %v", err)
	}
}

// Tasks start in any order: a session waits for the tasks that it may use.
func TestSessionWaitsForTasks(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 1})
	listeners[ps].Close()
	w := start(t, cluster.ServerDef{Cluster: spec, Job: "worker"}, WithListener(listeners[worker0]))
	root := op.NewScope()
	c := op.Const(root, float32(1))
	alone := session(t, w, root, weft.WithDeviceFilters("/job:worker"))
	if _, err := alone.Run(t.Context(), nil, []graph.Output{c}, nil); err != nil {
		t.Errorf("a session that does not use the missing task: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s := session(t, w, root)
	if _, err := s.Run(ctx, nil, []graph.Output{c}, nil); status.CodeOf(err) != status.DeadlineExceeded {
		t.Errorf("got error %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := s.Run(t.Context(), nil, []graph.Output{c}, nil)
		done <- err
	}()
	start(t, cluster.ServerDef{Cluster: spec, Job: "ps"})
	if err := <-done; err != nil {
		t.Error(err)
	}
}
