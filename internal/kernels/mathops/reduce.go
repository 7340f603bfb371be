package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// reduction combines elements along some dimensions of a tensor.
type reduction[T tensor.Elem] struct {
	start   T                     // result for no elements
	row     func(x []T) T         // of contiguous elements, at least one
	lines   func(z, x []T, n int) // of rows of n elements, at least one; nil for row after row
	columns func(acc, x []T)      // combines x into acc, element by element
	finish  func(acc T, n int) T  // made of the combination of n elements; nil for itself

	// matrix combines rows of x, stride apart, into acc, one after another; nil for columns row by
	// row.
	matrix func(acc, x []T, stride int)
}

// Kernel returns the kernel of the reduction of input 0 along the dimensions that input 1 names.
func (r reduction[T]) kernel() kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		keep := c.Attrs.Bool("keep_dims")
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0).Retain()
			defer in.Release()
			d, err := newDirections(in.Shape(), ctx.Input(1), keep)
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, d.out)
			if err != nil {
				return err
			}
			return r.run(&in, out, d)
		}), nil
	}
}

func (r reduction[T]) run(in, out *tensor.Tensor, d *directions) error {
	z := tensor.Values[T](out)
	if len(z) == 0 {
		return nil
	}
	n := in.NumElements() / len(z)
	if n == 0 {
		for i := range z {
			z[i] = r.start
		}
	} else {
		if err := r.combine(in, z, d); err != nil {
			return err
		}
	}
	r.end(z, n)
	return nil
}

// end finishes what n elements each were combined to.
func (r reduction[T]) end(z []T, n int) {
	if r.finish != nil {
		for i, v := range z {
			z[i] = r.finish(v, n)
		}
	}
}

// combine sets z to the combinations of elements. Neighbouring dimensions that are both reduced or
// both kept have been merged, so that few patterns are left.
func (r reduction[T]) combine(in *tensor.Tensor, z []T, d *directions) error {
	x := tensor.Values[T](in)
	switch p := d.pattern(); p {
	case "", "r", "k", "kr":
		r.rows(z, x)
	case "rk":
		r.fold(z, len(x)/len(z), r.stacked(x, len(z)))
	case "krk":
		size := len(x) / d.sizes[0]
		kept := d.sizes[2]
		parallel.For(d.sizes[0], max(1, elementwise.Grain(cheap)/size), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				r.fold(z[i*kept:(i+1)*kept], size/kept, r.stacked(x[i*size:(i+1)*size], kept))
			}
		})
	default:
		moved, err := d.reducedLast(in)
		if err != nil {
			return err
		}
		r.rows(z, tensor.Values[T](&moved))
		moved.Release()
	}
	return nil
}

// A long row is cut into pieces of rowBlock elements, of which a core takes so many at a time that
// it is worth waking.
const (
	rowBlock  = 1 << 16
	rowBlocks = 4
)

// rows reduces len(z) rows of equal length.
func (r reduction[T]) rows(z, x []T) {
	n := len(x) / len(z)
	if len(z) == 1 && n > rowBlock {
		partial := make([]T, parallel.Blocks(n, rowBlock))
		parallel.For(len(partial), rowBlocks, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				partial[i] = r.row(x[i*rowBlock : min(n, (i+1)*rowBlock)])
			}
		})
		z[0] = r.row(partial)
		return
	}
	parallel.For(len(z), max(1, elementwise.Grain(cheap)/n), func(lo, hi int) {
		r.some(z[lo:hi], x[lo*n:hi*n], n)
	})
}

// some reduces rows of n elements.
func (r reduction[T]) some(z, x []T, n int) {
	if r.lines != nil {
		r.lines(z, x, n)
		return
	}
	for i := range z {
		z[i] = r.row(x[i*n : (i+1)*n])
	}
}

const (
	foldBlock = 512 // the width of columns that are reduced together
	foldRows  = 256 // the rows that are combined one after another
)

// few sets z to the combination of n rows, at most foldRows, from row first on, in columns from lo
// on.
type few[T any] func(z []T, lo, first, n int)

// fold reduces n rows, which are as long as z, to one. Rows are combined in pieces of foldRows, and
// the pieces with each other, so that rounding errors of sums do not pile up. Cores share the
// columns of wide rows, and otherwise pieces.
func (r reduction[T]) fold(z []T, n int, f few[T]) {
	if piece := max(2*foldRows, elementwise.Grain(cheap)/len(z)/foldRows*foldRows); len(z) < foldBlock && n > piece {
		partial := make([]T, parallel.Blocks(n, piece)*len(z))
		parallel.For(n, piece, func(lo, hi int) {
			at := lo / piece * len(z)
			r.foldRange(partial[at:at+len(z)], 0, lo, hi-lo, f)
		})
		r.foldRange(z, 0, 0, len(partial)/len(z), r.stacked(partial, len(z)))
		return
	}
	block := max(foldBlock, elementwise.Grain(cheap)/n)
	if len(z) <= block {
		r.foldRange(z, 0, 0, n, f)
		return
	}
	parallel.For(len(z), block, func(lo, hi int) {
		r.foldRange(z[lo:hi], lo, 0, n, f)
	})
}

func (r reduction[T]) foldRange(z []T, lo, first, n int, f few[T]) {
	if n <= foldRows {
		f(z, lo, first, n)
		return
	}
	half := (n/2 + foldRows - 1) / foldRows * foldRows
	r.foldRange(z, lo, first, half, f)
	second := make([]T, len(z))
	r.foldRange(second, lo, first+half, n-half, f)
	r.columns(z, second)
}

// stacked combines rows of x, which are stride apart.
func (r reduction[T]) stacked(x []T, stride int) few[T] {
	return func(z []T, lo, first, n int) {
		x := x[first*stride+lo:]
		copy(z, x)
		if n > 1 {
			r.into(z, x[stride:(n-1)*stride+len(z)], stride)
		}
	}
}

// into combines the rows of x, stride apart, into acc.
func (r reduction[T]) into(acc, x []T, stride int) {
	if r.matrix != nil {
		r.matrix(acc, x, stride)
		return
	}
	for i := 0; i < len(x); i += stride {
		r.columns(acc, x[i:i+len(acc)])
	}
}

// directions are the dimensions of a reduction.
type directions struct {
	shape   tensor.Shape
	reduced []bool
	out     tensor.Shape
	sizes   []int  // merged dimensions
	kinds   []byte // 'r' or 'k' of each
}

func newDirections(shape tensor.Shape, axes *tensor.Tensor, keep bool) (*directions, error) {
	d := &directions{shape: shape, reduced: make([]bool, len(shape))}
	for _, a := range intarg.Values(axes) {
		axis, ok := intarg.Axis(a, len(shape))
		if !ok {
			return nil, status.InvalidArgumentf("Invalid reduction dimension (%d for input with %d dimension(s)", a, len(shape))
		}
		if d.reduced[axis] {
			return nil, status.InvalidArgumentf("Invalid reduction arguments: Axes contains duplicate dimension: %d", axis)
		}
		d.reduced[axis] = true
	}
	d.out = tensor.Shape{}
	for i, n := range shape {
		switch {
		case !d.reduced[i]:
			d.out = append(d.out, n)
		case keep:
			d.out = append(d.out, 1)
		}
		if n != 1 {
			d.merge(int(n), d.reduced[i])
		}
	}
	return d, nil
}

func (d *directions) merge(n int, reduced bool) {
	kind := byte('k')
	if reduced {
		kind = 'r'
	}
	if last := len(d.kinds) - 1; last >= 0 && d.kinds[last] == kind {
		d.sizes[last] *= n
		return
	}
	d.sizes, d.kinds = append(d.sizes, n), append(d.kinds, kind)
}

func (d *directions) pattern() string { return string(d.kinds) }

// rowLength returns how many neighbouring elements each result is made of, 0 if they do not lie
// together.
func (d *directions) rowLength() int {
	switch d.pattern() {
	case "", "k":
		return 1
	case "r":
		return d.sizes[0]
	case "kr":
		return d.sizes[1]
	}
	return 0
}

// reducedLast returns a copy of the input with the reduced dimensions after the others.
func (d *directions) reducedLast(in *tensor.Tensor) (tensor.Tensor, error) {
	var perm []int
	for _, reduced := range []bool{false, true} {
		for i, r := range d.reduced {
			if r == reduced {
				perm = append(perm, i)
			}
		}
	}
	v := strided.Of(d.shape).Permute(perm)
	shape := make(tensor.Shape, len(perm))
	for i, p := range perm {
		shape[i] = d.shape[p]
	}
	out, err := tensor.Alloc(in.DType(), shape)
	if err != nil {
		return out, err
	}
	strided.Copy(&out, strided.Of(shape), in, v)
	return out, nil
}

// reductionShape is the shape rule of reductions.
func reductionShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRankAtMost(c.In[1], 1); err != nil {
		return err
	}
	keep := c.Attrs.Bool("keep_dims")
	axes, known := shapefn.Ints(c, 1)
	rank := c.In[0].Rank()
	if !known || rank < 0 {
		if keep && rank >= 0 {
			c.Out[0] = tensor.UnknownDims(rank)
		}
		return nil
	}
	reduced := make([]bool, rank)
	for _, a := range axes {
		axis, ok := intarg.Axis(a, rank)
		if !ok {
			return status.InvalidArgumentf("Invalid reduction dimension %d for input with %d dimensions.", a, rank)
		}
		reduced[axis] = true
	}
	dims := []int64{}
	for i, r := range reduced {
		switch {
		case !r:
			dims = append(dims, c.In[0].Dim(i))
		case keep:
			dims = append(dims, 1)
		}
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}
