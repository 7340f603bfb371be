package sparse

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const realNumbers = "T: {float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, uint64}"

func init() {
	in := []string{"input_indices: int64", "input_values: T", "input_shape: int64", "reduction_axes: int32"}
	for _, o := range []struct {
		name, doc, types string
		op               elementwise.Op
		dtypes           []tensor.DType
	}{
		{"Sum", "Sums the elements of a sparse tensor along dimensions", numbers, elementwise.Add, typeset.Numbers},
		{"Max", "Computes the maximum of the elements of a sparse tensor along dimensions", realNumbers, elementwise.Max, typeset.Real},
	} {
		attrs := []string{"keep_dims: bool = false", o.types}
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: "SparseReduce" + o.name, Doc: o.doc + ".", In: in, Out: []string{"output: T"}, Attrs: attrs, Shape: reduceShape,
			},
			Kernels: kernel.ForTypes("T", newReduce(o.op, putReduced), o.dtypes...),
		})
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: "SparseReduce" + o.name + "Sparse", Doc: o.doc + ". Returns a sparse tensor.", In: in,
				Out: []string{"output_indices: int64", "output_values: T", "output_shape: int64"}, Attrs: attrs, Shape: opdef.UnknownShape,
			},
			Kernels: kernel.ForTypes("T", newReduce(o.op, putReducedSparse), o.dtypes...),
		})
	}
}

func reduceShape(c *opdef.ShapeContext) error {
	shape, known := shapefn.Ints(c, 2)
	axes, ok := shapefn.Ints(c, 3)
	if !known || !ok {
		return nil
	}
	reduced := membudget.Make[bool](len(shape))
	for _, axis := range axes {
		d, ok := intarg.Axis(axis, len(shape))
		if !ok {
			return status.InvalidArgumentf("Invalid reduction dimension %d, for input with %d dimensions.", axis, len(shape))
		}
		reduced[d] = true
	}
	c.Out[0] = shapefn.Of(reducedDims(shape, reduced, c.Attrs.Bool("keep_dims"))...)
	return nil
}

// reducedDims returns the dimensions of a shape after the reduction.
func reducedDims(shape []int64, reduced []bool, keep bool) []int64 {
	out := []int64{}
	for d, n := range shape {
		switch {
		case !reduced[d]:
			out = append(out, n)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// reduction describes one reduction.
type reduction struct {
	s    *coo
	op   elementwise.Op
	kept []int // dimensions that are not reduced
	dims tensor.Shape
	keep bool // whether reduced dimensions are kept with size 1
}

func newReduce(op elementwise.Op, put func(*kernel.Context, *reduction) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		keep := c.Attrs.Bool("keep_dims")
		return kernel.Func(func(ctx *kernel.Context) error {
			r, err := newReduction(ctx, op, keep)
			if err != nil {
				return err
			}
			return put(ctx, r)
		}), nil
	}
}

func newReduction(ctx *kernel.Context, op elementwise.Op, keep bool) (*reduction, error) {
	shape, axes := ctx.Input(2), ctx.Input(3)
	switch {
	case shape.Rank() != 1:
		return nil, status.InvalidArgumentf("Expected input_shape to be a vector; got shape: %v", shape.Shape())
	case axes.Rank() > 1:
		return nil, status.InvalidArgumentf("Expected reduction_axes to be a scalar or a vector; got shape: %v", axes.Shape())
	}
	reduced := membudget.Make[bool](shape.NumElements())
	for _, axis := range intarg.Values(axes) {
		d, ok := intarg.Axis(axis, len(reduced))
		if !ok {
			return nil, status.InvalidArgumentf("Invalid reduction dimension %d, for input with %d dimensions.", axis, len(reduced))
		}
		reduced[d] = true
	}
	s, err := makeCOO(ctx.Input(0), ctx.Input(1), intarg.Values(shape))
	if err != nil {
		return nil, err
	}
	r := &reduction{s: s, op: op, dims: reducedDims(s.shape, reduced, keep), keep: keep}
	for d := range s.shape {
		if !reduced[d] {
			r.kept = append(r.kept, d)
		}
	}
	return r, r.dims.Check()
}

// same reports whether elements a and b contribute to the same result.
func (r *reduction) same(a, b int64) bool {
	x, y := r.s.at(int(a)), r.s.at(int(b))
	return !slices.ContainsFunc(r.kept, func(d int) bool { return x[d] != y[d] })
}

// combine combines the elements of the sparse tensor into out. Element order[i] belongs to
// out[position[i]]. The first element of each position is assigned.
func (r *reduction) combine(out *tensor.Tensor, order, position []int64) error {
	values, err := tensor.Alloc(out.DType(), tensor.Shape{int64(len(order))})
	if err != nil {
		return err
	}
	defer values.Release()
	gather(&values, r.s.values, order)
	//sizedmake:ok an element for each dimension
	first, rest := slices.Clone(position), slices.Clone(position)
	for i := range position {
		if i > 0 && position[i] == position[i-1] {
			first[i] = -1
		} else {
			rest[i] = -1
		}
	}
	gatherscatter.Scatter(elementwise.Assign, out, &values, gatherscatter.List{Rows: first}, 1)
	gatherscatter.Scatter(r.op, out, &values, gatherscatter.List{Rows: rest}, 1)
	return nil
}

func putReduced(ctx *kernel.Context, r *reduction) error {
	out, err := ctx.AllocateZeros(0, r.dims)
	if err != nil {
		return err
	}
	order, err := r.s.sorted(ctx.Context(), r.kept)
	if err != nil {
		return err
	}
	position := membudget.Make[int64](len(order))
	for i, e := range order {
		for _, d := range r.kept {
			x := r.s.at(int(e))[d]
			if x < 0 || x >= r.s.shape[d] {
				return status.Internalf("Obtained a write index of %d which is outside of bounds of [0, %d)", x, r.s.shape[d])
			}
			position[i] = position[i]*r.s.shape[d] + x
		}
	}
	if len(order) > 0 && out.NumElements() == 0 {
		return status.Internalf("Obtained a write index of 0 which is outside of bounds of [0, 0)")
	}
	return r.combine(out, order, position)
}

func putReducedSparse(ctx *kernel.Context, r *reduction) error {
	order, err := r.s.sorted(ctx.Context(), r.kept)
	if err != nil {
		return err
	}
	position := membudget.Make[int64](len(order))
	var ix []int64
	groups := 0
	for i, e := range order {
		if i == 0 || !r.same(order[i-1], e) {
			ix = r.appendIndex(ix, int(e))
			groups++
		}
		position[i] = int64(groups - 1)
	}
	if err := putMatrix(ctx, 0, ix, groups, len(r.dims)); err != nil {
		return err
	}
	if err := putVector(ctx, 2, r.dims); err != nil {
		return err
	}
	out, err := ctx.Allocate(1, tensor.Shape{int64(groups)})
	if err != nil {
		return err
	}
	return r.combine(out, order, position)
}

// appendIndex appends the index of the result that element e contributes to.
func (r *reduction) appendIndex(ix []int64, e int) []int64 {
	for d, x := range r.s.at(e) {
		switch {
		case slices.Contains(r.kept, d):
			ix = membudget.Append(ix, x)
		case r.keep:
			ix = membudget.Append(ix, 0)
		}
	}
	return ix
}
