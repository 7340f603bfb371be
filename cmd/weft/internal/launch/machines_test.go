package launch

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	spec, err := spread([]string{"a", "b", "c"}, 2222, map[string]int{"worker": 4, "ps": 2, "chief": 1})
	const want = "chief|c:2222,ps|a:2222;b:2222,worker|a:2223;b:2223;c:2223;a:2224"
	if err != nil || spec.String() != want {
		t.Errorf("got %v, %v; want %s", spec, err, want)
	}
	if _, err := spread([]string{"a"}, 65535, map[string]int{"ps": 1, "worker": 1}); err == nil {
		t.Error("a port above 65535 is accepted")
	}
}

// fakeMachines runs everything on this machine.
type fakeMachines struct {
	mu       sync.Mutex
	signals  []string
	unknown  string // process whose signals fail
	commands []string
	server   []string // command of the last server
}

func (f *fakeMachines) Hosts() []string { return []string{"127.0.0.1", "127.0.0.2"} }

func (f *fakeMachines) Command(host, name string, command []string) []string {
	f.commands = append(f.commands, host+" "+name)
	if strings.HasSuffix(name, "-server") {
		f.server = command
	}
	return command
}

func (f *fakeMachines) Signal(started *os.Process, name string, s syscall.Signal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == f.unknown && s != syscall.SIGKILL {
		return errors.New("no step " + name)
	}
	f.signals = append(f.signals, name)
	return started.Signal(s)
}

func TestMachines(t *testing.T) {
	cfg, out := newConfig(t, "workers", `echo "$1 $2"`)
	fake := &fakeMachines{}
	cfg.Server = append(cfg.Server, "--tls-cert={job_name}-{task_index}.pem")
	cfg.Machines, cfg.FirstPort = fake, freePort(t)
	if code := run(t, cfg, nil); code != 0 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "[worker/0 ] 127.0.0.1:", " grpc://127.0.0.2:", "[ps/0s    ] served\n", "all programs have succeeded")
	if got := strings.Join(fake.commands, ", "); got != "127.0.0.1 ps-0-server, 127.0.0.2 worker-0, 127.0.0.1 worker-1" {
		t.Errorf("the processes are %s", got)
	}
	if !slices.Contains(fake.server, "--tls-cert=ps-0.pem") {
		t.Errorf("a server is %q", fake.server)
	}
	if got := strings.Join(fake.signals, ", "); got != "ps-0-server" {
		t.Errorf("signals were sent to %s", got)
	}
}

// A process that takes no signal is killed at the end of the drain.
func TestMachinesLoseAProcess(t *testing.T) {
	cfg, out := newConfig(t, "workers", `true`)
	cfg.Machines, cfg.FirstPort = &fakeMachines{unknown: "ps-0-server"}, freePort(t)
	cfg.DrainTimeout = 10 * time.Millisecond
	if code := run(t, cfg, nil); code != 0 {
		t.Errorf("status %d\n%s", code, out)
	}
	expect(t, out, "weft launch: no step ps-0-server\n", "has not ended within 10ms")
}

// freePort returns a port that nothing uses on 127.0.0.1.
func freePort(t *testing.T) int {
	t.Helper()
	spec, err := newSpec("127.0.0.1", map[string]int{"ps": 1})
	if err != nil {
		t.Fatal(err)
	}
	address := spec["ps"][0]
	port := 0
	for _, c := range address[strings.LastIndexByte(address, ':')+1:] {
		port = 10*port + int(c-'0')
	}
	return port
}
