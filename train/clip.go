package train

import (
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
)

// ClipByValue clips the elements of gradients to the range [low, high].
func ClipByValue(s *op.Scope, grads []GradientVariable, low, high float64) []GradientVariable {
	s, _ = s.Composite("clip_by_value")
	return mapGradients(grads, func(g op.Output) op.Output {
		return op.ClipByValue(s, g, op.ConstOf(s, g.DType(), low), op.ConstOf(s, g.DType(), high))
	})
}

// ClipByNorm scales each gradient so that its L2 norm is at most limit. For the norm of a sparse
// gradient, rows with the same index are not added up.
func ClipByNorm(s *op.Scope, grads []GradientVariable, limit float64) []GradientVariable {
	s, _ = s.Composite("clip_by_norm")
	return mapGradients(grads, func(g op.Output) op.Output {
		most := op.ConstOf(s, g.DType(), max(limit, 0))
		square := op.Sum(s, op.Mul(s, g, g), allAxes(s, g), op.SumKeepDims(true))
		positive := op.Greater(s, square, op.ConstOf(s, g.DType(), 0))
		// The root of one instead of zero keeps the gradient of the norm finite.
		root := op.Sqrt(s, op.SelectV2(s, positive, square, op.OnesLike(s, square)))
		norm := op.SelectV2(s, positive, root, square)
		return op.RealDiv(s, op.Mul(s, g, most), op.Maximum(s, norm, most))
	})
}

// ClipByAverageNorm scales each gradient so that its L2 norm, divided by its number of elements, is
// at most limit.
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

// ClipByGlobalNorm scales all gradients by the same factor, so that their global norm is at most
// limit (Pascanu et al., 2012). It also returns the global norm before scaling (see [GlobalNorm]).
// If that is not finite, all gradients become NaN.
func ClipByGlobalNorm(s *op.Scope, grads []GradientVariable, limit float64) (clipped []GradientVariable, norm op.Output) {
	s, _ = s.Composite("clip_by_global_norm")
	norm = GlobalNorm(s, grads)
	if norm.Node == nil {
		return grads, norm
	}
	t := norm.DType()
	one, most := op.ConstOf(s, t, 1), op.ConstOf(s, t, limit)
	scale := op.Mul(s, most, op.Minimum(s, op.RealDiv(s, one, norm), op.RealDiv(s, one, most)))
	// If the norm is infinite, infinity minus infinity makes the scale NaN.
	scale = op.AddV2(s, scale, op.Sub(s, norm, norm))
	return mapGradients(grads, func(g op.Output) op.Output { return op.Mul(s, g, castTo(s, scale, g.DType())) }), norm
}

// GlobalNorm adds the L2 norm of all elements of all gradients, a scalar of the type of the first
// variable. It is the zero Output if there are no gradients.
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

// mapGradients applies f to the elements of the gradients. The indices of sparse gradients stay.
func mapGradients(grads []GradientVariable, f func(op.Output) op.Output) []GradientVariable {
	out := make([]GradientVariable, len(grads))
	for i, g := range grads {
		out[i] = GradientVariable{g.Grad.Map(f), g.Var}
	}
	return out
}

// AverageGradients returns the means of the gradients of several copies of a model (towers) that
// share their variables. All towers must list the variables in the same order. A variable without a
// gradient in one of the towers gets none.
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

// allAxes adds the indices of all dimensions of x.
func allAxes(s *op.Scope, x op.Output) op.Output {
	return op.Range(s, op.Const(s, int32(0)), op.Rank(s, x), op.Const(s, int32(1)))
}
