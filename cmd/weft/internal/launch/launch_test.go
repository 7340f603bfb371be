package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
)

// The test program is a server when this variable is set.
const serverVariable = "LAUNCH_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		serve(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// serve listens at the address of its task until it receives SIGTERM.
func serve(args []string) {
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	values := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		values[name] = value
	}
	spec, err := cluster.Parse(values["--cluster-spec"])
	if err != nil {
		panic(err)
	}
	index, err := strconv.Atoi(values["--task-index"])
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", spec.Address(cluster.Task{Job: values["--job-name"], Index: index}))
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("serving\n")
	<-terminate
	os.Stdout.WriteString("served\n")
	if err := l.Close(); err != nil {
		panic(err)
	}
}

// screen is what the launcher prints.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the text has been printed.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.changed:
		case <-time.After(time.Minute):
			t.Fatalf("%q is not printed:\n%s", text, s)
		}
	}
}

func newConfig(t *testing.T, layout string, script string) (Config, *screen) {
	t.Helper()
	t.Setenv(serverVariable, "1")
	l, err := FindLayout(layout)
	if err != nil {
		t.Fatal(err)
	}
	out := &screen{changed: make(chan struct{}, 1)}
	return Config{
		Layout: l, Tasks: map[string]int{"ps": 1, "worker": 2}, Host: "127.0.0.1",
		Command: []string{"/bin/sh", "-c", script, "{job_name}/{task_index}", "{ps_hosts}", "{target}", "{unknown}"},
		Server:  []string{os.Args[0]}, LogDir: t.TempDir(), DrainTimeout: time.Minute, Out: out,
	}, out
}

func run(t *testing.T, cfg Config, signals <-chan os.Signal) int {
	t.Helper()
	code, err := Run(t.Context(), cfg, signals)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func expect(t *testing.T, out *screen, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not printed:\n%s", line, out)
		}
	}
}

func TestSuccess(t *testing.T) {
	cfg, out := newConfig(t, "workers", `echo "$0 $1 $2 $3"; echo "$TF_CONFIG" >"`+t.TempDir()+`/x"; printf 'no end'`)
	if code := run(t, cfg, nil); code != 0 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "[worker/0 ] worker/0 127.0.0.1:", "[worker/1 ] worker/1 127.0.0.1:", " grpc://127.0.0.1:", " {unknown}\n",
		"[worker/1 ] no end\n", "[ps/0s    ] serving\n", "[ps/0s    ] served\n", "all programs have succeeded")
	text, err := os.ReadFile(filepath.Join(cfg.LogDir, "worker-1.log"))
	if err != nil || !strings.HasPrefix(string(text), "worker/1 127.0.0.1:") || !strings.HasSuffix(string(text), "\nno end") {
		t.Errorf("the log of a worker is %q, %v", text, err)
	}
}

func TestEnvironment(t *testing.T) {
	spec := cluster.Spec{"ps": cluster.Dense("a:1"), "worker": cluster.Dense("b:1", "c:1")}
	env, err := environment(spec, cluster.Task{Job: "worker", Index: 1})
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(env[0], "TF_CONFIG=")
	def, err := cluster.ParseTFConfig(text)
	if !ok || err != nil || def.Job != "worker" || def.Task != 1 || def.Cluster.String() != spec.String() || !json.Valid([]byte(text)) {
		t.Errorf("%q: %v, %v", env[0], def, err)
	}
	if env[1] != "WEFT_TARGET=grpc://c:1" {
		t.Errorf("%q", env[1])
	}
}

// One worker fails. The other one and the server end, and the report begins with the one that
// failed.
func TestFailure(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ready")
	cfg, out := newConfig(t, "clients", `if [ $0 = worker/1 ]; then while [ ! -e `+marker+` ]; do sleep 0.01; done; echo "the reason"; exit 7; fi
trap 'echo ending; exit 3' TERM; >`+marker+`; while :; do sleep 0.01; done`)
	if code := run(t, cfg, nil); code != 7 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "[worker/0 ] ending\n", "root cause: worker/1 failed at ", "its last lines:\n    the reason\n", "then: worker/0 failed at ",
		"[worker/0s] served\n", "[worker/1s] served\n", "[ps/0s    ] served\n")
}

func TestRestart(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "again")
	cfg, out := newConfig(t, "workers", `if [ $0 = worker/1 ] && [ ! -e `+marker+` ]; then >`+marker+`; exit 5; fi; echo done`)
	cfg.MaxRestarts = 1
	if code := run(t, cfg, nil); code != 0 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "worker/1 failed with status 5; restart 1 of 1", "[worker/1 ] done\n", "all programs have succeeded")
}

func TestTooManyRestarts(t *testing.T) {
	cfg, out := newConfig(t, "workers", `exec 1>&-; kill -KILL $$`)
	cfg.Tasks = map[string]int{"worker": 1}
	cfg.MaxRestarts = 1
	if code := run(t, cfg, nil); code != 128+9 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "worker/0 failed with status 137; restart 1 of 1", "root cause: worker/0 failed at ")
}

// The first signal ends the programs, and after them the servers.
func TestInterrupt(t *testing.T) {
	cfg, out := newConfig(t, "workers", `trap 'echo saving; exit 0' TERM; echo up; while :; do sleep 0.01; done`)
	signals := make(chan os.Signal, 1)
	var code int
	var running sync.WaitGroup
	running.Go(func() { code, _ = Run(context.Background(), cfg, signals) })
	out.await(t, "[worker/0 ] up")
	out.await(t, "[worker/1 ] up")
	signals <- syscall.SIGINT
	running.Wait()
	if code != 128+2 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "[worker/0 ] saving\n", "[worker/1 ] saving\n", "[ps/0s    ] served\n")
}

// The second signal kills a program that does not end.
func TestSecondSignal(t *testing.T) {
	cfg, out := newConfig(t, "program", `trap 'echo no' TERM; echo up; while :; do sleep 0.01; done`)
	cfg.Tasks = map[string]int{"worker": 1}
	signals := make(chan os.Signal, 1)
	var code int
	var running sync.WaitGroup
	running.Go(func() { code, _ = Run(context.Background(), cfg, signals) })
	out.await(t, "up")
	signals <- syscall.SIGTERM
	out.await(t, "no\n")
	signals <- syscall.SIGTERM
	running.Wait()
	if code != 128+15 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "killing all processes")
}

// Programs of parameter servers run until the workers have ended.
func TestParameterServersEnd(t *testing.T) {
	cfg, out := newConfig(t, "program", `case $0 in ps/*) trap 'echo joined; exit 0' TERM; while :; do sleep 0.01; done;; esac; echo done`)
	if code := run(t, cfg, nil); code != 0 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "[worker/1 ] done\n")
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Command = []string{"/no/such/program"} }, "worker/0: fork/exec /no/such/program: no such file or directory"},
		{func(c *Config) { c.Tasks = map[string]int{"ps": 1} }, "no task runs the program: the layout workers runs it on chief and worker"},
		{func(c *Config) { c.Host = "192.0.2.1" }, "no free port: listen tcp 192.0.2.1:0"},
		{func(c *Config) { c.Command = nil }, "no program is given"},
	} {
		cfg, _ := newConfig(t, "workers", "")
		tt.change(&cfg)
		if _, err := Run(t.Context(), cfg, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
	if _, err := FindLayout("ring"); err == nil || err.Error() != `unknown layout "ring"; the layouts are workers, clients, coordinator, program` {
		t.Errorf("got %v", err)
	}
}
