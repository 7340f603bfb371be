package op_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// run executes the targets first in a step of their own, and returns the values of outputs in a
// second step.
func run(t *testing.T, s *op.Scope, feeds map[op.Output]tensor.Tensor, fetches []op.Output, first ...*graph.Node) []any {
	t.Helper()
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if len(first) > 0 {
		if _, err := sess.Run(t.Context(), nil, nil, first); err != nil {
			t.Fatal(err)
		}
	}
	out, err := sess.Run(t.Context(), feeds, fetches, nil)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]any, len(out))
	for i := range out {
		values[i] = out[i].Go()
	}
	return values
}

func withShapes() *op.Scope { return op.NewScope() }

func TestCond(t *testing.T) {
	s := withShapes()
	p := op.Placeholder(s.Named("p"), tensor.Bool, op.PlaceholderShape(tensor.MakePartial()))
	x := op.Const(s, float32(3))
	out := op.Cond(s, p,
		func(s *op.Scope) []op.Output {
			inner := op.Cond(s, op.Less(s, x, op.Const(s, float32(2))),
				func(s *op.Scope) []op.Output { return []op.Output{x} },
				func(s *op.Scope) []op.Output { return []op.Output{op.Square(s, x)} })
			return []op.Output{op.AddV2(s, inner[0], op.Const(s, float32(1))), op.Const(s, int32(1))}
		},
		func(s *op.Scope) []op.Output { return []op.Output{x, op.Const(s, int32(2))} })
	for pred, want := range map[bool][]any{true: {float32(10), int32(1)}, false: {float32(3), int32(2)}} {
		if got := run(t, s, map[op.Output]tensor.Tensor{p: tensor.Scalar(pred)}, out); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %v, want %v", pred, got, want)
		}
	}
	if out[0].Node.Name != "cond/Merge" {
		t.Errorf("the result is %s", out[0].Node.Name)
	}
}

// TestCondRunsOneBranch adds a different number to a variable in each branch.
func TestCondRunsOneBranch(t *testing.T) {
	s := withShapes()
	v := op.VarHandleOp(s, tensor.Int32, tensor.MakePartial())
	init := op.AssignVariableOp(s, v, op.Const(s, int32(0)))
	add := func(n int32) func(*op.Scope) []op.Output {
		return func(s *op.Scope) []op.Output {
			done := op.AssignAddVariableOp(s, v, op.Const(s, n))
			return []op.Output{op.ReadVariableOp(s.WithControlDependencies(done), v, tensor.Int32)}
		}
	}
	got := run(t, s, nil, op.Cond(s, op.Const(s, false), add(1), add(10)), init)
	if !reflect.DeepEqual(got, []any{int32(10)}) {
		t.Errorf("got %v, want 10", got)
	}
}

func TestWhileLoop(t *testing.T) {
	s := withShapes()
	n := op.Placeholder(s, tensor.Int32, op.PlaceholderShape(tensor.MakePartial()))
	step := op.Const(s, float32(2))
	out := op.WhileLoop(s, []op.Output{op.Const(s, int32(0)), op.Const(s, float32(1))},
		func(s *op.Scope, v []op.Output) op.Output { return op.Less(s, v[0], n) },
		func(s *op.Scope, v []op.Output) []op.Output {
			inner := op.WhileLoop(s, []op.Output{op.Const(s, int32(0)), v[1]},
				func(s *op.Scope, w []op.Output) op.Output { return op.Less(s, w[0], v[0]) },
				func(s *op.Scope, w []op.Output) []op.Output {
					return []op.Output{op.AddV2(s, w[0], op.Const(s, int32(1))), op.AddV2(s, w[1], op.Const(s, float32(1)))}
				}, op.ParallelIterations(1))
			return []op.Output{op.AddV2(s, v[0], op.Const(s, int32(1))), op.Mul(s, inner[1], step)}
		})
	// 1 → (1+0)*2=2 → (2+1)*2=6 → (6+2)*2=16
	got := run(t, s, map[op.Output]tensor.Tensor{n: tensor.Scalar(int32(3))}, out)
	if want := []any{int32(3), float32(16)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := run(t, s, map[op.Output]tensor.Tensor{n: tensor.Scalar(int32(0))}, out); !reflect.DeepEqual(got, []any{int32(0), float32(1)}) {
		t.Errorf("with no iterations got %v", got)
	}
	if got := out[1].Node.Name; got != "while/Exit_1" {
		t.Errorf("the result is %s", got)
	}
}

func TestWhileLoopOptions(t *testing.T) {
	s := withShapes()
	always := func(s *op.Scope, _ []op.Output) op.Output { return op.Const(s, true) }
	out := op.WhileLoop(s, []op.Output{op.Const(s, []float32{1})}, always,
		func(s *op.Scope, v []op.Output) []op.Output {
			return []op.Output{op.ConcatV2(s, []op.Output{v[0], v[0]}, op.Const(s, int32(0)))}
		}, op.ShapeInvariants(tensor.MakePartial(-1)), op.MaximumIterations(op.Const(s, int32(2))))
	if got := run(t, s, nil, out); !reflect.DeepEqual(got, []any{[]float32{1, 1, 1, 1}}) {
		t.Errorf("got %v", got)
	}
	if len(out) != 1 || s.ShapeOf(out[0]).String() != "[?]" {
		t.Errorf("%d results, the first of shape %v", len(out), s.ShapeOf(out[0]))
	}
}

func TestFunctions(t *testing.T) {
	s := withShapes()
	k := op.Const(s, float32(10))
	f := op.NewFunction(s, "scaled", []tensor.DType{tensor.Float32}, func(s *op.Scope, x []op.Output) []op.Output {
		parts := op.Split(s, op.Const(s, int32(0)), x[0], 2)
		g := op.NewFunction(s, "scaled", []tensor.DType{tensor.Float32}, func(s *op.Scope, y []op.Output) []op.Output {
			return []op.Output{op.Mul(s, y[0], k)}
		})
		return []op.Output{op.Call(s, g, parts[1])[0], x[0]}
	})
	if f == nil || f.Name != "scaled_1" || f.Stateful || len(f.Captured) != 1 {
		t.Fatalf("the function is %+v, %v", f, s.Err())
	}
	got := run(t, s, nil, op.Call(s, f, op.Const(s, []float32{1, 2})))
	if want := []any{[]float32{20}, []float32{1, 2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFunctionEffects checks that a stateful node of a body is executed even if no result depends
// on it.
func TestFunctionEffects(t *testing.T) {
	s := withShapes()
	v := op.VarHandleOp(s, tensor.Int32, tensor.MakePartial())
	init := op.AssignVariableOp(s, v, op.Const(s, int32(1)))
	f := op.NewFunction(s, "count", nil, func(s *op.Scope, _ []op.Output) []op.Output {
		op.AssignAddVariableOp(s, v, op.Const(s, int32(4)))
		return []op.Output{op.Const(s, int32(0))}
	})
	call := op.Call(s, f)
	after := op.ReadVariableOp(s.WithControlDependencies(call[0].Node), v, tensor.Int32)
	if got := run(t, s, nil, []op.Output{after}, init); !reflect.DeepEqual(got, []any{int32(5)}) || !f.Stateful {
		t.Errorf("got %v, stateful %v", got, f.Stateful)
	}
}

func TestControlFlowBuildErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(s *op.Scope, one, two op.Output)
		want  string
	}{
		{"pred", func(s *op.Scope, one, _ op.Output) { op.Cond(s, one, nil, nil) }, "Cond: the condition one is of type int32, want bool"},
		{"results", func(s *op.Scope, one, _ op.Output) {
			op.Cond(s, op.Const(s, true), func(*op.Scope) []op.Output { return nil }, func(*op.Scope) []op.Output { return []op.Output{one} })
		}, "Cond: the branches have 0 and 1 results"},
		{"types", func(s *op.Scope, one, two op.Output) {
			op.Cond(s, op.Const(s, true), func(*op.Scope) []op.Output { return []op.Output{two} },
				func(*op.Scope) []op.Output { return []op.Output{one} })
		}, "Cond: result 0 is of type float32 in one branch and of type int32 in the other"},
		{"escape", func(s *op.Scope, one, _ op.Output) {
			var leak op.Output
			op.WhileLoop(s, []op.Output{one}, func(s *op.Scope, v []op.Output) op.Output { return op.Less(s, v[0], one) },
				func(s *op.Scope, v []op.Output) []op.Output { leak = op.Neg(s, v[0]); return []op.Output{leak} })
			op.Abs(s, leak)
		}, "Abs: Cannot use 'while/Neg' here because it is in a loop"},
		{"no variables", func(s *op.Scope, _, _ op.Output) { op.WhileLoop(s, nil, nil, nil) }, "WhileLoop: No loop variables provided"},
		{"next type", func(s *op.Scope, one, two op.Output) {
			op.WhileLoop(s, []op.Output{one}, func(s *op.Scope, _ []op.Output) op.Output { return op.Const(s, false) },
				func(*op.Scope, []op.Output) []op.Output { return []op.Output{two} })
		}, "variable 0 is of type int32, its next value of type float32"},
		{"shape", func(s *op.Scope, one, _ op.Output) {
			op.WhileLoop(s, []op.Output{one}, func(s *op.Scope, _ []op.Output) op.Output { return op.Const(s, false) },
				func(s *op.Scope, v []op.Output) []op.Output {
					return []op.Output{op.ExpandDims(s, v[0], op.Const(s, int32(0)))}
				})
		}, "Input tensor 'one' enters the loop with shape [], but has shape [1] after one iteration."},
		{"arguments", func(s *op.Scope, one, _ op.Output) {
			f := op.NewFunction(s, "f", []tensor.DType{tensor.Int32}, func(_ *op.Scope, x []op.Output) []op.Output { return x })
			op.Call(s, f)
		}, "function f takes 1 arguments, got 0"},
		{"in a body", func(s *op.Scope, one, two op.Output) {
			f := op.NewFunction(s, "f", nil, func(s *op.Scope, _ []op.Output) []op.Output {
				return []op.Output{op.AddV2(s, one, two)}
			})
			op.Call(s, f)
		}, "AddV2: "},
	} {
		s := withShapes()
		tt.build(s, op.Const(s.Named("one"), int32(1)), op.Const(s.Named("two"), float32(2)))
		err := s.Err()
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "control_test.go:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one build error of this file with %q", tt.name, err, tt.want)
		}
	}
}
