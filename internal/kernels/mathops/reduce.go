package mathops

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// reduction combines elements along some dimensions of a tensor.
type reduction[T tensor.Elem] struct {
	start T             // result for no elements
	row   func(x []T) T // reduces contiguous elements, at least one
	// Reduces rows of n elements, at least one; nil to call row for each.
	lines   func(z, x []T, n int)
	columns func(acc, x []T) // combines x into acc, element by element
	// Computes the result from the combination of n elements; nil for the identity.
	finish func(acc T, n int) T

	// matrix combines rows of x, stride apart, into acc in order. If nil, columns is called for
	// each row.
	matrix func(acc, x []T, stride int)
}

// kernel returns the kernel that reduces input 0 along the dimensions in input 1. The combination
// of one element is this element.
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
			if d.keepsAll() {
				return ctx.PassInput(0, 0, d.out...)
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
	r.finishAll(z, n)
	return nil
}

// finishAll applies finish to combinations of n elements each.
func (r reduction[T]) finishAll(z []T, n int) {
	if r.finish != nil {
		for i, v := range z {
			z[i] = r.finish(v, n)
		}
	}
}

// combine sets z to the combinations of elements. Adjacent dimensions that are both reduced or both
// kept have been merged, so that only a few patterns remain.
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

// A long row is divided into blocks of rowBlock elements. A core takes at least rowBlocks blocks,
// so that the work is worth its wake-up.
const (
	rowBlock  = 1 << 16
	rowBlocks = 4
)

// rows reduces len(z) rows of equal length.
func (r reduction[T]) rows(z, x []T) {
	n := len(x) / len(z)
	if len(z) == 1 && n > rowBlock {
		partial := membudget.Make[T](parallel.Blocks(n, rowBlock))
		parallel.For(len(partial), rowBlocks, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				partial[i] = r.row(x[i*rowBlock : min(n, (i+1)*rowBlock)])
			}
		})
		z[0] = r.row(partial)
		return
	}
	parallel.For(len(z), max(1, elementwise.Grain(cheap)/n), func(lo, hi int) {
		r.rowRange(z[lo:hi], x[lo*n:hi*n], n)
	})
}

// rowRange reduces rows of n elements on one core.
func (r reduction[T]) rowRange(z, x []T, n int) {
	if r.lines != nil {
		r.lines(z, x, n)
		return
	}
	for i := range z {
		z[i] = r.row(x[i*n : (i+1)*n])
	}
}

const (
	foldBlock = 512 // columns that are reduced together
	foldRows  = 256 // rows that are combined in sequence
)

// foldStep sets z to the combination of n rows, at most foldRows, from row first on, in the columns
// from lo on.
type foldStep[T any] func(z []T, lo, first, n int)

// fold reduces n rows with the length of z to one. Blocks of foldRows rows are combined in sequence
// and then pairwise, which limits the rounding error of sums. Cores share the columns of wide rows,
// and blocks of rows otherwise.
func (r reduction[T]) fold(z []T, n int, f foldStep[T]) {
	if piece := max(2*foldRows, elementwise.Grain(cheap)/len(z)/foldRows*foldRows); len(z) < foldBlock && n > piece {
		partial := membudget.Make[T](parallel.Blocks(n, piece) * len(z))
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

func (r reduction[T]) foldRange(z []T, lo, first, n int, f foldStep[T]) {
	if n <= foldRows {
		f(z, lo, first, n)
		return
	}
	half := (n/2 + foldRows - 1) / foldRows * foldRows
	r.foldRange(z, lo, first, half, f)
	second := membudget.Make[T](len(z))
	r.foldRange(second, lo, first+half, n-half, f)
	r.columns(z, second)
}

// stacked returns the foldStep that combines rows of x, which are stride apart.
func (r reduction[T]) stacked(x []T, stride int) foldStep[T] {
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

// directions describes the dimensions of a reduction.
type directions struct {
	shape   tensor.Shape
	reduced []bool
	out     tensor.Shape
	sizes   []int  // sizes of the merged dimensions
	kinds   []byte // 'r' (reduced) or 'k' (kept) for each
}

func newDirections(shape tensor.Shape, axes *tensor.Tensor, keep bool) (*directions, error) {
	d := &directions{shape: shape, reduced: membudget.Make[bool](len(shape))}
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

// keepsAll reports whether every result is the combination of one element: only dimensions of size
// 1 are reduced.
func (d *directions) keepsAll() bool { return !slices.Contains(d.kinds, 'r') }

// rowLength returns the number of adjacent elements per result, or 0 if they are not contiguous.
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

// reducedLast returns a copy of the input with the reduced dimensions last.
func (d *directions) reducedLast(in *tensor.Tensor) (tensor.Tensor, error) {
	var perm []int
	for _, reduced := range []bool{false, true} {
		for i, r := range d.reduced {
			if r == reduced {
				//sizedmake:ok dimensions
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

// reductionShape is the shape function of reductions.
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
	reduced := membudget.Make[bool](rank)
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
