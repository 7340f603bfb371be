package train_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// largestLoss is a hook that fetches the loss of each step and keeps the largest.
type largestLoss struct {
	train.BaseHook
	loss    op.Output
	largest float32
}

// BeforeRun implements train.SessionRunHook.
func (h *largestLoss) BeforeRun(context.Context, *train.RunContext) (train.RunArgs, error) {
	return train.RunArgs{Fetches: []op.Output{h.loss}}, nil
}

// AfterRun implements train.SessionRunHook.
func (h *largestLoss) AfterRun(_ context.Context, _ *train.RunContext, values train.RunValues) error {
	h.largest = max(h.largest, tensor.Value[float32](&values.Fetched[0]))
	return nil
}

// Write a hook: embed BaseHook and define the methods that the hook needs.
func ExampleBaseHook() {
	ctx := context.Background()
	s := op.NewScope()
	w := train.NewVariable(s, "w", tensor.Shape{}, tensor.Float32, train.Constant(3), train.Resource())
	loss := op.Square(s, w.Value)
	update := train.Minimize(s, train.NewGradientDescent(0.25), loss, train.GlobalStep(s))

	hook := &largestLoss{loss: loss}
	sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
		IsChief: true, Hooks: []train.SessionRunHook{hook, &train.StopAtStepHook{LastStep: 5}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = sess.Loop(ctx, func(ctx context.Context) error {
		_, err := sess.Run(ctx, nil, nil, []*graph.Node{update})
		return err
	})
	fmt.Println(hook.largest, err)
	// Output: 9 <nil>
}

// Add to a variable in a step.
func ExampleVariable_AssignAdd() {
	ctx := context.Background()
	s := op.NewScope()
	v := train.NewVariable(s, "v", tensor.Shape{2}, tensor.Float32, train.Zeros)
	add := v.AssignAdd(s, op.Const(s, []float32{1, 2}))
	after := v.Read(s.WithControlDependencies(add))
	init := train.VariablesInitializer(s)
	g, err := s.Finalize()
	if err != nil {
		fmt.Println(err)
		return
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []*graph.Node{init}); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := sess.Run(ctx, nil, []op.Output{after}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out[0].Go())
	}
	// Output:
	// [1 2]
	// [2 4]
}

// Compute a learning rate from the number of steps.
func ExampleExponentialDecay() {
	s := op.NewScope()
	step := op.Placeholder(s, tensor.Int64)
	rate := train.ExponentialDecay{Rate: 0.1, Steps: 100, Factor: 0.5, Staircase: true}.At(s, step)
	g, err := s.Finalize()
	if err != nil {
		fmt.Println(err)
		return
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	for _, n := range []int64{0, 99, 100, 250} {
		out, err := sess.Run(context.Background(), map[op.Output]tensor.Tensor{step: tensor.Scalar(n)}, []op.Output{rate}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("step %d: %.3f\n", n, out[0].Go())
	}
	// Output:
	// step 0: 0.100
	// step 99: 0.100
	// step 100: 0.050
	// step 250: 0.025
}

// Place variables on two parameter servers in turn, and all other nodes on a worker.
func ExampleReplicaDeviceSetter() {
	s := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: 2, WorkerDevice: "/job:worker/task:7"}))
	for _, name := range []string{"a", "b", "c"} {
		v := train.NewVariable(s, name, tensor.Shape{}, tensor.Float32, train.Zeros)
		fmt.Println(v.Name, v.Handle.Node.Device)
	}
	fmt.Println("constant", op.Const(s, float32(1)).Node.Device)
	// Output:
	// a /job:ps/task:0
	// b /job:ps/task:1
	// c /job:ps/task:0
	// constant /job:worker/task:7
}

// Stop two goroutines when one of them reaches the end of its input.
func ExampleCoordinator() {
	ctx := context.Background()
	coord := train.NewCoordinator(ctx, status.OutOfRange)
	coord.Go(func(ctx context.Context) error {
		<-ctx.Done() // until a stop is requested
		return nil
	})
	coord.Go(func(context.Context) error { return status.OutOfRangef("no more records") })
	fmt.Println(coord.Join(ctx))

	coord = train.NewCoordinator(ctx)
	coord.Go(func(context.Context) error { return errors.New("the disk is full") })
	fmt.Println(coord.Join(ctx))
	// Output:
	// <nil>
	// the disk is full
}
