package server

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// startCluster starts the tasks of one job each with free ports, and returns them in order.
func startCluster(t *testing.T, jobs map[string]int, opts ...Option) map[cluster.Task]*Server {
	t.Helper()
	spec := cluster.Spec{}
	listeners := []net.Listener{}
	for job, n := range jobs {
		spec[job] = cluster.Job{}
		for i := range n {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			listeners = append(listeners, l)
			spec[job][i] = l.Addr().String()
		}
	}
	for _, l := range listeners {
		l.Close()
	}
	out := map[cluster.Task]*Server{}
	for _, task := range spec.Tasks() {
		out[task] = start(t, cluster.ServerDef{Cluster: spec, Job: task.Job, Task: task.Index}, opts...)
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestStepAcrossTasks(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 2})
	for _, opts := range [][]weft.Option{nil, {weft.WithNetwork()}} {
		root := op.NewScope()
		onPS, onWorker := root.WithDevice("/job:ps/task:0"), root.WithDevice("/job:worker/task:1")
		x := op.Placeholder(root.Named("x"), tensor.Float32)
		y := op.Pack(onPS, []op.Output{x, op.Const(onWorker, []float32{3, 4})})
		z := op.Identity(onWorker, y)
		g, err := root.Finalize()
		if err != nil {
			t.Fatal(err)
		}
		s, err := weft.NewSession(servers[cluster.Task{Job: "worker"}].Target(), g, opts...)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			got, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{x: tensor.Vector[float32](1, 2)}, []graph.Output{z, y}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if v := tensor.Values[float32](&got[0]); !slices.Equal(v, []float32{1, 2, 3, 4}) {
				t.Errorf("got %v", v)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	_, err = New(cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense(address)}, Job: "ps"})
	if status.CodeOf(err) != status.AlreadyExists || !strings.Contains(err.Error(), address) {
		t.Errorf("got error %v", err)
	}
}
