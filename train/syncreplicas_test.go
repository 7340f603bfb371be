package train_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// replica is one worker of a model with a dense and a sparse gradient.
type replica struct {
	scope  *op.Scope
	x      op.Output
	w      *train.Variable
	table  *train.Variable
	update *graph.Node
	sync   *train.SyncReplicasOptimizer
}

func newReplica(task, aggregate, total int, opts ...train.VariableOption) *replica {
	s := newScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{
		PSTasks: 1, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", task),
	}))
	r := &replica{scope: s, x: op.Placeholder(s, tensor.Float32)}
	r.w = train.NewVariable(s, "w", tensor.Shape{}, tensor.Float32, train.Zeros, opts...)
	r.table = train.NewVariable(s, "table", tensor.Shape{4, 1}, tensor.Float32, train.Zeros, opts...)
	row := train.EmbeddingLookup(s, []*train.Variable{r.table}, op.Const(s, []int32{1, 1, 3}))
	loss := op.AddV2(s, op.Mul(s, r.w.Value, r.x), op.Mul(s, op.Sum(s, row, op.Const(s, []int32{0, 1})), r.x))
	r.sync = train.NewSyncReplicasOptimizer(train.NewGradientDescent(0.5), aggregate, total)
	r.update = r.sync.Minimize(s, loss, train.GlobalStep(s))
	return r
}

// work trains one worker, whose gradients are x, and returns the final values of the variables.
func (r *replica) work(ctx context.Context, cl *server.Cluster, task int, x float32, last int64) ([]tensor.Tensor, error) {
	final := &train.FinalOpsHook{Fetches: []op.Output{r.w.Value, r.table.Value, train.GlobalStep(r.scope).Value}}
	sess, err := train.MonitoredTrainingSession(ctx, r.scope, train.TrainingOptions{
		Master: cl.Target("worker", task), IsChief: task == 0,
		Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: last}, r.sync.MakeSessionRunHook(task == 0), final},
	})
	if err != nil {
		return nil, err
	}
	err = sess.Loop(ctx, func(ctx context.Context) error {
		_, err := sess.Run(ctx, map[op.Output]tensor.Tensor{r.x: tensor.Scalar(x)}, nil, []*graph.Node{r.update})
		return err
	})
	return final.Values(), err
}

// TestSyncReplicas trains two workers synchronously: each step applies the mean of two gradients,
// of either worker.
func TestSyncReplicas(t *testing.T) {
	const last = 10
	for name, opts := range map[string][]train.VariableOption{"reference": nil, "resource": {train.Resource()}} {
		t.Run(name, func(t *testing.T) {
			cl := startCluster(t, map[string]int{"ps": 1, "worker": 2})
			var running sync.WaitGroup
			for task := range 2 {
				running.Go(func() {
					out, err := newReplica(task, 2, 2, opts...).work(t.Context(), cl, task, 2, last)
					if err != nil || len(out) == 0 {
						t.Errorf("worker %d: %v", task, err)
						return
					}
					step := tensor.Value[int64](&out[2])
					w, table := tensor.Value[float32](&out[0]), tensor.Values[float32](&out[1])
					// The chief's goroutine may be one step ahead of the values that are read.
					if moved := float64(-w); step < last || math.Abs(moved-float64(step)) > 1 {
						t.Errorf("worker %d: after %d steps w is %v", task, step, w)
					}
					if table[0] != 0 || table[2] != 0 || table[1] != 2*table[3] || table[3] == 0 {
						t.Errorf("worker %d: rows are %v", task, table)
					}
				})
			}
			running.Wait()
		})
	}
}

// TestSyncReplicasFewerWorkers averages two gradients of one worker.
func TestSyncReplicasFewerWorkers(t *testing.T) {
	cl := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	out, err := newReplica(0, 2, 1).work(t.Context(), cl, 0, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	if step := tensor.Value[int64](&out[2]); step < 5 {
		t.Errorf("ended at step %d", step)
	}
}

func TestSyncReplicasMistakes(t *testing.T) {
	s := newScope()
	w := train.NewVariable(s, "w", tensor.Shape{}, tensor.Float32, train.Zeros)
	loss := op.Square(s, w.Value)
	if train.NewSyncReplicasOptimizer(train.NewAdam(1), 1, 1).Minimize(s, loss, nil); s.Err() == nil {
		t.Error("no error without a global step")
	}
	s = newScope()
	o := train.NewSyncReplicasOptimizer(train.NewAdam(1), 4, 2)
	if _, err := o.InitTokensOp(4); err == nil {
		t.Error("no error before the queue exists")
	}
	w = train.NewVariable(s, "w", tensor.Shape{}, tensor.Float32, train.Zeros)
	o.Minimize(s, op.Square(s, w.Value), train.GlobalStep(s))
	if _, err := o.InitTokensOp(1); err == nil {
		t.Error("no error for too few tokens")
	}
	if o.Minimize(s, op.Square(s, w.Value), train.GlobalStep(s)); s.Err() == nil {
		t.Error("no error for a second use")
	}
}
