package gradients_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

var randomGraphs = flag.Int("graphs", 100, "number of random graphs to differentiate")

// TestRandomGraphs differentiates graphs of random operations, conditions, loops and functions.
func TestRandomGraphs(t *testing.T) {
	for seed := range *randomGraphs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := ruleCase{"random", []input{in(2, 3), in(2, 3), in(3)}, func(s *scope, x []op.Output) outs {
				g := grower{rand.New(rand.NewPCG(uint64(seed), 7))}
				values := outs{x[0], x[1], op.BroadcastTo(s, x[2], ints(s, 2, 3))}
				y := g.grow(s, values, 4)
				return outs{y, op.Tanh(s, op.AddV2(s, g.leaf(values), y))}
			}}
			if diff, _ := checkRule(t, c); !(diff < 1e-5) {
				t.Errorf("gradients and differences are %g apart", diff)
			}
		})
	}
}

// grower makes random graphs of values of shape [2,3], each within a few units of zero.
type grower struct{ r *rand.Rand }

func (g grower) leaf(values outs) op.Output { return values[g.r.IntN(len(values))] }

// grow adds nodes that depend on some of the values, nested at most as deep as depth says.
func (g grower) grow(s *scope, values outs, depth int) op.Output {
	if depth == 0 {
		return g.leaf(values)
	}
	sub := func() op.Output { return g.grow(s, values, depth-1-g.r.IntN(2)*min(1, depth-1)) }
	switch g.r.IntN(14) {
	case 0, 1:
		return g.unary(s, sub())
	case 2, 3, 4:
		return g.binary(s, sub(), sub())
	case 5:
		return g.throughOtherShapes(s, sub())
	case 6:
		return g.product(s, sub(), sub())
	case 7, 8:
		return g.cond(s, append(slices.Clip(values), sub()), depth)
	case 9, 10, 11:
		return g.loop(s, append(slices.Clip(values), sub()), depth)
	case 12:
		return g.call(s, append(slices.Clip(values), sub()), depth)
	default:
		return op.StopGradient(s, op.OnesLike(s, sub()))
	}
}

func (g grower) unary(s *scope, x op.Output) op.Output {
	fs := []func(*scope, op.Output) op.Output{op.Sin, op.Cos, op.Tanh, op.Sigmoid, op.Softplus, op.Neg, op.Erf, op.Atan, op.Identity,
		func(s *scope, x op.Output) op.Output { return op.Softmax(s, x) },
		func(s *scope, x op.Output) op.Output { return op.Cumsum(s, op.Tanh(s, x), op.Const(s, int32(1))) },
	}
	return fs[g.r.IntN(len(fs))](s, x)
}

func (g grower) binary(s *scope, x, y op.Output) op.Output {
	fs := []func(s *scope, x, y op.Output) op.Output{op.AddV2, op.Sub,
		func(s *scope, x, y op.Output) op.Output { return op.Mul(s, op.Tanh(s, x), y) },
		func(s *scope, x, y op.Output) op.Output {
			return op.RealDiv(s, op.Sin(s, x), op.AddV2(s, op.Square(s, y), op.Const(s, 1.5)))
		},
		func(s *scope, x, y op.Output) op.Output { return op.AddN(s, outs{x, y, x}) },
	}
	return fs[g.r.IntN(len(fs))](s, x, y)
}

// throughOtherShapes reduces, gathers, joins and cuts.
func (g grower) throughOtherShapes(s *scope, x op.Output) op.Output {
	axis := op.Const(s, int32(g.r.IntN(2)))
	switch g.r.IntN(6) {
	case 0:
		return op.Mul(s, op.Mean(s, x, axis, op.MeanKeepDims(true)), op.Sin(s, x))
	case 1:
		return op.Gather(s, op.Sin(s, x), ints(s, int32(g.r.IntN(2)), int32(g.r.IntN(2))))
	case 2:
		return op.GatherV2(s, x, ints(s, 2, int32(g.r.IntN(3)), 0), op.Const(s, int32(1)))
	case 3:
		return op.Slice(s, op.ConcatV2(s, outs{x, op.Cos(s, x)}, op.Const(s, int32(0))), ints(s, 1, 0), ints(s, 2, 3))
	case 4:
		return op.Pack(s, op.Unpack(s, op.Tanh(s, x), 2), op.PackAxis(0))
	default:
		return op.ReverseV2(s, op.Sub(s, x, op.Sum(s, op.Softmax(s, x), axis, op.SumKeepDims(true))), ints(s, 1))
	}
}

func (g grower) product(s *scope, x, y op.Output) op.Output {
	square := op.MatMul(s, op.Tanh(s, x), op.Tanh(s, y), op.MatMulTransposeB(true))
	return op.MatMul(s, op.Softmax(s, square), x)
}

func (g grower) cond(s *scope, values outs, depth int) op.Output {
	pred := op.Greater(s, op.Sum(s, op.OnesLike(s, values[0]), ints(s, 0, 1)), op.Const(s, float64(g.r.IntN(2)*10)))
	y := op.Cond(s, pred,
		func(s *scope) outs { return outs{g.grow(s, values, depth-1)} },
		func(s *scope) outs { return outs{g.grow(s, values, depth-1)} })
	if len(y) == 0 {
		return op.Output{}
	}
	return y[0]
}

// loop has up to three iterations, in which a value from around, one that stays and two that change
// are used.
func (g grower) loop(s *scope, values outs, depth int) op.Output {
	n := op.Const(s, int32(g.r.IntN(4)))
	// what functions return is of a shape that the graph does not know
	unknown := tensor.PartialShape{}
	start := outs{g.leaf(values), g.leaf(values), g.leaf(values)}
	last := times(s, n, start, func(s *scope, i op.Output, v outs) outs {
		inside := slices.Concat(values, v)
		if g.r.IntN(3) == 0 { // which also depends on the number of the iteration
			inside = append(inside, op.Mul(s, op.Tanh(s, v[0]), op.Cast(s, i, tensor.Float64)))
		}
		a := op.Tanh(s, g.grow(s, inside, depth-1))
		if g.r.IntN(2) == 0 {
			return outs{a, v[0], v[2]}
		}
		return outs{op.Mul(s, a, op.Sin(s, v[2])), op.AddV2(s, v[1], a), v[2]}
	}, op.ShapeInvariants(tensor.MakePartial(), unknown, unknown, unknown))
	if len(last) == 0 {
		return op.Output{}
	}
	return op.AddV2(s, last[g.r.IntN(3)], last[g.r.IntN(3)])
}

// call calls a function that also uses a value from around.
func (g grower) call(s *scope, values outs, depth int) op.Output {
	types := []tensor.DType{tensor.Float64, tensor.Float64}
	f := op.NewFunction(s, "f", types, func(s *scope, args []op.Output) []op.Output {
		return outs{g.grow(s, append(slices.Clip(args), values[0]), depth-1), op.Sin(s, args[0])}
	})
	y := op.Call(s, f, g.leaf(values), g.leaf(values))
	if len(y) == 0 {
		return op.Output{}
	}
	return y[g.r.IntN(len(y))]
}
