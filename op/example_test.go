package op_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weft-ml/weft"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// show runs a graph in this process and prints the values of some outputs.
func show(s *op.Scope, outputs ...op.Output) {
	g, err := s.Finalize()
	if err != nil {
		log.Fatal(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		log.Fatal(err)
	}
	defer sess.Close()
	values, err := sess.Run(context.Background(), nil, outputs, nil)
	if err != nil {
		log.Fatal(err)
	}
	for i := range values {
		fmt.Println(values[i].Go())
	}
}

func Example() {
	s := op.NewScope()
	layer := s.SubScope("layer")
	x := op.Const(s.Named("x"), [][]float32{{1, -2}})
	w := op.Const(layer.Named("w"), [][]float32{{3}, {1}})
	h := op.Relu(layer.Named("h"), op.MatMul(layer, x, w))
	fmt.Println(h)
	show(s, h)
	// Output:
	// layer/h
	// [[1]]
}

// The greatest common divisor by Euclid's algorithm.
func ExampleWhileLoop() {
	s := op.NewScope()
	zero := op.Const(s, int32(0))
	last := op.WhileLoop(s, []op.Output{op.Const(s, int32(12)), op.Const(s, int32(18))},
		func(s *op.Scope, v []op.Output) op.Output { return op.NotEqual(s, v[1], zero) },
		func(s *op.Scope, v []op.Output) []op.Output { return []op.Output{v[1], op.FloorMod(s, v[0], v[1])} })
	show(s, last[0])
	// Output: 6
}

func ExampleCond() {
	s := op.NewScope()
	x := op.Const(s, float32(-3))
	y := op.Cond(s, op.Less(s, x, op.Const(s, float32(0))),
		func(s *op.Scope) []op.Output { return []op.Output{op.Neg(s, x)} },
		func(*op.Scope) []op.Output { return []op.Output{x} })
	show(s, y[0])
	// Output: 3
}

// A function that uses a value from around it.
func ExampleNewFunction() {
	s := op.NewScope()
	rate := op.Const(s, float32(0.5))
	scaled := op.NewFunction(s, "scaled", []tensor.DType{tensor.Float32}, func(s *op.Scope, x []op.Output) []op.Output {
		return []op.Output{op.Mul(s, x[0], rate)}
	})
	once := op.Call(s, scaled, op.Const(s, float32(8)))
	show(s, op.Call(s, scaled, once[0])[0])
	// Output: 2
}
