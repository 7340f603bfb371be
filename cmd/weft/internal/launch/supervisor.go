package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weft-ml/weft/cluster"
)

const (
	// outputDelay is how long the output of a process that has ended is read, if a child of it has
	// it open.
	outputDelay = 2 * time.Second
	// readyTimeout is how long the servers may take to listen.
	readyTimeout = 30 * time.Second
	// remoteReadyTimeout is the same for servers on other machines, which a cluster manager starts.
	remoteReadyTimeout = 2 * time.Minute
	// restartDelay is the time between the end of a process and its restart.
	restartDelay = time.Second
)

// Config describes a cluster and the program that it runs.
type Config struct {
	Layout       Layout
	Tasks        map[string]int // number of tasks by job
	Host         string         // address at which the tasks listen; unused with Machines
	Machines     Machines       // where the processes run; nil for this machine
	FirstPort    int            // of the tasks on each of the machines
	Command      []string       // program and arguments, with placeholders
	Server       []string       // command of a server, with placeholders, without the task
	ServerEnv    []string       // variables that servers get in addition
	LogDir       string         // an existing folder
	MaxRestarts  int            // of each process
	DrainTimeout time.Duration  // from the first signal to the second, if the user sends none
	Out          io.Writer      // lines of all processes and of the launcher
}

// Machines run processes on the machines of a cluster manager.
type Machines interface {
	// Hosts returns their names, at least one.
	Hosts() []string
	// Command returns the command that runs another command on a host, under a name.
	Command(host, name string, command []string) []string
	// Signal sends a signal to the processes of a name, which a command of Command has started.
	Signal(started *os.Process, name string, s syscall.Signal) error
}

// supervisor starts the processes, restarts them and ends them. One goroutine owns it.
type supervisor struct {
	Config
	spec     cluster.Spec
	terminal *terminal
	servers  []*process
	programs []*process
	ended    chan exit

	failures []failure
	stopping bool // programs and servers are ending
	asked    bool // the servers have received SIGTERM
	killed   bool
	restart  []*process         // processes that wait for their restart, in that order
	due      []<-chan time.Time // of restart
	drained  <-chan time.Time   // end of the drain; nil before a drain
}

// failure is the end of a process with an error.
type failure struct {
	name   string
	status int
	at     time.Time
	tail   []string // last lines of its output
	final  bool     // the process was not started again
}

// Run runs the cluster until its programs have ended, and returns the exit status: 0 if all have
// succeeded, 128 and the number of the first signal from signals, or the status of the process that
// failed first. The first signal ends the programs with SIGTERM, and then the servers. The second
// one kills all.
func Run(ctx context.Context, cfg Config, signals <-chan os.Signal) (int, error) {
	// The processes end with the thread that starts them; see ownGroup.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &supervisor{Config: cfg, terminal: &terminal{w: cfg.Out}, ended: make(chan exit)}
	if err := s.plan(); err != nil {
		return 1, err
	}
	defer s.closeLogs()
	s.say("cluster %s", s.spec)
	s.say("logs in %s", s.LogDir)
	status, err := s.run(ctx, signals)
	s.report(status)
	return status, err
}

// plan makes the processes of all tasks.
func (s *supervisor) plan() error {
	if len(s.Command) == 0 {
		return errors.New("no program is given")
	}
	var err error
	if s.Machines == nil {
		s.spec, err = newSpec(s.Host, s.Tasks)
	} else {
		s.spec, err = spread(s.Machines.Hosts(), s.FirstPort, s.Tasks)
	}
	if err != nil {
		return err
	}
	width := 0
	for _, task := range s.spec.Tasks() {
		width = max(width, len(task.Short())+1)
		if s.Layout.serves(task.Job) {
			command := append(expand(s.Server, s.spec, task), "--cluster-spec="+s.spec.String(), "--job-name="+task.Job, fmt.Sprintf("--task-index=%d", task.Index))
			// The configuration file is the launcher's.
			env := append([]string{"WEFT_CONFIG="}, s.ServerEnv...)
			s.servers = append(s.servers, &process{task: task, server: true, command: command, env: env})
		}
		if s.Layout.runs(task.Job) {
			env, err := environment(s.spec, task)
			if err != nil {
				return err
			}
			s.programs = append(s.programs, &process{task: task, command: expand(s.Command, s.spec, task), env: env})
		}
	}
	if len(s.programs) == 0 {
		return fmt.Errorf("no task runs the program: the layout %s runs it on %s", s.Layout.Name, strings.Join(s.Layout.Program, " and "))
	}
	for _, p := range s.all() {
		if s.Machines != nil {
			host, _, _ := net.SplitHostPort(s.spec.Address(p.task)) // as spread has joined it
			p.machines, p.command = s.Machines, s.Machines.Command(host, p.fileName(), p.command)
		}
		if err := p.openLog(s.LogDir, s.terminal, width); err != nil {
			return err
		}
	}
	return nil
}

func (s *supervisor) all() []*process { return slices.Concat(s.servers, s.programs) }

func (s *supervisor) closeLogs() {
	for _, p := range s.all() {
		if p.out != nil {
			_ = p.out.file.Close() // each write has been checked
		}
	}
}

func (s *supervisor) say(format string, args ...any) {
	s.terminal.writeLine("weft launch: ", fmt.Appendf(nil, format, args...))
}

// run starts all processes and handles their ends and the signals until none is left.
func (s *supervisor) run(ctx context.Context, signals <-chan os.Signal) (int, error) {
	var interrupted syscall.Signal
	stop := func(sig syscall.Signal) {
		switch {
		case interrupted == 0:
			interrupted = sig
			s.say("%v: ending the program; a second signal kills it", sig)
			s.drain()
		default:
			s.say("%v: killing all processes", sig)
			s.kill()
		}
	}
	for _, p := range s.servers {
		if err := p.start(s.ended); err != nil {
			return 1, s.abandon(err)
		}
	}
	ready := s.awaitServers(ctx)
	if len(s.servers) == 0 {
		if err := s.startPrograms(); err != nil {
			return 1, s.abandon(err)
		}
	}
	cancelled := ctx.Done()
	for s.anyLeft() {
		select {
		case sig := <-signals:
			if n, ok := sig.(syscall.Signal); ok {
				stop(n)
			}
		case <-cancelled:
			cancelled = nil
			if signals == nil {
				stop(syscall.SIGTERM)
			}
		case err := <-ready:
			ready = nil
			if s.stopping {
				break
			}
			if err == nil {
				err = s.startPrograms()
			}
			if err != nil {
				return 1, s.abandon(err)
			}
		case e := <-s.ended:
			s.processEnded(e)
		case <-s.drained:
			s.say("the program has not ended within %v: killing all processes", s.DrainTimeout)
			s.kill()
		case <-s.nextRestart():
			p := s.restart[0]
			s.restart, s.due = s.restart[1:], s.due[1:]
			if err := p.start(s.ended); err != nil {
				return 1, s.abandon(err)
			}
		}
	}
	if interrupted != 0 {
		return 128 + int(interrupted), nil
	}
	if causes := s.causes(); len(causes) > 0 {
		return causes[0].status, nil
	}
	return 0, nil
}

// awaitServers returns a channel that receives nil when all servers listen, or an error.
func (s *supervisor) awaitServers(ctx context.Context) <-chan error {
	ready := make(chan error, 1)
	if len(s.servers) == 0 {
		return ready
	}
	var pending []string
	for _, p := range s.servers {
		pending = append(pending, s.spec.Address(p.task))
	}
	timeout := readyTimeout
	if s.Machines != nil {
		timeout = remoteReadyTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	go func() { // ends with ctx at the latest
		defer cancel()
		ready <- dialAll(ctx, pending)
	}()
	return ready
}

// dialAll connects to each address, again and again until it listens.
func dialAll(ctx context.Context, addresses []string) error {
	var dialer net.Dialer
	for _, address := range addresses {
		for {
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err == nil {
				_ = conn.Close() // nothing was written
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the server at %s does not listen: %w", address, err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

func (s *supervisor) startPrograms() error {
	for _, p := range s.programs {
		if err := p.start(s.ended); err != nil {
			return err
		}
	}
	return nil
}

// anyLeft reports whether a process runs or will be started.
func (s *supervisor) anyLeft() bool {
	return len(s.restart) > 0 || slices.ContainsFunc(s.all(), func(p *process) bool { return p.running })
}
