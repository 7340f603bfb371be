package gradients

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Sums and other reductions, complete and cumulative.
func init() {
	Register(func(c *Call) []Grad {
		grads := c.None()
		for i := range grads {
			grads[i] = c.Grad(0)
		}
		return grads
	}, "AddN", "AccumulateNV2")
	Register(sumGrad, "Sum")
	Register(meanGrad, "Mean")
	Register(extremeReduction, "Max", "Min")
	Register(prodGrad, "Prod")
	Register(func(c *Call) []Grad {
		s, shape := c.S, reducedShape(c)
		y, dy := op.Reshape(s, c.Out(0), shape), op.Reshape(s, c.DY(0), shape)
		return c.first(op.RealDiv(s, c.In(0), op.RealDiv(s, y, dy)))
	}, "EuclideanNorm")
	Register(func(c *Call) []Grad {
		return List(op.Cumsum(c.S, c.DY(0), c.In(1), cumulative(c, op.CumsumExclusive, op.CumsumReverse)...), op.Output{})
	}, "Cumsum")
	Register(func(c *Call) []Grad {
		s := c.S
		sum := op.Cumsum(s, op.Mul(s, c.Out(0), c.DY(0)), c.In(1), cumulative(c, op.CumsumExclusive, op.CumsumReverse)...)
		return c.first(op.DivNoNan(s, sum, c.In(0)))
	}, "Cumprod")
	Register(cumulativeLogsumexp, "CumulativeLogsumexp")
	Register(nthElement, "NthElement")
}

// cumulative returns the attributes of a cumulative operation in the opposite direction.
func cumulative[A any](c *Call, exclusive, reverse func(bool) A) []A {
	return []A{exclusive(c.Node.Attrs.Bool("exclusive")), reverse(!c.Node.Attrs.Bool("reverse"))}
}

// cumulativeLogsumexp sums logarithms, separately for positive and negative gradients, so that
// large inputs do not overflow.
func cumulativeLogsumexp(c *Call) []Grad {
	s, x, y, dy := c.S, c.In(0), c.Out(0), c.DY(0)
	lowest := number(s, dy, lowestOf(dy.DType()))
	part := func(positive bool) op.Output {
		d := dy
		if !positive {
			d = op.Neg(s, dy)
		}
		logs := op.SelectV2(s, op.Greater(s, d, number(s, d, 0)), op.Log(s, d), lowest)
		opts := cumulative(c, op.CumulativeLogsumexpExclusive, op.CumulativeLogsumexpReverse)
		return op.Exp(s, op.AddV2(s, op.CumulativeLogsumexp(s, op.Sub(s, logs, y), c.In(1), opts...), x))
	}
	return c.first(op.Sub(s, part(true), part(false)))
}

// lowestOf returns the smallest finite value of a floating-point type.
func lowestOf(t tensor.DType) float64 {
	switch t.Base() {
	case tensor.Float64:
		return -math.MaxFloat64
	case tensor.Float16:
		return -65504
	default:
		return -math.MaxFloat32
	}
}

// reducedShape returns the shape of the input with ones in the reduced dimensions.
func reducedShape(c *Call) op.Output {
	s := c.S
	shape := op.Shape(s, c.In(0))
	axes := op.Cast(s, c.In(1), tensor.Int32)
	rank := op.Size(s, shape)
	axes = op.FloorMod(s, op.AddV2(s, axes, rank), rank)
	zero, one := op.Const(s, int32(0)), op.Const(s, int32(1))
	return op.DynamicStitch(s, []op.Output{op.Range(s, zero, rank, one), axes},
		[]op.Output{shape, op.Fill(s, op.Shape(s, axes), one)})
}

func sumGrad(c *Call) []Grad {
	s := c.S
	dy := op.Reshape(s, c.DY(0), reducedShape(c))
	return List(op.BroadcastTo(s, dy, op.Shape(s, c.In(0))), op.Output{})
}

func meanGrad(c *Call) []Grad {
	s := c.S
	sum := sumGrad(c)[0].Dense
	elements := func(o op.Output) op.Output { return op.Size(s, o) }
	factor := op.FloorDiv(s, elements(c.In(0)), op.Maximum(s, elements(c.Out(0)), op.Const(s, int32(1))))
	return List(op.RealDiv(s, sum, op.Cast(s, factor, sum.DType())), op.Output{})
}

// prodGrad multiplies the products of the elements before and after each element, because division
// would fail at zeros. It moves the reduced dimensions to the front and flattens them.
func prodGrad(c *Call) []Grad {
	s, x := c.S, c.In(0)
	zero, one := op.Const(s, int32(0)), op.Const(s, int32(1))
	inShape, rank := op.Shape(s, x), op.Rank(s, x)
	dy := op.BroadcastTo(s, op.Reshape(s, c.DY(0), reducedShape(c)), inShape)
	reduced := op.FloorMod(s, op.Cast(s, op.Reshape(s, c.In(1), op.Const(s, []int32{-1})), tensor.Int32), rank)
	others, _ := op.ListDiff(s, op.Range(s, zero, rank, one), reduced)
	perm := op.ConcatV2(s, []op.Output{reduced, others}, zero)
	size := func(dims op.Output) op.Output { return op.Prod(s, op.Gather(s, inShape, dims), zero) }
	moved := op.Transpose(s, x, perm)
	rows := op.Reshape(s, moved, op.Pack(s, []op.Output{size(reduced), size(others)}))
	before := op.Cumprod(s, rows, zero, op.CumprodExclusive(true))
	after := op.Cumprod(s, rows, zero, op.CumprodExclusive(true), op.CumprodReverse(true))
	rest := op.Reshape(s, op.Mul(s, conj(s, before), conj(s, after)), op.Shape(s, moved))
	return c.first(op.Reshape(s, op.Mul(s, dy, op.Transpose(s, rest, op.InvertPermutation(s, perm))), inShape))
}

// nthElement distributes the gradient over the elements that are equal to the result.
func nthElement(c *Call) []Grad {
	s := c.S
	found := op.Cast(s, op.Equal(s, lastDim(s, c.Out(0)), c.In(0)), c.DY(0).DType())
	count := op.Sum(s, found, op.Const(s, []int32{-1}), op.SumKeepDims(true))
	return c.first(op.Mul(s, op.RealDiv(s, found, count), lastDim(s, c.DY(0))))
}

// extremeReduction distributes the gradient over the elements that are equal to the extreme.
func extremeReduction(c *Call) []Grad {
	s := c.S
	shape := reducedShape(c)
	y, dy := op.Reshape(s, c.Out(0), shape), op.Reshape(s, c.DY(0), shape)
	mask := op.Cast(s, op.Equal(s, y, c.In(0)), dy.DType())
	count := op.Reshape(s, op.Sum(s, mask, c.In(1)), shape)
	return List(op.Mul(s, op.RealDiv(s, mask, count), dy), op.Output{})
}
