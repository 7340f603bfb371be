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

	mu     sync.Mutex
	cmd    *exec.Cmd // guarded by mu
	starts int       // guarded by mu
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
	return p.cmd.Start()
}

// signal sends a signal to the process.
func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(s) // it may have ended
}

// wait waits for the end of the process.
func (p *process) wait() {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	_ = cmd.Wait() // an error tells how it ended
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
