package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Sums and other reductions over segments of rows.
func init() {
	Register(func(c *Call) []Grad { return c.first(op.Gather(c.S, c.DY(0), c.In(1))) }, "SegmentSum")
	Register(func(c *Call) []Grad {
		s, ids := c.S, c.In(1)
		ones := op.Fill(s, rowShape(s, ids, c.In(0)), number(s, c.DY(0), 1))
		return c.first(op.Gather(s, op.RealDiv(s, c.DY(0), op.SegmentSum(s, ones, ids)), ids))
	}, "SegmentMean")
	Register(func(c *Call) []Grad {
		s, ids := c.S, c.In(1)
		selected := op.Equal(s, c.In(0), op.Gather(s, c.Out(0), ids))
		count := op.SegmentSum(s, op.Cast(s, selected, c.DY(0).DType()), ids)
		shared := op.Gather(s, op.RealDiv(s, c.DY(0), count), ids)
		return c.first(op.SelectV2(s, selected, shared, op.ZerosLike(s, c.In(0))))
	}, "SegmentMax", "SegmentMin")
	Register(segmentProd, "SegmentProd")
	Register(func(c *Call) []Grad { return c.first(newSegments(c).gather(c.DY(0))) }, "UnsortedSegmentSum")
	Register(unsortedSegmentExtreme, "UnsortedSegmentMax", "UnsortedSegmentMin")
	Register(unsortedSegmentProd, "UnsortedSegmentProd")
	for _, kind := range []string{"Sum", "Mean", "SqrtN"} {
		Register(func(c *Call) []Grad { return sparseSegment(c, kind) }, "SparseSegment"+kind, "SparseSegment"+kind+"WithNumSegments")
	}
}

// rowShape returns the shape of ids, followed by ones up to the rank of x.
func rowShape(s *op.Scope, ids, x op.Output) op.Output {
	more := op.Sub(s, op.Rank(s, x), op.Rank(s, ids))
	return op.ConcatV2(s, []op.Output{op.Shape(s, ids), op.Fill(s, vector(s, more), op.Const(s, int32(1)))}, op.Const(s, int32(0)))
}

// segmentProd divides the product by each element. For an element that is the only zero of its
// segment, the derivative is the product of the others.
func segmentProd(c *Call) []Grad {
	s, ids := c.S, c.In(1)
	gather := func(x op.Output) op.Output { return op.Gather(s, x, ids) }
	p := newProduct(c)
	zeros := op.SegmentSum(s, op.Cast(s, p.isZero, tensor.Int32), ids)
	return c.first(p.gradient(zeros, op.SegmentProd(s, p.nonZero, ids), gather))
}

func unsortedSegmentProd(c *Call) []Grad {
	s, ids, n := c.S, c.In(1), c.In(2)
	p := newProduct(c)
	zeros := op.UnsortedSegmentSum(s, op.Cast(s, p.isZero, tensor.Int32), ids, n)
	return c.first(p.gradient(zeros, op.UnsortedSegmentProd(s, p.nonZero, ids, n), newSegments(c).gather))
}

// product holds the rows that were multiplied.
type product struct {
	c       *Call
	isZero  op.Output
	nonZero op.Output // the rows, with zeros replaced by ones
}

func newProduct(c *Call) product {
	s, x := c.S, c.In(0)
	isZero := op.Equal(s, x, number(s, x, 0))
	return product{c, isZero, op.SelectV2(s, isZero, op.OnesLike(s, x), x)}
}

// gradient returns the gradient of the rows. zeros is the number of zeros of each segment, others
// the product of its other elements, and spread broadcasts the values of segments to their rows.
func (p product) gradient(zeros, others op.Output, spread func(op.Output) op.Output) op.Output {
	s, dy := p.c.S, p.c.DY(0)
	dy = op.SelectV2(s, op.Greater(s, zeros, number(s, zeros, 1)), op.ZerosLike(s, dy), dy)
	partial := op.SelectV2(s, p.isZero, spread(others), op.RealDiv(s, spread(p.c.Out(0)), p.nonZero))
	return op.Mul(s, spread(dy), conj(s, partial))
}

// unsortedSegments broadcasts values to rows whose segments are in any order. Rows with a negative
// segment belong to no segment.
type unsortedSegments struct {
	s       *op.Scope
	ids     op.Output // negative ids replaced by zeros
	belongs op.Output // whether a row has a segment, in a shape that broadcasts to rows
}

func newSegments(c *Call) unsortedSegments {
	s, ids := c.S, c.In(1)
	zero := op.ZerosLike(s, ids)
	return unsortedSegments{s, op.Maximum(s, ids, zero), op.Reshape(s, op.GreaterEqual(s, ids, zero), rowShape(s, ids, c.In(0)))}
}

func (u unsortedSegments) gather(x op.Output) op.Output {
	rows := op.Gather(u.s, x, u.ids)
	return op.SelectV2(u.s, u.belongs, rows, op.ZerosLike(u.s, rows))
}

func unsortedSegmentExtreme(c *Call) []Grad {
	s, u := c.S, newSegments(c)
	selected := op.LogicalAnd(s, op.Equal(s, c.In(0), u.gather(c.Out(0))), u.belongs)
	count := op.UnsortedSegmentSum(s, op.Cast(s, selected, c.DY(0).DType()), c.In(1), c.In(2))
	shared := u.gather(op.RealDiv(s, c.DY(0), count))
	return c.first(op.SelectV2(s, selected, shared, op.ZerosLike(s, shared)))
}

// sparseSegment returns a dense gradient or, if the operation asks for it, the gradient of the used
// rows.
func sparseSegment(c *Call, kind string) []Grad {
	s := c.S
	shape := op.Shape(s, c.In(0))
	rows := op.Gather(s, shape, op.Const(s, int32(0)))
	name := "SparseSegment" + kind + "Grad"
	if !c.Node.Attrs.Bool("sparse_gradient") {
		return c.first(output(s.Add(name, args(c.DY(0), c.In(1), c.In(2), rows), nil), 0))
	}
	n := s.Add(name+"V2", args(c.DY(0), c.In(1), c.In(2), rows), nil)
	grads := c.None()
	grads[0] = Grad{Slices: &IndexedSlices{Values: output(n, 0), Indices: output(n, 1), Shape: shape}}
	return grads
}
