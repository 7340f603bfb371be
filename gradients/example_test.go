package gradients_test

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// run runs a graph in this process and returns the values of some outputs.
func run(s *op.Scope, feeds map[op.Output]tensor.Tensor, outputs ...op.Output) []tensor.Tensor {
	g, err := s.Finalize()
	if err != nil {
		panic(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	values, err := sess.Run(context.Background(), feeds, outputs, nil)
	if err != nil {
		panic(err)
	}
	return values
}

// The derivative of x⁴, computed by a loop.
func Example() {
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32)
	y := op.WhileLoop(s, []op.Output{op.Const(s, int32(0)), x},
		func(s *op.Scope, v []op.Output) op.Output { return op.Less(s, v[0], op.Const(s, int32(2))) },
		func(s *op.Scope, v []op.Output) []op.Output {
			return []op.Output{op.AddV2(s, v[0], op.Const(s, int32(1))), op.Square(s, v[1])}
		})[1]
	dx := gradients.Compute(s, []op.Output{y}, []op.Output{x})[0].Dense
	values := run(s, map[op.Output]tensor.Tensor{x: tensor.Scalar(float32(2))}, y, dx)
	fmt.Println(values[0].Go(), values[1].Go())
	// Output: 16 32
}

// Fit a layer to points by gradient descent. Only the session is left out.
func ExampleCompute() {
	s := op.NewScope()
	x, want := op.Const(s, [][]float32{{0}, {1}, {2}}), op.Const(s, [][]float32{{1}, {3}, {5}})
	w := op.VarHandleOp(s, tensor.Float32, tensor.MakePartial(1, 1), op.VarHandleOpSharedName("w"))
	b := op.VarHandleOp(s, tensor.Float32, tensor.MakePartial(1), op.VarHandleOpSharedName("b"))
	start := []*graph.Node{
		op.AssignVariableOp(s, w, op.Const(s, [][]float32{{0}})), op.AssignVariableOp(s, b, op.Const(s, []float32{0})),
	}
	y := op.BiasAdd(s, op.MatMul(s, x, op.ReadVariableOp(s, w, tensor.Float32)), op.ReadVariableOp(s, b, tensor.Float32))
	loss := op.Mean(s, op.SquaredDifference(s, y, want), op.Const(s, []int32{0, 1}))

	rate, variables := op.Const(s, float32(0.2)), []op.Output{w, b}
	var step []*graph.Node
	for i, g := range gradients.Compute(s, []op.Output{loss}, variables) {
		step = append(step, op.ResourceApplyGradientDescent(s, variables[i], rate, gradients.Densify(s, g)))
	}
	g, err := s.Finalize()
	if err != nil {
		panic(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	ctx := context.Background()
	if _, err := sess.Run(ctx, nil, nil, start); err != nil {
		panic(err)
	}
	for range 200 {
		if _, err := sess.Run(ctx, nil, nil, step); err != nil {
			panic(err)
		}
	}
	values, err := sess.Run(ctx, nil, []op.Output{y}, nil)
	if err != nil {
		panic(err)
	}
	for _, row := range values[0].Go().([][]float32) {
		fmt.Printf("%.2f\n", row[0])
	}
	// Output:
	// 1.00
	// 3.00
	// 5.00
}

// The factor x² counts as a constant in the derivative of x·x².
func ExampleStop() {
	s := op.NewScope()
	x := op.Const(s, float32(3))
	square := op.Square(s, x)
	y := []op.Output{op.Mul(s, x, square)}
	whole := gradients.Compute(s, y, []op.Output{x})[0].Dense
	stopped := gradients.Compute(s, y, []op.Output{x}, gradients.Stop(square))[0].Dense
	values := run(s, nil, whole, stopped)
	fmt.Println(values[0].Go(), values[1].Go())
	// Output: 27 9
}

// The second derivative of sin x is that of its first.
func ExampleCompute_twice() {
	s := op.NewScope()
	x := op.Const(s, 0.5)
	first := gradients.Compute(s, []op.Output{op.Sin(s, x)}, []op.Output{x})[0].Dense
	second := gradients.Compute(s, []op.Output{first}, []op.Output{x})[0].Dense
	values := run(s, nil, first, second)
	fmt.Printf("%.4f %.4f\n", values[0].Go(), values[1].Go())
	// Output: 0.8776 -0.4794
}

// Clip a gradient, dense or sparse, to a range.
func ExampleGrad_Map() {
	s := op.NewScope()
	table := op.Const(s, [][]float32{{1, -7}, {0.2, 4}})
	g := gradients.Compute(s, []op.Output{op.Square(s, op.Gather(s, table, op.Const(s, []int32{1})))}, []op.Output{table})[0]
	low, high := op.Const(s, float32(-1)), op.Const(s, float32(1))
	g = g.Map(func(values op.Output) op.Output { return op.ClipByValue(s, values, low, high) })
	fmt.Println(run(s, nil, g.Slices.Values)[0].Go())
	// Output: [[0.4 1]]
}

// A rule for an operation that has none.
func ExampleRegister() {
	if !gradients.HasRule("DeepCopy") {
		gradients.Register(func(c *gradients.Call) []gradients.Grad { return []gradients.Grad{c.Grad(0)} }, "DeepCopy")
	}
	s := op.NewScope()
	x := op.Const(s, float32(3))
	dx := gradients.Compute(s, []op.Output{op.Square(s, op.DeepCopy(s, x))}, []op.Output{x})[0].Dense
	fmt.Println(run(s, nil, dx)[0].Go())
	// Output: 6
}

// The gradient of a table is sparse for gathered rows.
func ExampleIndexedSlices() {
	s := op.NewScope()
	table := op.Const(s, [][]float32{{1, 2}, {3, 4}, {5, 6}})
	rows := op.Gather(s, table, op.Const(s, []int32{2, 0, 2}))
	g := gradients.Compute(s, []op.Output{op.Square(s, rows)}, []op.Output{table})[0]
	values := run(s, nil, g.Slices.Indices, g.Slices.Values, gradients.Densify(s, g))
	for i := range values {
		fmt.Println(values[i].Go())
	}
	// Output:
	// [2 0 2]
	// [[10 12] [2 4] [10 12]]
	// [[2 4] [0 0] [20 24]]
}

// Compare a gradient with finite differences.
func ExampleCheck() {
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float64)
	y := op.Sin(s, op.Square(s, x))
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	step := func(ctx context.Context, feeds map[op.Output]tensor.Tensor, fetches []op.Output) ([]tensor.Tensor, error) {
		return sess.Run(ctx, feeds, fetches, nil)
	}
	at := map[op.Output]tensor.Tensor{x: tensor.Vector(0.5, 1.5)}
	worst, err := gradients.Check(context.Background(), step, s, []op.Output{y}, []op.Output{x}, at)
	fmt.Println(worst < 1e-6, err)
	// Output: true <nil>
}
