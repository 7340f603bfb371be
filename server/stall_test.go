package server

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// valve forwards connections to a task. While it is shut, the task is silent, as if its process
// were stopped.
type valve struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	open  chan struct{} // closed while data flows; guarded by mu
	conns []net.Conn    // guarded by mu
}

func newValve(t *testing.T, target string) *valve {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{listener: l, target: target, open: make(chan struct{})}
	close(v.open)
	v.running.Go(v.accept)
	return v
}

func (v *valve) accept() {
	for {
		in, err := v.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", v.target)
		if err != nil {
			in.Close()
			continue
		}
		v.mu.Lock()
		v.conns = append(v.conns, in, out)
		v.mu.Unlock()
		v.running.Go(func() { v.forward(in, out) })
		v.running.Go(func() { v.forward(out, in) })
	}
}

func (v *valve) forward(dst, src net.Conn) {
	defer dst.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		v.mu.Lock()
		open := v.open
		v.mu.Unlock()
		<-open
		if _, writeErr := dst.Write(buf[:n]); writeErr != nil || err != nil {
			_, _ = io.Copy(io.Discard, src)
			return
		}
	}
}

func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open = make(chan struct{})
}

func (v *valve) reopen() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.open)
}

// close ends the connections of an open valve.
func (v *valve) close() {
	v.listener.Close()
	v.mu.Lock()
	for _, c := range v.conns {
		c.Close()
	}
	v.mu.Unlock()
	v.running.Wait()
}

// TestStoppedTaskIsNamed stops a parameter server. Before the client's deadline, the client gets an
// error that says which task is silent, where it listens, and when it was last heard of.
func TestStoppedTaskIsNamed(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 2})
	v := newValve(t, spec[ps.Job][ps.Index])
	spec[ps.Job][ps.Index] = v.listener.Addr().String()
	servers := map[cluster.Task]*Server{}
	for task, l := range listeners {
		servers[task] = start(t, cluster.ServerDef{Cluster: spec, Job: task.Job, Task: task.Index}, WithListener(l))
	}
	t.Cleanup(v.close)
	root := op.NewScope()
	x := op.RandomUniform(root.WithDevice("/job:ps"), op.Const(root, []int32{2}), tensor.Float32)
	y := op.Identity(root.WithDevice("/job:worker/task:1"), x)
	sessions := map[string]*weft.Session{}
	for name, opts := range transports {
		sessions[name] = session(t, servers[worker0], root, opts...)
		if _, err := sessions[name].Run(t.Context(), nil, []graph.Output{y}, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	v.shut()
	defer v.reopen() // for the sessions to close
	for name, opts := range transports {
		sessions[name+", as the session starts"] = session(t, servers[worker0], root, opts...)
	}
	for name, s := range sessions {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := s.Run(ctx, nil, []graph.Output{y}, nil)
		late := ctx.Err() != nil
		cancel()
		if status.CodeOf(err) != status.DeadlineExceeded || late {
			t.Errorf("%s: got %v, late: %t", name, err, late)
			continue
		}
		for _, want := range []string{"/job:ps/replica:0/task:0 at " + v.listener.Addr().String(), "last heard of"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error does not contain %q: %v", name, want, err)
			}
		}
	}
}
