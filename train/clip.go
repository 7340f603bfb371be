package train

import (
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
)

// ClipByValue limits the elements of gradients to the range from low to high.
func ClipByValue(s *op.Scope, grads []GradientVariable, low, high float64) []GradientVariable {
	s, _ = s.Composite("clip_by_value")
	return mapGradients(grads, func(g op.Output) op.Output {
		return op.ClipByValue(s, g, op.ConstOf(s, g.DType(), low), op.ConstOf(s, g.DType(), high))
	})
}

// ClipByNorm scales each gradient whose norm is above the limit down to it. The norm of a sparse
// gradient is taken of its rows as they are, without adding up those that are named more than once.
func ClipByNorm(s *op.Scope, grads []GradientVariable, limit float64) []GradientVariable {
	s, _ = s.Composite("clip_by_norm")
	return mapGradients(grads, func(g op.Output) op.Output {
		most := op.ConstOf(s, g.DType(), max(limit, 0))
		square := op.Sum(s, op.Mul(s, g, g), allAxes(s, g), op.SumKeepDims(true))
		positive := op.Greater(s, square, op.ConstOf(s, g.DType(), 0))
		// The root of one in the place of that of zero keeps gradients of norms finite.
		root := op.Sqrt(s, op.SelectV2(s, positive, square, op.OnesLike(s, square)))
		norm := op.SelectV2(s, positive, root, square)
		return op.RealDiv(s, op.Mul(s, g, most), op.Maximum(s, norm, most))
	})
}

// ClipByAverageNorm scales each gradient whose norm is above the limit for each of its elements
// down to it, so that larger gradients may have larger norms.
func ClipByAverageNorm(s *op.Scope, grads []GradientVariable, limit float64) []GradientVariable {
	s, _ = s.Composite("clip_by_average_norm")
	return mapGradients(grads, func(g op.Output) op.Output {
		elements := castTo(s, op.Size(s, g), g.DType())
		inverse := op.Mul(s, op.Rsqrt(s, op.Sum(s, op.Mul(s, g, g), allAxes(s, g))), elements)
		most := op.ConstOf(s, g.DType(), limit)
		factor := op.Minimum(s, inverse, op.RealDiv(s, op.ConstOf(s, g.DType(), 1), most))
		return op.Mul(s, op.Mul(s, g, most), factor)
	})
}

// ClipByGlobalNorm scales all gradients by the same factor if the norm of all of them together is
// above the limit, down to it (Pascanu et al., 2012). It returns that norm too. A norm that is not
// finite makes all gradients NaN.
func ClipByGlobalNorm(s *op.Scope, grads []GradientVariable, limit float64) (clipped []GradientVariable, norm op.Output) {
	s, _ = s.Composite("clip_by_global_norm")
	norm = GlobalNorm(s, grads)
	if norm.Node == nil {
		return grads, norm
	}
	t := norm.DType()
	one, most := op.ConstOf(s, t, 1), op.ConstOf(s, t, limit)
	scale := op.Mul(s, most, op.Minimum(s, op.RealDiv(s, one, norm), op.RealDiv(s, one, most)))
	// Infinity minus infinity is not a number, and neither is what it is added to.
	scale = op.AddV2(s, scale, op.Sub(s, norm, norm))
	return mapGradients(grads, func(g op.Output) op.Output { return op.Mul(s, g, castTo(s, scale, g.DType())) }), norm
}

// GlobalNorm returns the root of the sum of the squares of all elements of gradients, a scalar; the
// zero Output if there are none.
func GlobalNorm(s *op.Scope, grads []GradientVariable) op.Output {
	s, result := s.Composite("global_norm")
	var halves []op.Output
	for _, g := range grads {
		g.Grad.Map(func(v op.Output) op.Output {
			halves = append(halves, castTo(s, op.L2Loss(s.ColocateWith(v.Node), v), grads[0].Var.DType))
			return v
		})
	}
	if len(halves) == 0 {
		return op.Output{}
	}
	sum := op.Sum(s, op.Pack(s, halves), op.Const(s, []int32{0}))
	return op.Sqrt(result, op.Mul(s, sum, op.ConstOf(s, grads[0].Var.DType, 2)))
}

// mapGradients returns the gradients with f of their elements; the rows of a sparse one stay where
// they are.
func mapGradients(grads []GradientVariable, f func(op.Output) op.Output) []GradientVariable {
	out := make([]GradientVariable, len(grads))
	for i, g := range grads {
		out[i] = GradientVariable{g.Grad.Map(f), g.Var}
	}
	return out
}

// AverageGradients returns the means of the gradients that several copies of a model, its towers,
// have for the same variables. All towers must give their gradients in the same order. A variable
// without a gradient in some of the towers has none.
func AverageGradients(s *op.Scope, towers ...[]GradientVariable) []GradientVariable {
	if len(towers) == 0 {
		return nil
	}
	means := make([]GradientVariable, len(towers[0]))
	for i, first := range towers[0] {
		near := s.ColocateWith(first.Var.Handle.Node)
		var parts []gradients.Grad
		for _, tower := range towers {
			if !tower[i].Grad.IsNone() {
				parts = append(parts, tower[i].Grad)
			}
		}
		means[i].Var = first.Var
		if len(parts) == len(towers) {
			means[i].Grad = gradients.Sum(near, parts).Map(func(sum op.Output) op.Output {
				return op.RealDiv(near, sum, op.ConstOf(near, sum.DType(), float64(len(towers))))
			})
		}
	}
	return means
}

// allAxes returns the dimensions of x.
func allAxes(s *op.Scope, x op.Output) op.Output {
	return op.Range(s, op.Const(s, int32(0)), op.Rank(s, x), op.Const(s, int32(1)))
}
