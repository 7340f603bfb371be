package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/weft-ml/weft/cluster"
)

// A process is one task of the cluster: a server that is killed and started again.
type process struct {
	weft   string
	task   cluster.Task
	spec   string // flag
	listen string // real address
	link   *link  // the address that the cluster knows
	dir    string // of the log

	died func(p *process, how string) // called when the process ends although no fault has ended it

	mu     sync.Mutex
	cmd    *exec.Cmd     // guarded by mu
	ended  chan struct{} // closed when cmd has ended; guarded by mu
	doomed bool          // a fault ends cmd; guarded by mu
	starts int           // guarded by mu
}

// start starts the task, with failpoints in the form of WEFT_FAILPOINTS.
func (p *process) start(failpoints string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(filepath.Join(p.dir, fmt.Sprintf("%s%d.log", p.task.Job, p.task.Index)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p.starts++
	fmt.Fprintf(log, "== start %d, failpoints %q\n", p.starts, failpoints)
	p.cmd = exec.Command(p.weft, "server", "--cluster-spec="+p.spec, "--job-name="+p.task.Job, fmt.Sprintf("--task-index=%d", p.task.Index),
		"--listen="+p.listen, "--memory-limit=512MiB", "--grace=5s")
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "WEFT_FAILPOINTS="+failpoints)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.ended, p.doomed = make(chan struct{}), false
	go p.watch(p.cmd, p.ended)
	return nil
}

// watch waits for the end of a process, and reports one that no fault has caused.
func (p *process) watch(cmd *exec.Cmd, ended chan struct{}) {
	_ = cmd.Wait() // the state tells how it ended
	p.mu.Lock()
	doomed, start := p.doomed, p.starts
	p.mu.Unlock()
	close(ended)
	if !doomed {
		p.died(p, fmt.Sprintf("start %d of %v ended by itself: %v; see its log", start, p.task, cmd.ProcessState))
	}
}

// signal sends a signal to the process.
func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.cmd.Process == nil {
		return // it has not been started
	}
	p.doomed = p.doomed || s == syscall.SIGKILL || s == syscall.SIGTERM
	_ = p.cmd.Process.Signal(s) // it may have ended
}

// wait waits for the end of the process.
func (p *process) wait() {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// freeAddress returns an unused address of the loopback interface.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// newTasks returns the tasks of a cluster, which are not started, by name.
func newTasks(weft, dir string, jobs map[string]int) (map[cluster.Task]*process, error) {
	tasks := map[cluster.Task]*process{}
	var spec []string
	for _, job := range []string{"ps", "worker"} {
		var addresses []string
		for i := range jobs[job] {
			real, err := freeAddress()
			if err != nil {
				return nil, err
			}
			k, err := newLink(real)
			if err != nil {
				return nil, err
			}
			t := cluster.Task{Job: job, Index: i}
			tasks[t] = &process{weft: weft, task: t, listen: real, link: k, dir: dir}
			addresses = append(addresses, k.address())
		}
		spec = append(spec, job+"|"+strings.Join(addresses, ";"))
	}
	for _, p := range tasks {
		p.spec = strings.Join(spec, ",")
	}
	return tasks, nil
}
