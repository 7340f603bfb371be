package dashboard

import (
	"context"
	"io"
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
			server.WithHTTP("127.0.0.1:0"), server.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
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

// program runs steps of one session.
type program struct {
	train func(context.Context) error // a step, which reports a loss
	hang  func(context.Context) error // a step that waits for an empty queue
	fail  func(context.Context) error // a step that fails on ps/0
}

// newProgram opens a session at worker/0, with a variable and an empty queue on ps/0.
func newProgram(t *testing.T, worker *server.Server) program {
	t.Helper()
	root := op.NewScope()
	ps, compute := root.WithDevice("/job:ps/task:0"), root.WithDevice("/job:worker/task:0")
	weights := op.VarHandleOp(ps, tensor.Float32, tensor.MakePartial(300, 300), op.VarHandleOpSharedName("hidden/weights"))
	start := op.Fill(ps, op.Const(ps, []int32{300, 300}), op.Const(ps, float32(1)))
	assign := op.AssignVariableOp(ps, weights, start)
	value := op.ReadVariableOp(ps, weights, tensor.Float32)
	hidden := compute.SubScope("hidden")
	product := op.MatMul(hidden, value, value)
	update := op.AssignAddVariableOp(ps, weights, op.Mul(hidden, product, op.Const(hidden, float32(1e-9))))
	losses := compute.SubScope("loss")
	loss := op.Mean(losses, product, op.Const(losses, []int32{0, 1}))
	report := op.ScalarSummary(losses, op.Const(losses, "loss"), loss)
	broken := op.CheckNumericsV2(ps.SubScope("check"), op.Log(ps, op.Const(ps, float32(-1))), "the logarithm")
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
	fetch := func(o op.Output) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Fetch(ctx, nil, o)
			return err
		}
	}
	return program{func(ctx context.Context) error { return s.Exec(ctx, nil, update, report.Node) }, fetch(blocked), fetch(broken)}
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
