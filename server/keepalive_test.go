package server

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A step whose parameter server vanishes behind a proxy that keeps its connections open fails with
// Unavailable and the name of the task.
func TestVanishedTaskFailsStep(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 2})
	v := newValve(t, spec[ps.Job][ps.Index])
	spec[ps.Job][ps.Index] = v.listener.Addr().String()
	limits := DefaultLimits()
	limits.Keepalive, limits.KeepaliveTimeout = 100*time.Millisecond, 200*time.Millisecond
	servers := map[cluster.Task]*Server{}
	for task, l := range listeners {
		def := cluster.ServerDef{Cluster: spec, Job: task.Job, Task: task.Index}
		servers[task] = start(t, def, WithListener(l), WithLimits(limits))
	}
	t.Cleanup(v.close)
	root := op.NewScope()
	x := op.RandomUniform(root.WithDevice("/job:ps"), op.Const(root, []int32{2}), tensor.Float32)
	y := op.Identity(root.WithDevice("/job:worker/task:1"), x)
	s := session(t, servers[worker0], root)
	if _, err := s.Run(t.Context(), nil, []graph.Output{y}, nil); err != nil {
		t.Fatal(err)
	}
	v.shut()
	defer v.reopen() // for the session to close
	_, err := s.Run(t.Context(), nil, []graph.Output{y}, nil)
	if status.CodeOf(err) != status.Unavailable || !strings.Contains(err.Error(), "/job:ps/replica:0/task:0") ||
		!strings.Contains(err.Error(), "PING") {
		t.Errorf("got %v", err)
	}
}
