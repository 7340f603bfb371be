package train_test

import (
	"context"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// startTask starts the server of one task.
func startTask(t *testing.T, spec cluster.Spec, job string) *server.Server {
	t.Helper()
	s, err := server.New(cluster.ServerDef{Cluster: spec, Job: job})
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	return s
}

// TestLostParameterServer restarts the parameter server, which loses all variables, during
// training: training continues from the latest checkpoint.
func TestLostParameterServer(t *testing.T) {
	cl := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	l := newLine(newScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: 1})))
	step := train.GlobalStep(l.scope)
	sess := monitored(t, l, train.TrainingOptions{
		Master: cl.Target("worker", 0), IsChief: true, CheckpointDir: t.TempDir(), SaveCheckpointSteps: 5,
		Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 20}},
	})
	var seen []int64
	err := sess.Loop(t.Context(), func(ctx context.Context) error {
		if len(seen) == 13 {
			if err := cl.Server("ps", 0).Shutdown(ctx); err != nil {
				return err
			}
			startTask(t, cl.Spec(), "ps")
		}
		out, err := sess.Run(ctx, map[op.Output]tensor.Tensor{l.x: tensor.Scalar(float32(1))}, []op.Output{step.Value}, []*graph.Node{l.update})
		if err == nil {
			seen = append(seen, tensor.Value[int64](&out[0]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// 13 steps, and 10 steps after the checkpoint of step 10
	if len(seen) != 23 || seen[13] > 11 {
		t.Errorf("steps were %v", seen)
	}
}
