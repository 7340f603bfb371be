package train_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Fit a line to points, in one process: y = 2x + 1.
func ExampleMonitoredTrainingSession() {
	s := op.NewScope()
	x, y := op.Placeholder(s, tensor.Float32), op.Placeholder(s, tensor.Float32)
	a := train.NewVariable(s, "a", tensor.Shape{}, tensor.Float32, train.Zeros)
	b := train.NewVariable(s, "b", tensor.Shape{}, tensor.Float32, train.Zeros)
	wrong := op.Sub(s, op.AddV2(s, op.Mul(s, x, a.Value), b.Value), y)
	loss := op.Mean(s, op.Square(s, wrong), op.Const(s, []int32{0}))
	update := train.Minimize(s, train.NewGradientDescent(0.1), loss, train.GlobalStep(s))

	ctx := context.Background()
	found := &train.FinalOpsHook{Fetches: []op.Output{a.Value, b.Value}}
	sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
		IsChief: true, Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 300}, found},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	points := map[op.Output]tensor.Tensor{x: tensor.Vector[float32](-1, 0, 1), y: tensor.Vector[float32](-1, 1, 3)}
	err = sess.Loop(ctx, func(ctx context.Context) error {
		_, err := sess.Run(ctx, points, nil, []*graph.Node{update})
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("y = %.2fx + %.2f\n", found.Values()[0].Go(), found.Values()[1].Go())
	// Output: y = 2.00x + 1.00
}

// Train synchronously with two workers, here in one process. Each step applies the average of their
// gradients.
func ExampleSyncReplicasOptimizer() {
	ctx := context.Background()
	cl, err := server.StartCluster(map[string]int{"ps": 1, "worker": 2}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cl.Shutdown(ctx) }()

	worker := func(task int) error {
		s := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{
			Cluster: cl.Spec(), WorkerDevice: fmt.Sprintf("/job:worker/task:%d", task),
		}))
		w := train.NewVariable(s, "w", tensor.Shape{}, tensor.Float32, train.Ones)
		opt := train.NewSyncReplicasOptimizer(train.NewGradientDescent(0.1), 2, 2)
		update := opt.Minimize(s, op.Square(s, w.Value), train.GlobalStep(s))
		sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
			Master: cl.Target("worker", task), IsChief: task == 0,
			Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 20}, opt.MakeSessionRunHook(task == 0)},
		})
		if err != nil {
			return err
		}
		return sess.Loop(ctx, func(ctx context.Context) error {
			_, err := sess.Run(ctx, nil, nil, []*graph.Node{update})
			return err
		})
	}
	errs := make([]error, 2)
	var running sync.WaitGroup
	for task := range errs {
		running.Go(func() { errs[task] = worker(task) })
	}
	running.Wait()
	fmt.Println(errs)
	// Output: [<nil> <nil>]
}

// Save a checkpoint, and restore it in a program that knows only its folder.
func ExampleSaver() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "saver")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	s := op.NewScope()
	train.NewVariable(s, "w", tensor.Shape{3}, tensor.Float32, train.Values([]float32{1, 2, 3}))
	init := train.VariablesInitializer(s)
	saver := train.NewSaver(s, train.SaverOptions{MaxToKeep: 3})
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []*graph.Node{init}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := saver.Save(ctx, sess, filepath.Join(dir, "model.ckpt"), 100); err != nil {
		fmt.Println(err)
		return
	}

	latest, err := train.LatestCheckpoint(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	meta, err := savedmodel.ReadMetaGraph(latest + ".meta")
	if err != nil {
		fmt.Println(err)
		return
	}
	s = op.NewScope()
	saver = train.ImportMetaGraph(s, meta, op.ImportOptions{ClearDevices: true}, train.SaverOptions{})
	later, err := weft.NewSession("local", s.Graph())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer later.Close()
	if err := saver.Restore(ctx, later, latest); err != nil {
		fmt.Println(err)
		return
	}
	w := train.Variables(s, train.GlobalVariables)[0]
	out, err := later.Run(ctx, nil, []op.Output{w.Value}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(filepath.Base(latest), w.Name, out[0].Go())
	// Output: model.ckpt-100 w [1 2 3]
}
