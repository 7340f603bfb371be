package gradients_test

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
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

// The derivative of x⁴, which a loop computes.
func Example() {
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32)
	y := op.WhileLoop(s, []op.Output{op.Const(s, int32(0)), x},
		func(s *op.Scope, v []op.Output) op.Output { return op.Less(s, v[0], op.Const(s, int32(2))) },
		func(s *op.Scope, v []op.Output) []op.Output {
			return []op.Output{op.AddV2(s, v[0], op.Const(s, int32(1))), op.Square(s, v[1])}
		})[1]
	dx := gradients.Add(s, []op.Output{y}, []op.Output{x})[0].Dense
	values := run(s, map[op.Output]tensor.Tensor{x: tensor.Scalar(float32(2))}, y, dx)
	fmt.Println(values[0].Go(), values[1].Go())
	// Output: 16 32
}

// Rows that were gathered from a table have a sparse gradient.
func ExampleIndexedSlices() {
	s := op.NewScope()
	table := op.Const(s, [][]float32{{1, 2}, {3, 4}, {5, 6}})
	rows := op.Gather(s, table, op.Const(s, []int32{2, 0, 2}))
	g := gradients.Add(s, []op.Output{op.Square(s, rows)}, []op.Output{table})[0]
	values := run(s, nil, g.Slices.Indices, g.Slices.Values, gradients.Densify(s, g))
	for i := range values {
		fmt.Println(values[i].Go())
	}
	// Output:
	// [2 0 2]
	// [[10 12] [2 4] [10 12]]
	// [[2 4] [0 0] [20 24]]
}

// Compare a gradient with differences.
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
