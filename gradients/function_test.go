package gradients_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// define adds a function of float64 arguments.
func define(s *scope, name string, n int, body func(s *scope, x outs) outs) opdef.Func {
	args := make([]tensor.DType, n)
	for i := range args {
		args[i] = tensor.Float64
	}
	if f := op.NewFunction(s, name, args, body); f != nil {
		return f.Func()
	}
	return opdef.Func{}
}

func TestFunctions(t *testing.T) {
	f64 := func(n int) []tensor.DType {
		types := make([]tensor.DType, n)
		for i := range types {
			types[i] = tensor.Float64
		}
		return types
	}
	product := func(s *scope, x outs) outs { return outs{op.Mul(s, op.Sin(s, x[0]), x[1]), x[0]} }
	power := func(s *scope, x outs) outs { return outs{op.Exp(s, x[1]), op.Square(s, x[1])} }
	call := func(s *scope, x outs) outs {
		f := op.NewFunction(s, "product", f64(1), func(s *scope, y outs) outs { return product(s, outs{y[0], x[1]}) })
		return op.Call(s, f, x[0])
	}
	count := func(s *scope, x outs) outs {
		cond := op.NewFunction(s, "cond", f64(3), func(s *scope, v outs) outs { return outs{op.Less(s, v[0], op.Const(s, 3.0))} })
		body := define(s, "body", 3, func(s *scope, v outs) outs {
			return outs{op.AddV2(s, v[0], op.Const(s, 1.0)), op.Mul(s, op.Sin(s, v[1]), v[2]), v[2]}
		})
		return op.StatelessWhile(s, outs{op.Const(s, 0.0), x[0], x[1]}, cond.Func(), body)[1:2]
	}
	two := []input{in(3), in(3)}
	checkRules(t, []ruleCase{
		{"PartitionedCall", two, call},
		{"PartitionedCall/one result", two, func(s *scope, x []op.Output) []op.Output { return call(s, x)[:1] }},
		{"PartitionedCall/in a loop", two, func(s *scope, x []op.Output) []op.Output {
			return times(s, op.Const(s, int32(3)), outs{x[0]}, func(s *scope, _ op.Output, v outs) outs { return call(s, outs{v[0], x[1]})[:1] },
				op.ShapeInvariants(tensor.MakePartial(), tensor.PartialShape{}))
		}},
		{"PartitionedCall/of a loop", two, func(s *scope, x []op.Output) []op.Output {
			f := define(s, "looping", 2, func(s *scope, x outs) outs {
				return times(s, op.Const(s, int32(3)), outs{x[0]}, func(s *scope, _ op.Output, v outs) outs { return product(s, outs{v[0], x[1]})[:1] })
			})
			return op.PartitionedCall(s, x, f64(1), f)
		}},
		{"StatefulPartitionedCall", two, func(s *scope, x []op.Output) []op.Output {
			return op.StatefulPartitionedCall(s, x, f64(2), define(s, "f", 2, product))
		}},
		{"If", two, func(s *scope, x []op.Output) []op.Output {
			return op.If(s, op.Const(s, true), x, f64(2), define(s, "f", 2, product), define(s, "g", 2, power))
		}},
		{"StatelessIf", two, func(s *scope, x []op.Output) []op.Output {
			return op.StatelessIf(s, op.Const(s, false), x, f64(2), define(s, "f", 2, product), define(s, "g", 2, power))
		}},
		{"Case", two, func(s *scope, x []op.Output) []op.Output {
			return op.Case(s, op.Const(s, int32(1)), x, f64(2), []opdef.Func{define(s, "f", 2, product), define(s, "g", 2, power)})
		}},
		{"StatelessCase", two, func(s *scope, x []op.Output) []op.Output {
			return op.StatelessCase(s, op.Const(s, int32(0)), x, f64(2), []opdef.Func{define(s, "f", 2, product), define(s, "g", 2, power)})
		}},
		{"StatelessWhile", two, func(s *scope, x []op.Output) []op.Output { return count(s, x) }},
		{"While", []input{in(3).within(-1, -0.2), in(3).within(1.1, 1.5)}, func(s *scope, x []op.Output) []op.Output {
			cond := define(s, "cond", 2, func(s *scope, v outs) outs { return outs{positive(s, op.AddV2(s, v[0], op.Const(s, 2.0)))} })
			body := define(s, "body", 2, func(s *scope, v outs) outs { return outs{op.Sub(s, op.Mul(s, v[0], v[1]), op.Const(s, 1.0)), v[1]} })
			return op.While(s, x, cond, body)[:1]
		}},
		{"StatelessWhile/in a loop", two, func(s *scope, x []op.Output) []op.Output {
			return times(s, op.Const(s, int32(2)), outs{x[0]}, func(s *scope, _ op.Output, v outs) outs { return count(s, outs{v[0], x[1]}) },
				op.ShapeInvariants(tensor.MakePartial(), tensor.PartialShape{}))
		}},
	})
}

func TestFunctionsThatCannotRunAgain(t *testing.T) {
	s := op.NewScope()
	x := op.Const(s, 1.0)
	f := op.NewFunction(s, "noisy", []tensor.DType{tensor.Float64}, func(s *scope, x outs) outs {
		return outs{op.Mul(s, x[0], op.RandomUniform(s, op.Const(s, []int32{}), tensor.Float64))}
	})
	gradients.Compute(s, op.Call(s, f, x), outs{x})
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "the gradient of function 'noisy' would run 'RandomUniform' (op type: RandomUniform) a second time") {
		t.Errorf("got %v", err)
	}
}

// calls adds a function to a library that passes its argument to others one after another.
func calls(t *testing.T, s *scope, name, node string, others ...string) {
	t.Helper()
	arg, out := opdef.Arg{Name: "x", DType: tensor.Float64}, opdef.Arg{Name: "y", DType: tensor.Float64}
	def := graph.FunctionDef{Signature: opdef.Op{Name: name, Inputs: []opdef.Arg{arg}, Outputs: []opdef.Arg{out}}}
	types, last := []tensor.DType{tensor.Float64}, "x"
	for i, f := range others {
		n := graph.NodeDef{Name: fmt.Sprint("n", i), Op: node, Inputs: []string{last}}
		n.Attrs = opdef.Attrs{"Tin": types, "Tout": types, "f": opdef.Func{Name: f}}
		switch node {
		case "StatelessIf":
			def.Nodes = append(def.Nodes, graph.NodeDef{Name: "k", Op: "Less", Inputs: []string{"x", "x"}, Attrs: opdef.Attrs{"T": tensor.Float64}})
			n.Inputs = []string{"k:z:0", last}
			n.Attrs = opdef.Attrs{"Tcond": tensor.Bool, "Tin": types, "Tout": types, "then_branch": opdef.Func{Name: f}, "else_branch": opdef.Func{Name: f}}
		case "StatelessWhile":
			n.Attrs = opdef.Attrs{"T": types, "cond": opdef.Func{Name: "less"}, "body": opdef.Func{Name: f}}
		}
		def.Nodes, last = append(def.Nodes, n), n.Name+":output:0"
	}
	if len(others) == 0 {
		def.Nodes = []graph.NodeDef{{Name: "n", Op: "Square", Inputs: []string{"x"}, Attrs: opdef.Attrs{"T": tensor.Float64}}}
		last = "n:y:0"
	}
	def.Ret = map[string]string{"y": last}
	if err := s.Graph().Library.Add([]graph.FunctionDef{def}, nil, s.Graph().Ops()); err != nil {
		t.Fatal(err)
	}
}

// TestFunctionsThatCallThemselves has functions whose gradients would be nested without end.
func TestFunctionsThatCallThemselves(t *testing.T) {
	for _, node := range []string{"PartitionedCall", "StatefulPartitionedCall", "StatelessIf", "StatelessWhile"} {
		s := op.NewScope()
		x := op.Const(s, 1.0)
		define(s, "less", 1, func(s *scope, x outs) outs { return outs{op.Less(s, x[0], x[0])} })
		calls(t, s, "f", node, "g")
		calls(t, s, "g", node, "f")
		y := op.PartitionedCall(s, outs{x}, []tensor.DType{tensor.Float64}, opdef.Func{Name: "f"})
		gradients.Compute(s, y, outs{x})
		if err := s.Err(); status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "function 'f', which calls itself") {
			t.Errorf("%s: got %v", node, err)
		}
	}
}

// chain adds n functions and the last one. Each calls the next one the given number of times.
func chain(t *testing.T, s *scope, n, times int) {
	t.Helper()
	for i := range n {
		calls(t, s, fmt.Sprint("f", i), "PartitionedCall", slices.Repeat([]string{fmt.Sprint("f", i+1)}, times)...)
	}
	calls(t, s, fmt.Sprint("f", n), "")
}

func TestDeepFunctions(t *testing.T) {
	for n, want := range map[int]string{900: "", 1000: "nested more than 1000 deep, in function 'f1000'"} {
		s := op.NewScope()
		x := op.Const(s, 1.0)
		chain(t, s, n, 1)
		gradients.Compute(s, op.PartitionedCall(s, outs{x}, []tensor.DType{tensor.Float64}, opdef.Func{Name: "f0"}), outs{x})
		err := s.Err()
		if want == "" && err != nil || want != "" && (status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d levels: got %v, want %q", n, err, want)
		}
	}
}

// TestTreeOfFunctions differentiates 2³⁰ calls of 30 functions.
func TestTreeOfFunctions(t *testing.T) {
	s := op.NewScope()
	x := op.Const(s, 1.0)
	chain(t, s, 30, 2)
	before := s.Graph().Library.Len()
	gradients.Compute(s, op.PartitionedCall(s, outs{x}, []tensor.DType{tensor.Float64}, opdef.Func{Name: "f0"}), outs{x})
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if added := s.Graph().Library.Len() - before; added != 31 {
		t.Errorf("there are %d gradient functions, want 31", added)
	}
}

func TestManyNodes(t *testing.T) {
	defer gradients.SetMaxNodes(100)()
	s := op.NewScope()
	x := op.Const(s, 1.0)
	chain(t, s, 30, 2)
	gradients.Compute(s, op.PartitionedCall(s, outs{x}, []tensor.DType{tensor.Float64}, opdef.Func{Name: "f0"}), outs{x})
	if err := s.Err(); status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "more than 100 nodes, in function 'f") {
		t.Errorf("got %v", err)
	}
}
