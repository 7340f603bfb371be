package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weft-ml/weft/cluster"
)

// process is one process of the cluster: a server of Weft or the program of a task. The supervisor
// owns it.
type process struct {
	task     cluster.Task
	server   bool // a server of Weft
	command  []string
	env      []string
	out      *output
	restarts int      // how often it was started again
	machines Machines // that run the process; nil for this machine
	cmd      *exec.Cmd
	running  bool
}

// An exit is the end of a process.
type exit struct {
	process *process
	err     error // nil for status 0
	at      time.Time
}

// name returns what messages call the process.
func (p *process) name() string {
	if p.server {
		return p.task.Short() + " (server)"
	}
	return p.task.Short()
}

// fileName returns the name of the process in the names of files.
func (p *process) fileName() string {
	name := strings.ReplaceAll(p.task.Short(), "/", "-")
	if p.server {
		name += "-server"
	}
	return name
}

// openLog creates the log file of the process in a folder.
func (p *process) openLog(dir string, t *terminal, width int) error {
	prefix := p.task.Short()
	if p.server {
		prefix += "s"
	}
	f, err := os.Create(filepath.Join(dir, p.fileName()+".log"))
	if err != nil {
		return err
	}
	p.out = &output{prefix: fmt.Sprintf("[%-*s] ", width, prefix), terminal: t, file: f}
	return nil
}

// start starts the process, and later sends its end to ended. The process is the leader of its own
// group, so that the terminal sends it no signals.
func (p *process) start(ended chan<- exit) error {
	p.cmd = exec.Command(p.command[0], p.command[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = ownGroup()
	p.cmd.WaitDelay = outputDelay
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name(), err)
	}
	p.running = true
	cmd := p.cmd
	go func() { // ends with the process, which the supervisor waits for
		err := cmd.Wait()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // a child of the process still has its output
		}
		ended <- exit{p, err, time.Now()}
	}()
	return nil
}

// signal sends a signal to the process and its children.
func (p *process) signal(s syscall.Signal) {
	switch {
	case !p.running:
	case p.machines == nil:
		signalGroup(p.cmd.Process, s)
	default:
		if err := p.machines.Signal(p.cmd.Process, p.fileName(), s); err != nil {
			p.out.terminal.writeLine("weft launch: ", []byte(err.Error()))
		}
	}
}

// status returns the exit status of a process as a shell has it: 128 and the signal's number if one
// ended it.
func status(err error) int {
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		if err == nil {
			return 0
		}
		return 1
	}
	if s, ok := failed.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return failed.ExitCode()
}
