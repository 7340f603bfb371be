package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// The test program is weft when this variable is set.
const weftVariable = "WEFT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(weftVariable) != "" {
		os.Unsetenv(weftVariable)
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a running process of weft.
type program struct {
	cmd      *exec.Cmd
	out, log lines
	ended    chan struct{}
	status   int // exit status; valid when ended is closed
}

// startProgram starts weft with arguments and further variables of the environment.
func startProgram(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{ended: make(chan struct{})}
	p.out.changed, p.log.changed = make(chan struct{}, 1), make(chan struct{}, 1)
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(append(os.Environ(), weftVariable+"=1", "TF_CONFIG="), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the status says it
		p.status = p.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		if t.Failed() {
			t.Logf("weft %s:\n%s%s", strings.Join(args, " "), &p.out, &p.log)
		}
	})
	return p
}

// await waits until the output matches an expression, and returns the parts in parentheses.
func (p *program) await(t *testing.T, l *lines, expression string) []string {
	t.Helper()
	want := regexp.MustCompile(expression)
	for {
		if found := want.FindStringSubmatch(l.String()); found != nil {
			return found
		}
		select {
		case <-l.changed:
		case <-p.ended:
			if found := want.FindStringSubmatch(l.String()); found != nil {
				return found
			}
			t.Fatalf("the program has ended with status %d before %q", p.status, expression)
		case <-time.After(time.Minute):
			t.Fatalf("%q is not printed", expression)
		}
	}
}

// expect waits for the end of the program, which must have an exit status.
func (p *program) expect(t *testing.T, status int) {
	t.Helper()
	select {
	case <-p.ended:
		if p.status != status {
			t.Errorf("exit status %d, want %d", p.status, status)
		}
	case <-time.After(time.Minute):
		t.Fatal("the program does not end")
	}
}

func (p *program) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// pair are the processes of a cluster of one parameter server and one worker.
type pair struct {
	ps, worker *program
	spec       cluster.Spec
}

// startPair starts a cluster, with flags for the server of each job.
func startPair(t *testing.T, env []string, flags map[string][]string) *pair {
	t.Helper()
	c := &pair{spec: cluster.Spec{}}
	for _, job := range []string{"ps", "worker"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c.spec[job] = cluster.Dense(l.Addr().String())
		if err := l.Close(); err != nil { // the port is free for the server
			t.Fatal(err)
		}
	}
	run := func(job string, env []string) *program {
		p := startProgram(t, env, append([]string{"server", "--cluster-spec=" + c.spec.String(), "--job-name=" + job}, flags[job]...)...)
		p.await(t, &p.out, " ready: /job:"+job)
		return p
	}
	c.ps, c.worker = run("ps", nil), run("worker", env)
	return c
}

func (c *pair) target(job string) string { return "grpc://" + c.spec[job][0] }

// connect returns a session on a task, and nodes that put an element into a queue of the parameter
// server and take it from there.
func (c *pair) connect(t *testing.T, job string) (s *weft.Session, put *graph.Node, next op.Output) {
	t.Helper()
	root := op.NewScope().WithDevice("/job:ps/task:0")
	queue := op.FIFOQueueV2(root, []tensor.DType{tensor.Float32}, op.FIFOQueueV2SharedName("q"))
	put = op.QueueEnqueueV2(root, queue, []op.Output{op.Const(root, float32(3))})
	next = op.QueueDequeueV2(root, queue, []tensor.DType{tensor.Float32})[0]
	g, err := root.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = weft.NewSession(c.target(job), g, weft.WithNetwork(), weft.WithTimeout(time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the server may have ended
	return s, put, next
}

// startStep starts a step that takes an element from the queue, and waits until the worker runs it.
func (c *pair) startStep(t *testing.T) (step <-chan error) {
	t.Helper()
	s, _, next := c.connect(t, "worker")
	done := make(chan error, 1)
	go func() {
		_, err := s.Fetch(context.Background(), nil, next)
		done <- err
	}()
	for {
		tasks, err := weft.ClusterStatus(t.Context(), c.target("worker"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range tasks {
			for _, s := range tasks[i].Sessions {
				if len(s.Steps) > 0 {
					return done
				}
			}
		}
	}
}

// awaitNotReady waits until the worker reports that it is not ready, and returns the report.
func (c *pair) awaitNotReady(t *testing.T) string {
	t.Helper()
	url := c.worker.await(t, &c.worker.out, `http://\S+`)[0] + "/readyz"
	for {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusServiceUnavailable {
			return string(text)
		}
	}
}

// A task that receives SIGTERM finishes its step, takes no other, says so, and ends with 143.
func TestDrain(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	states, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer states.Close()
	c := startPair(t, []string{"NOTIFY_SOCKET=" + socket}, map[string][]string{"worker": {"--drain-timeout=10m", "--http-address=127.0.0.1:0"}})
	other, _, next := c.connect(t, "worker")
	s, put, _ := c.connect(t, "ps")
	if _, err := s.ListDevices(t.Context()); err != nil { // makes the session
		t.Fatal(err)
	}
	step := c.startStep(t)
	c.worker.signal(t, syscall.SIGTERM)
	if text := c.awaitNotReady(t); text != "not ready\nreason: the task is shutting down; 1 requests are still running\n" {
		t.Errorf("the task says %q", text)
	}
	for _, want := range []string{"READY=1\nSTATUS=/job:worker/replica:0/task:0 serves at " + c.target("worker"), "STOPPING=1\nSTATUS=running steps may end"} {
		b := make([]byte, 1000)
		n, err := states.Read(b)
		if err != nil || string(b[:n]) != want {
			t.Errorf("the service manager receives %q, %v; want %q", b[:n], err, want)
		}
	}
	conn, err := grpc.NewClient(c.spec["worker"][0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	health, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the health is %v, %v", health, err)
	}
	const want = "The task /job:worker/replica:0/task:0 is shutting down."
	if _, err = other.Fetch(t.Context(), nil, next); status.CodeOf(err) != status.Unavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("a new step: %v", err)
	}
	if err := s.Exec(t.Context(), nil, put); err != nil {
		t.Error(err)
	}
	if err := <-step; err != nil {
		t.Errorf("the step that was running: %v", err)
	}
	c.worker.expect(t, 143)
	c.ps.signal(t, syscall.SIGINT)
	c.ps.expect(t, 130)
}

func TestDrainTimeout(t *testing.T) {
	c := startPair(t, nil, map[string][]string{"worker": {"--drain-timeout=100ms"}})
	step := c.startStep(t)
	c.worker.signal(t, syscall.SIGTERM)
	c.worker.expect(t, 143)
	if err := <-step; err == nil {
		t.Error("the step has succeeded")
	}
	if want := "steps of /job:worker/replica:0/task:0 still ran at the end of the shutdown and were cancelled"; !strings.Contains(c.worker.log.String(), want) {
		t.Errorf("the task does not say that %s", want)
	}
}

// The second signal ends the process although a step runs and has much time.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	c := startPair(t, nil, map[string][]string{"worker": {"--drain-timeout=10m", "--http-address=127.0.0.1:0"}})
	step := c.startStep(t)
	c.worker.signal(t, syscall.SIGTERM)
	c.awaitNotReady(t)
	c.worker.signal(t, syscall.SIGINT)
	c.worker.expect(t, 130)
	if err := <-step; err == nil {
		t.Error("the step has succeeded")
	}
}

func TestServerEndsWithJob(t *testing.T) {
	c := startPair(t, nil, map[string][]string{"ps": {"--exit-with-job=50ms"}})
	s, put, _ := c.connect(t, "worker")
	if err := s.Exec(t.Context(), nil, put); err != nil {
		t.Fatal(err)
	}
	c.worker.signal(t, syscall.SIGTERM)
	c.worker.expect(t, 143)
	c.ps.expect(t, 0)
}

// TestServerReadsSettings takes the task from a file, one flag from the environment, and one from
// the command line.
func TestServerReadsSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weft.yaml")
	if err := os.WriteFile(file, []byte("cluster-spec: {ps: [\"127.0.0.1:0\"]}\njob-name: ps\ndrain-timeout: 3s\nmax-sessions: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"WEFT_DRAIN_TIMEOUT=4s", "WEFT_CONFIG=" + file}
	p := startProgram(t, env, "server", "--check", "--drain_timeout=5s", "--max-sessions=8")
	p.expect(t, 0)
	for _, want := range []string{
		"--cluster-spec {\"ps\":[\"127.0.0.1:0\"]}: from " + file + ":1\n", "--job-name ps: from " + file + ":2\n", "--config " + file + ": from WEFT_CONFIG\n",
		"--drain-timeout 5s: from the command line\n", "--max-sessions 8: from the command line\n",
	} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("%q is not printed", want)
		}
	}
	if err := os.WriteFile(file, []byte("\njobname: ps\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = startProgram(t, nil, "server", "--config="+file)
	p.expect(t, exitConfig)
	if want := "weft: " + file + ":2: unknown key \"jobname\"; the nearest is \"job-name\"\n"; p.log.String() != want {
		t.Errorf("got %q, want %q", &p.log, want)
	}
	p = startProgram(t, []string{"WEFT_TASK_INDEX=x"}, "server", "--config=")
	p.expect(t, exitUsage)
}

func TestExitStatuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none", "port")
	for _, tt := range []struct {
		status int
		args   string
	}{
		{exitUsage, "server --no-such-flag"},
		{exitUsage, "server --cluster-spec=ps|127.0.0.1:0 --job-name=ps --exit-with-job=-1s"},
		{exitConfig, "server --cluster-spec=ps|192.0.2.1:4222 --job-name=ps"},
		{exitCreate, "server --cluster-spec=ps|127.0.0.1:0 --job-name=ps --port-file=" + missing},
		{exitPeer, "status grpc://127.0.0.1:1"},
	} {
		cmd := newRoot()
		cmd.SetArgs(strings.Fields(tt.args))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || exitStatus(err) != tt.status {
			t.Errorf("weft %s: %v, want the exit status %d", tt.args, err, tt.status)
		}
	}
	for _, tt := range []struct {
		code status.Code
		want int
	}{{status.DataLoss, exitData}, {status.Unauthenticated, exitAccess}, {status.PermissionDenied, exitAccess}, {status.Internal, exitFault}} {
		if got := exitStatus(status.Errorf(tt.code, "x")); got != tt.want {
			t.Errorf("%v: exit status %d, want %d", tt.code, got, tt.want)
		}
	}
}
