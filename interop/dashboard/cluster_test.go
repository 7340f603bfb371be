package dashboard

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// startCluster starts tasks that answer HTTP, and returns them by job and index.
func startCluster(t *testing.T, sizes map[string]int) map[cluster.Task]*server.Server {
	t.Helper()
	spec, listeners := cluster.Spec{}, map[cluster.Task]net.Listener{}
	for job, n := range sizes {
		spec[job] = map[int]string{}
		for i := range n {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			spec[job][i], listeners[cluster.Task{Job: job, Index: i}] = l.Addr().String(), l
		}
	}
	out := map[cluster.Task]*server.Server{}
	for task, l := range listeners {
		s, err := server.New(cluster.ServerDef{Cluster: spec, Job: task.Job, Task: task.Index}, server.WithListener(l),
			server.WithHTTP("127.0.0.1:0"), server.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = s.Shutdown(ctx) // a step that hangs is cut off
		})
		out[task] = s
	}
	return out
}

// newProgram opens a session at worker/0, with a variable and an empty queue on ps/0. train runs a
// step; hang runs one that waits for the queue.
func newProgram(t *testing.T, worker *server.Server) (train, hang func(context.Context) error) {
	t.Helper()
	root := op.NewScope()
	ps, compute := root.WithDevice("/job:ps/task:0"), root.WithDevice("/job:worker/task:0")
	weights := op.VarHandleOp(ps, tensor.Float32, tensor.MakePartial(300, 300), op.VarHandleOpSharedName("hidden/weights"))
	start := op.Fill(ps, op.Const(ps, []int32{300, 300}), op.Const(ps, float32(1)))
	assign := op.AssignVariableOp(ps, weights, start)
	value := op.ReadVariableOp(ps, weights, tensor.Float32)
	product := op.MatMul(compute, value, value)
	update := op.AssignAddVariableOp(ps, weights, op.Mul(compute, product, op.Const(compute, float32(1e-12))))
	samples := op.FIFOQueueV2(ps, []tensor.DType{tensor.Float32}, op.FIFOQueueV2SharedName("samples"))
	next := op.QueueDequeueV2(ps, samples, []tensor.DType{tensor.Float32})
	blocked := op.Identity(compute, next[0])
	g, err := root.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	s, err := weft.NewSession(worker.Target(), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // its cluster may have ended
	if err := s.Exec(t.Context(), nil, assign); err != nil {
		t.Fatal(err)
	}
	train = func(ctx context.Context) error { return s.Exec(ctx, nil, update) }
	hang = func(ctx context.Context) error {
		_, err := s.Fetch(ctx, nil, blocked)
		return err
	}
	return train, hang
}

// repeat runs steps until the test ends.
func repeat(t *testing.T, step func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil && step(ctx) == nil { //nolint:revive // the condition does the work
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
