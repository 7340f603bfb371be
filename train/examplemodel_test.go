package train_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Train a model, export it at the end, and run it as another program would.
func ExampleSavedModelHook() {
	ctx := context.Background()
	tmp, err := os.MkdirTemp("", "model")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "line")

	s := op.NewScope()
	anyLength := tensor.MakePartial(-1)
	x := op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(anyLength))
	want := op.Placeholder(s, tensor.Float32)
	a := train.NewVariable(s, "a", tensor.Shape{}, tensor.Float32, train.Zeros)
	y := op.Mul(s.Named("y"), x, a.Value)
	loss := op.Mean(s, op.Square(s, op.Sub(s, y, want)), op.Const(s, []int32{0}))
	update := train.Minimize(s, train.NewAdam(0.1), loss, train.GlobalStep(s))
	export := &train.SavedModelHook{Export: train.Export{Dir: dir, Signatures: map[string]savedmodel.Signature{
		savedmodel.DefaultSignature: {
			Inputs:  map[string]savedmodel.TensorInfo{"x": savedmodel.InfoOf(x, anyLength)},
			Outputs: map[string]savedmodel.TensorInfo{"y": savedmodel.InfoOf(y, anyLength)},
			Method:  savedmodel.MethodPredict,
		},
	}}}
	sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
		IsChief: true, Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 300}, export},
	})
	if err != nil {
		panic(err)
	}
	points := map[op.Output]tensor.Tensor{x: tensor.Vector[float32](1, 2), want: tensor.Vector[float32](3, 6)}
	err = sess.Loop(ctx, func(ctx context.Context) error {
		_, err := sess.Run(ctx, points, nil, []*graph.Node{update})
		return err
	})
	if err != nil {
		panic(err)
	}

	m, err := serve.Load(ctx, "local", dir)
	if err != nil {
		panic(err)
	}
	defer m.Close()
	line, err := m.Signature(savedmodel.DefaultSignature)
	if err != nil {
		panic(err)
	}
	out, err := line.Run(ctx, map[string]any{"x": []float32{10}})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f\n", out["y"])
	// Output: [30.0]
}

// Split the rows of a large table over two parameter servers. A lookup sends only the requested
// rows over the network.
func ExampleNewPartitioned() {
	ctx := context.Background()
	s := op.NewScope()
	onServers := s.WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: 2}))
	rows := train.RandomUniform(-1, 1)
	table := train.NewPartitioned(onServers, "table", tensor.Shape{1001, 4}, tensor.Float32, rows, 2)
	for _, part := range table.Parts {
		fmt.Println(part.Name, part.Shape, part.Handle.Node.Device)
	}

	local := op.NewScope() // the same table in one process
	table = train.NewPartitioned(local, "table", tensor.Shape{1001, 4}, tensor.Float32, train.Ones, 2)
	found := table.Lookup(local, op.Const(local, []int64{1000, 0, 7}))
	init := train.VariablesInitializer(local)
	sess, err := weft.NewSession("local", local.Graph())
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []*graph.Node{init}); err != nil {
		panic(err)
	}
	out, err := sess.Run(ctx, nil, []op.Output{found}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(out[0].Shape())
	// Output:
	// table/part_0 [501,4] /job:ps/task:0
	// table/part_1 [500,4] /job:ps/task:1
	// [3,4]
}
