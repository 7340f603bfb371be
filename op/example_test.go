package op_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-ml/weft"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// value runs a graph in this process and returns the value of an output.
func value(s *op.Scope, o op.Output) any {
	g, err := s.Finalize()
	if err != nil {
		panic(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	values, err := sess.Run(context.Background(), nil, []op.Output{o}, nil)
	if err != nil {
		panic(err)
	}
	return values[0].Go()
}

func Example() {
	s := op.NewScope()
	layer := s.SubScope("layer")
	x := op.Const(s.Named("x"), [][]float32{{1, -2}})
	w := op.Const(layer.Named("w"), [][]float32{{3}, {1}})
	h := op.Relu(layer.Named("h"), op.MatMul(layer, x, w))
	fmt.Println(h, value(s, h))
	// Output:
	// layer/h [[1]]
}

// Compute the greatest common divisor with Euclid's algorithm.
func ExampleWhileLoop() {
	s := op.NewScope()
	zero := op.Const(s, int32(0))
	last := op.WhileLoop(s, []op.Output{op.Const(s, int32(12)), op.Const(s, int32(18))},
		func(s *op.Scope, v []op.Output) op.Output { return op.NotEqual(s, v[1], zero) },
		func(s *op.Scope, v []op.Output) []op.Output { return []op.Output{v[1], op.FloorMod(s, v[0], v[1])} })
	fmt.Println(value(s, last[0]))
	// Output: 6
}

func ExampleCond() {
	s := op.NewScope()
	x := op.Const(s, float32(-3))
	y := op.Cond(s, op.Less(s, x, op.Const(s, float32(0))),
		func(s *op.Scope) []op.Output { return []op.Output{op.Neg(s, x)} },
		func(*op.Scope) []op.Output { return []op.Output{x} })
	fmt.Println(value(s, y[0]))
	// Output: 3
}

// The function uses the value rate of the surrounding graph.
func ExampleNewFunction() {
	s := op.NewScope()
	rate := op.Const(s, float32(0.5))
	scaled := op.NewFunction(s, "scaled", []tensor.DType{tensor.Float32}, func(s *op.Scope, x []op.Output) []op.Output {
		return []op.Output{op.Mul(s, x[0], rate)}
	})
	once := op.Call(s, scaled, op.Const(s, float32(8)))
	fmt.Println(value(s, op.Call(s, scaled, once[0])[0]))
	// Output: 2
}

// A scope sets the prefix of names and the device of its nodes.
func ExampleScope() {
	s := op.NewScope()
	servers := s.WithDevice("/job:ps/task:0")
	for range 2 {
		layer := servers.SubScope("layer")
		w := op.VariableV2(layer.Named("w"), tensor.MakePartial(2, 2), tensor.Float32)
		fmt.Println(w.Node.Name, w.Node.Device)
	}
	// Output:
	// layer/w /job:ps/task:0
	// layer_1/w /job:ps/task:0
}

// Finalize returns all build errors, each with its file and line.
func ExampleScope_Finalize() {
	s := op.NewScope()
	x := op.Const(s, []float32{1, 2})
	sum := op.AddV2(s, x, op.Const(s, int32(1)))
	op.Exp(s, sum) // a consequence of the error above, which is not reported
	op.Cast(s.WithDevice("/nowhere"), x, tensor.Float64)
	_, err := s.Finalize()
	for line := range strings.Lines(err.Error()) {
		_, what, _ := strings.Cut(line, ": ")
		fmt.Println(what[:32])
	}
	// Output:
	// AddV2: Input 1 of node AddV2 was
	// Malformed device specification '
}

// Order the initialization, an update and a read of a variable.
func ExampleScope_WithControlDependencies() {
	s := op.NewScope()
	v := op.VarHandleOp(s, tensor.Float32, tensor.MakePartial())
	set := op.AssignVariableOp(s, v, op.Const(s, float32(3)))
	add := op.AssignAddVariableOp(s.WithControlDependencies(set), v, op.Const(s, float32(4)))
	fmt.Println(value(s, op.ReadVariableOp(s.WithControlDependencies(add), v, tensor.Float32)))
	// Output: 7
}
