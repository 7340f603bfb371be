package gradients_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

type (
	outs  = []op.Output
	scope = op.Scope
)

// times adds a loop of n iterations. body receives the number of the iteration and the variables.
func times(s *scope, n op.Output, vars outs, body func(s *scope, i op.Output, v outs) outs, opts ...op.LoopOption) outs {
	all := op.WhileLoop(s, append(outs{op.Const(s, int32(0))}, vars...),
		func(s *scope, v outs) op.Output { return op.Less(s, v[0], n) },
		func(s *scope, v outs) outs {
			return append(outs{op.AddV2(s, v[0], op.Const(s, int32(1)))}, body(s, v[0], v[1:])...)
		}, opts...)
	return all[min(1, len(all)):]
}

// positive reports whether the sum of the elements is above zero.
func positive(s *scope, x op.Output) op.Output {
	return op.Greater(s, op.Sum(s, x, ints(s, 0)), op.Const(s, 0.0))
}

func TestConditions(t *testing.T) {
	pick := func(s *scope, x outs) op.Output { // x[0]*x[1] where x[0] is positive, else exp(x[0])
		return op.Cond(s, positive(s, x[0]),
			func(s *scope) outs { return outs{op.Mul(s, x[0], x[1])} },
			func(s *scope) outs { return outs{op.Exp(s, x[0])} })[0]
	}
	up, down := in(3).within(0.2, 1), in(3).within(-1, -0.2)
	checkRules(t, []ruleCase{
		{"Merge/then", []input{up, in(3)}, all(pick)},
		{"Switch/otherwise", []input{down, in(3)}, all(pick)},
		{"Switch/both sides and around", []input{up, in(3)}, all(func(s *scope, x outs) op.Output {
			return op.AddV2(s, pick(s, x), op.Mul(s, op.Square(s, x[1]), pick(s, outs{op.Neg(s, x[0]), x[1]})))
		})},
		{"Switch/captured as result", []input{down, up}, all(func(s *scope, x outs) op.Output {
			return op.Cond(s, positive(s, x[0]), func(*scope) outs { return outs{x[0]} }, func(*scope) outs { return outs{x[1]} })[0]
		})},
		{"Switch/nested", []input{up, in(3).within(-1, -0.2)}, all(func(s *scope, x outs) op.Output {
			return op.Cond(s, positive(s, x[0]), func(s *scope) outs {
				y := op.Sin(s, x[0])
				return op.Cond(s, positive(s, x[1]), func(s *scope) outs { return outs{op.Mul(s, y, x[1])} },
					func(s *scope) outs { return outs{op.Mul(s, op.Square(s, y), x[1])} })
			}, func(*scope) outs { return outs{x[1]} })[0]
		})},
		{"Switch/rows", []input{in(4, 2)}, all(func(s *scope, x outs) op.Output {
			return op.Cond(s, op.Const(s, true), func(s *scope) outs { return outs{op.Square(s, op.Gather(s, x[0], ints(s, 1, 3)))} },
				func(s *scope) outs { return outs{op.Gather(s, x[0], ints(s, 0, 0))} })[0]
		})},
	})
}

func TestLoops(t *testing.T) {
	three := func(s *scope) op.Output { return op.Const(s, int32(3)) }
	checkRules(t, []ruleCase{
		{"while/power", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			return times(s, three(s), outs{op.OnesLike(s, x)}, func(s *scope, _ op.Output, v outs) outs { return outs{op.Mul(s, v[0], x)} })[0]
		})},
		{"while/no iterations", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			return times(s, op.Const(s, int32(0)), outs{x}, func(s *scope, _ op.Output, v outs) outs { return outs{op.Mul(s, v[0], x)} })[0]
		})},
		{"while/recurrent", []input{in(2, 3), in(3, 3), in(3)}, func(s *scope, x []op.Output) []op.Output {
			return times(s, three(s), outs{x[0], op.ZerosLike(s, x[0])}, func(s *scope, _ op.Output, v outs) outs {
				h := op.Tanh(s, op.BiasAdd(s, op.MatMul(s, v[0], x[1]), x[2]))
				return outs{h, op.AddV2(s, v[1], op.Mul(s, h, v[0]))}
			})
		}},
		{"while/second result only", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			return times(s, three(s), outs{x, x}, func(s *scope, _ op.Output, v outs) outs {
				return outs{op.Sin(s, v[0]), op.Mul(s, v[1], v[0])}
			})[1]
		})},
		{"while/variables that stay and change places", []input{in(3), in(3)}, func(s *scope, x []op.Output) []op.Output {
			return times(s, three(s), outs{x[0], x[1], x[0]}, func(s *scope, _ op.Output, v outs) outs {
				return outs{v[1], op.Mul(s, v[0], v[2]), v[2]}
			})
		}},
		{"while/constant next value", []input{in(3), in(3)}, func(s *scope, x []op.Output) []op.Output {
			return times(s, three(s), outs{x[0], x[0]}, func(s *scope, _ op.Output, v outs) outs { return outs{x[1], op.Exp(s, v[0])} })
		}},
		{"while/nested", []input{in(3), in(3)}, func(s *scope, x []op.Output) []op.Output {
			return times(s, three(s), outs{x[0]}, func(s *scope, i op.Output, v outs) outs {
				w := op.Sin(s, v[0])
				inner := times(s, i, outs{v[0]}, func(s *scope, _ op.Output, u outs) outs {
					return outs{op.AddV2(s, op.Mul(s, u[0], w), op.Cos(s, op.Mul(s, u[0], x[1])))}
				})
				return outs{op.Mul(s, inner[0], w)}
			})
		}},
		{"while/condition inside", []input{in(3), in(3)}, func(s *scope, x []op.Output) []op.Output {
			return times(s, op.Const(s, int32(4)), outs{x[0]}, func(s *scope, i op.Output, v outs) outs {
				even := op.Equal(s, op.FloorMod(s, i, op.Const(s, int32(2))), op.Const(s, int32(0)))
				return op.Cond(s, even, func(s *scope) outs { return outs{op.Mul(s, op.Sin(s, v[0]), x[1])} },
					func(s *scope) outs { return outs{op.Square(s, op.AddV2(s, v[0], x[0]))} })
			})
		}},
		{"while/inside of a condition inside of a loop", []input{in(3), in(3)}, func(s *scope, x []op.Output) []op.Output {
			return times(s, op.Const(s, int32(4)), outs{x[0]}, func(s *scope, i op.Output, v outs) outs {
				return op.Cond(s, op.Greater(s, i, op.Const(s, int32(1))), func(s *scope) outs {
					return times(s, i, outs{v[0]}, func(s *scope, _ op.Output, u outs) outs { return outs{op.Mul(s, op.Cos(s, u[0]), x[1])} })
				}, func(s *scope) outs { return outs{op.Sin(s, v[0])} })
			})
		}},
		{"while/inside of a condition", []input{in(3).within(0.2, 1), in(3)}, func(s *scope, x []op.Output) []op.Output {
			loop := func(s *scope) outs {
				return times(s, three(s), outs{x[0]}, func(s *scope, _ op.Output, u outs) outs { return outs{op.Mul(s, op.Cos(s, u[0]), x[1])} })
			}
			same := func(s *scope) outs { return outs{op.Identity(s, x[1])} }
			return append(op.Cond(s, positive(s, x[0]), loop, same), op.Cond(s, positive(s, op.Neg(s, x[0])), loop, same)...)
		}},
		{"while/rows", []input{in(4, 2)}, one(func(s *scope, x op.Output) op.Output {
			return times(s, three(s), outs{op.Const(s, []float64{1, 2})}, func(s *scope, i op.Output, v outs) outs {
				return outs{op.Mul(s, v[0], op.Gather(s, x, i))}
			})[0]
		})},
		{"while/shape changes", []input{in(2)}, one(func(s *scope, x op.Output) op.Output {
			return times(s, three(s), outs{x}, func(s *scope, _ op.Output, v outs) outs {
				return outs{op.ConcatV2(s, outs{op.Square(s, v[0]), x}, op.Const(s, int32(0)))}
			}, op.ShapeInvariants(tensor.MakePartial(), tensor.MakePartial(-1)))[0]
		})},
		{"while/two in a row", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			twice := func(x op.Output) op.Output {
				return times(s, three(s), outs{x}, func(s *scope, _ op.Output, v outs) outs { return outs{op.Sin(s, v[0])} })[0]
			}
			return op.Mul(s, twice(twice(x)), x)
		})},
	})
}

// TestReferencesInControlFlow differentiates by references to variables and by handles that loops
// and conditions use.
func TestReferencesInControlFlow(t *testing.T) {
	markChecked("RefSwitch", "RefMerge")
	s := op.NewScope()
	ref := op.VariableV2(s, tensor.MakePartial(), tensor.Float64)
	handle := op.VarHandleOp(s, tensor.Float64, tensor.MakePartial(2))
	init := []*graph.Node{op.Assign(s, ref, op.Const(s, 3.0)).Node, op.AssignVariableOp(s, handle, op.Const(s, []float64{1, 2}))}
	y := op.Cond(s, op.Const(s, true), func(s *scope) outs { return outs{op.Square(s, ref)} }, func(s *scope) outs { return outs{ref} })[0]
	z := times(s, op.Const(s, int32(2)), outs{op.Const(s, 1.0)}, func(s *scope, _ op.Output, v outs) outs {
		read := op.ReadVariableOp(s, handle, tensor.Float64)
		row := op.ResourceGather(s, handle, op.Const(s, int32(1)), tensor.Float64)
		return outs{op.Mul(s, v[0], op.Mul(s, op.Sum(s, read, ints(s, 0)), op.AddV2(s, row, ref)))}
	})[0]
	merged := op.Cond(s, op.Const(s, false), func(s *scope) outs { return outs{op.ReadVariableOp(s, handle, tensor.Float64)} },
		func(*scope) outs { return outs{op.Const(s, []float64{0, 0})} })[0]
	f := s.Add("RefSwitch", []op.Arg{op.One(ref), op.One(op.Const(s, true))}, nil)
	tr := s.Add("RefMerge", []op.Arg{op.Many(outs{f.Out(0), f.Out(1)})}, nil).Out(0)
	grads := gradients.Compute(s, outs{y, z, merged, op.Square(s, tr)}, outs{ref, handle})
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if _, err := sess.Run(t.Context(), nil, nil, init); err != nil {
		t.Fatal(err)
	}
	out, err := sess.Run(t.Context(), nil, outs{grads[0].Dense, gradients.Densify(s, grads[1])}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// y = r², z = ((h0+h1)(h1+r))² with r = 3, h = (1, 2), and r² again
	if got, want := []any{out[0].Go(), out[1].Go()}, []any{6.0 + 90 + 6, []float64{150, 150 + 90}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestImportedLoops differentiates a graph in text form, whose loops must be found from its nodes.
func TestImportedLoops(t *testing.T) {
	checkRules(t, []ruleCase{{"while/imported", []input{in(3), in(3)}, func(s *scope, x []op.Output) []op.Output {
		made := op.NewScope()
		a, b := op.Placeholder(made.Named("a"), tensor.Float64), op.Placeholder(made.Named("b"), tensor.Float64)
		y := times(made, op.Const(made, int32(3)), outs{a}, func(s *scope, i op.Output, v outs) outs {
			return op.Cond(s, op.Less(s, i, op.Const(s, int32(2))), func(s *scope) outs { return outs{op.Mul(s, op.Sin(s, v[0]), b)} },
				func(s *scope) outs { return outs{op.Square(s, v[0])} })
		})[0]
		g, err := made.Finalize()
		if err != nil {
			t.Fatal(err)
		}
		nodes := s.SubScope("imported").Import(g.Def(), op.ImportOptions{Inputs: map[string]op.Output{"a": x[0], "b": x[1]}})
		return outs{nodes[y.Node.Name].Out(0)}
	}}})
}

// TestLoopsTwice checks that a second derivative is correct or an error, never incomplete.
func TestLoopsTwice(t *testing.T) {
	s := op.NewScope()
	x := op.Const(s, 0.5)
	three := op.Const(s, int32(3))
	y := times(s, three, outs{x}, func(s *scope, _ op.Output, v outs) outs { return outs{op.Sin(s, v[0])} })
	gradients.Compute(s, outs{gradients.Compute(s, y, outs{x})[0].Dense}, outs{x})
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "Second-order gradient for while loops not supported.") {
		t.Errorf("got %v, want the error of second derivatives through loops", err)
	}
	checkRules(t, []ruleCase{
		{"Switch/twice", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			y := op.Cond(s, op.Const(s, true), func(s *scope) outs { return outs{op.Sin(s, op.Square(s, x))} },
				func(s *scope) outs { return outs{x} })
			return gradients.Compute(s, y, outs{x})[0].Dense
		})},
		// a loop over constants
		{"while/twice beside", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			scaled := func(x op.Output) op.Output {
				return times(s, op.Const(s, int32(3)), outs{x}, func(s *scope, i op.Output, v outs) outs {
					return outs{op.Mul(s, v[0], op.Cast(s, op.AddV2(s, i, op.Const(s, int32(1))), tensor.Float64))}
				})[0]
			}
			first := gradients.Compute(s, outs{scaled(op.Sin(s, x))}, outs{x})[0].Dense
			return op.Mul(s, first, x)
		})},
	})
}
