package weft_test

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
)

// A program that multiplies on one task of a cluster what it adds on another.
func Example() {
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	sum := op.AddV2(s.WithDevice("/job:ps/task:0"), x, op.Const(s, float32(1)))
	y := op.Mul(s.WithDevice("/job:ps/task:1"), sum, sum)
	g, err := s.Finalize()
	if err != nil {
		panic(err)
	}

	sess, err := weft.NewSession("grpc://localhost:2222", g)
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	feeds := map[graph.Output]tensor.Tensor{x: tensor.Vector[float32](1, 2)}
	out, err := sess.Run(context.Background(), feeds, []graph.Output{y}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(out[0].Go()) // [4 9]
}

// A program that serves what was trained. To run the model in this process it would import
// github.com/weft-ml/weft/local and load it on "local".
func ExampleLoadSavedModel() {
	ctx := context.Background()
	m, err := weft.LoadSavedModel(ctx, "grpc://localhost:2222", "/models/digits", nil)
	if err != nil {
		panic(err)
	}
	defer m.Close()
	digits, err := m.Signature(savedmodel.DefaultSignature)
	if err != nil {
		panic(err)
	}
	out, err := digits.Run(ctx, map[string]any{"images": [][]float32{{0, 0.5, 1}}})
	if err != nil {
		panic(err)
	}
	fmt.Println(out["probabilities"])
}

// One file for a model that does not learn any more.
func ExampleFreezeSavedModel() {
	frozen, err := weft.FreezeSavedModel(context.Background(), "grpc://localhost:2222", "/models/digits", nil, []string{"probabilities"})
	if err != nil {
		panic(err)
	}
	if err := savedmodel.WriteGraph("digits.pb", frozen); err != nil {
		panic(err)
	}
}
