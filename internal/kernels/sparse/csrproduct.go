package sparse

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	sides := []string{"transpose_a: bool = false", "transpose_b: bool = false", "adjoint_a: bool = false", "adjoint_b: bool = false"}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseMatrixMatMul", Doc: "Multiplies CSR matrices by dense matrices.",
			In: []string{"a: variant", "b: T"}, Out: []string{"output: T"},
			Attrs: slices.Concat([]string{"T: type"}, sides, []string{"transpose_output: bool = false", "conjugate_output: bool = false"}),
			Shape: csrMatMulShape,
		},
		Kernels: byCSR("T", newCSRMatMul[float32], newCSRMatMul[float64], newCSRMatMul[complex64], newCSRMatMul[complex128]),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseMatrixSparseMatMul", Doc: "Multiplies CSR matrices.",
			In: []string{"a: variant", "b: variant"}, Out: []string{"c: variant"},
			Attrs: slices.Concat([]string{"type: " + csrTypes}, sides), Shape: csrSparseMatMulShape,
		},
		Kernels: byCSR("type", newCSRSparseMatMul[float32], newCSRSparseMatMul[float64], newCSRSparseMatMul[complex64], newCSRSparseMatMul[complex128]),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseMatrixTranspose", Doc: "Transposes CSR matrices.",
			In: []string{"input: variant"}, Out: []string{"output: variant"}, Attrs: []string{"conjugate: bool = false", "type: " + csrTypes},
			Shape: func(c *opdef.ShapeContext) error {
				s, err := csrShape(c, 0)
				if err == nil {
					setCSR(c, c.Attrs.Type("type"), transposedShape(s, s.RankKnown()))
				}
				return err
			},
		},
		Kernels: byCSR("type", newCSRTranspose[float32], newCSRTranspose[float64], newCSRTranspose[complex64], newCSRTranspose[complex128]),
	})
}

// transposedShape swaps the last two dimensions if yes is true.
func transposedShape(s shapefn.Shape, yes bool) shapefn.Shape {
	if !yes || !s.RankKnown() {
		return s
	}
	return shapefn.Replace(shapefn.Replace(s, -1, s.Dim(-2)), -2, s.Dim(-1))
}

// operand describes the transformation of one side of a product.
type operand struct{ transpose, conj bool }

func newOperand(attrs opdef.Attrs, side string) (operand, error) {
	transpose, adjoint := attrs.Bool("transpose_"+side), attrs.Bool("adjoint_"+side)
	if transpose && adjoint {
		return operand{}, status.InvalidArgumentf("Only one of adjoint_%s and transpose_%s may be true.", side, side)
	}
	return operand{transpose || adjoint, adjoint}, nil
}

func operands(attrs opdef.Attrs) (a, b operand, err error) {
	if a, err = newOperand(attrs, "a"); err == nil {
		b, err = newOperand(attrs, "b")
	}
	return a, b, err
}

// productShape returns the batch dimensions, height and width of a product.
func productShape(c *opdef.ShapeContext, a, b shapefn.Shape) (shapefn.Shape, error) {
	left, right, err := operands(c.Attrs)
	if err != nil || !a.RankKnown() || !b.RankKnown() {
		return shapefn.Shape{}, err
	}
	a, b = transposedShape(a, left.transpose), transposedShape(b, right.transpose)
	batch, err := opdef.MergeShapes(shapefn.Sub(a, 0, a.Rank()-2), shapefn.Sub(b, 0, b.Rank()-2))
	if err != nil {
		return batch, err
	}
	_, err = opdef.MergeDims(a.Dim(-1), b.Dim(-2))
	return shapefn.Concat(batch, shapefn.Of(a.Dim(-2), b.Dim(-1))), err
}

func csrMatMulShape(c *opdef.ShapeContext) error {
	a, err := csrShape(c, 0)
	if err != nil {
		return err
	}
	b, err := opdef.WithRankAtLeast(c.In[1], 2)
	if err == nil {
		b, err = opdef.WithRankAtMost(b, 3)
	}
	if err != nil {
		return err
	}
	s, err := productShape(c, a, b)
	if err == nil {
		c.Out[0] = transposedShape(s, c.Attrs.Bool("transpose_output"))
	}
	return err
}

func csrSparseMatMulShape(c *opdef.ShapeContext) error {
	a, err := csrShape(c, 0)
	if err != nil {
		return err
	}
	b, err := csrShape(c, 1)
	if err != nil {
		return err
	}
	s, err := productShape(c, a, b)
	setCSR(c, c.Attrs.Type("type"), s)
	return err
}

// transposed returns the transpose of a matrix.
func (p csrPart[T]) transposed() csrPart[T] {
	out := csrPart[T]{membudget.Make[int32](p.width + 1), membudget.Make[int32](len(p.cols)), membudget.Make[T](len(p.vals)), p.width, p.height}
	for _, c := range p.cols {
		out.rows[c+1]++
	}
	for r := range p.width {
		out.rows[r+1] += out.rows[r]
	}
	next := membudget.AppendAll(nil, out.rows...)
	for r := range p.height {
		for i := p.rows[r]; i < p.rows[r+1]; i++ {
			at := &next[p.cols[i]]
			out.cols[*at], out.vals[*at] = int32(r), p.vals[i]
			*at++
		}
	}
	return out
}

// taken returns the matrix with the transformation of o applied.
func (p csrPart[T]) taken(o operand) csrPart[T] {
	p.vals = conjugated(p.vals, o.conj)
	if o.transpose {
		return p.transposed()
	}
	return p
}

func newCSRTranspose[T csrElem](c *kernel.Construction) (kernel.Kernel, error) {
	how := operand{true, c.Attrs.Bool("conjugate")}
	return kernel.Func(func(ctx *kernel.Context) error {
		m, err := csrInput(ctx, 0)
		if err != nil {
			return err
		}
		if m.values.DType() != tensor.DTypeOf[T]() {
			return status.InvalidArgumentf("dtype of input is not equal to 'type': %v vs. %v", m.values.DType(), tensor.DTypeOf[T]())
		}
		parts := membudget.Make[csrPart[T]](m.size())
		for b := range parts {
			parts[b] = part[T](m, b).taken(how)
		}
		n := len(m.shape)
		shape := slices.Clone(m.shape)
		shape[n-2], shape[n-1] = shape[n-1], shape[n-2]
		out, err := newCSR(shape, parts)
		return putCSR(ctx, out, err)
	}), nil
}

func newCSRMatMul[T csrElem](c *kernel.Construction) (kernel.Kernel, error) {
	left, right, err := operands(c.Attrs)
	result := operand{c.Attrs.Bool("transpose_output"), c.Attrs.Bool("conjugate_output")}
	return kernel.Func(func(ctx *kernel.Context) error {
		a, err := csrInput(ctx, 0)
		if err != nil {
			return err
		}
		b := ctx.Input(1)
		n := len(a.shape)
		switch {
		case a.values.DType() != b.DType():
			return status.InvalidArgumentf("Input types don't match.  a.dtype == %v vs. b.dtype == %v", a.values.DType(), b.DType())
		case n != b.Rank():
			return status.InvalidArgumentf("Ranks of a and b must match, saw: %d vs. %d.", n, b.Rank())
		case n == 3 && a.shape[0] != int64(b.Dim(0)):
			return status.InvalidArgumentf("Batch size of a and b must match, saw: %d vs. %d.", a.shape[0], b.Dim(0))
		}
		p := denseProduct[T]{left: left, right: right, result: result, k: b.Dim(n - 2), cols: b.Dim(n - 1)}
		rows, inner := a.height(), a.width()
		if left.transpose {
			rows, inner = inner, rows
		}
		depth, cols := p.k, p.cols
		if right.transpose {
			depth, cols = cols, depth
		}
		if inner != depth {
			return status.InvalidArgumentf("Inner dimensions of a and b must agree: %d vs. %d (a: %v, b: %v)", inner, depth, a.shape, b.Shape())
		}
		shape := slices.Concat(a.shape[:n-2], tensor.Shape{int64(rows), int64(cols)})
		if result.transpose {
			shape[n-2], shape[n-1] = shape[n-1], shape[n-2]
		}
		out, err := ctx.AllocateZeros(0, shape)
		if err != nil {
			return err
		}
		dst, dense := tensor.Values[T](out), conjugated(tensor.Values[T](b), right.conj)
		for i := range a.size() {
			if err := p.multiply(ctx.Context(), dst[i*rows*cols:(i+1)*rows*cols], part[T](a, i).taken(left), dense[i*p.k*p.cols:(i+1)*p.k*p.cols]); err != nil {
				return err
			}
		}
		return nil
	}), err
}

// denseProduct multiplies by a dense matrix of k rows and cols columns, as stored in memory. left,
// right and result are the transformations of both factors and of the product.
type denseProduct[T csrElem] struct {
	left, right, result operand
	k, cols             int
}

// multiply adds the product to out, which is zeroed. It fails when ctx ends.
func (p *denseProduct[T]) multiply(ctx context.Context, out []T, a csrPart[T], b []T) error {
	width, step, stride := p.cols, p.cols, 1
	if p.right.transpose {
		width, step, stride = p.k, 1, p.cols
	}
	row := membudget.Make[T](width)
	progress := stepctx.Progress{Context: ctx, Each: 4}
	for r := range a.height {
		dst := row
		if p.result.transpose {
			clear(row)
		} else {
			dst = out[r*width : (r+1)*width]
		}
		for i := a.rows[r]; i < a.rows[r+1]; i++ {
			if err := progress.Pass(width); err != nil {
				return err
			}
			accumulate(dst, a.vals[i], b[int(a.cols[i])*step:], stride)
		}
		for j, v := range dst {
			if p.result.conj {
				v = conj(v)
			}
			if p.result.transpose {
				out[j*a.height+r] = v
			} else {
				dst[j] = v
			}
		}
	}
	return nil
}

func newCSRSparseMatMul[T csrElem](c *kernel.Construction) (kernel.Kernel, error) {
	left, right, err := operands(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		a, err := csrInput(ctx, 0)
		if err != nil {
			return err
		}
		b, err := csrInput(ctx, 1)
		if err != nil {
			return err
		}
		if err := checkSparseProduct(a, b, tensor.DTypeOf[T]()); err != nil {
			return err
		}
		parts := membudget.Make[csrPart[T]](max(a.size(), b.size()))
		for i := range parts {
			x, y := part[T](a, min(i, a.size()-1)).taken(left), part[T](b, min(i, b.size()-1)).taken(right)
			if x.width != y.height {
				return status.InvalidArgumentf("Inner product dimensions of A and B do not agree.  Shapes are: %v vs. %v", a.shape, b.shape)
			}
			if parts[i], err = x.times(ctx.Context(), y); err != nil {
				return err
			}
		}
		shape := slices.Concat(a.shape[:len(a.shape)-2], tensor.Shape{0, 0})
		if len(b.shape) > len(a.shape) || len(b.shape) == 3 && b.shape[0] > a.shape[0] {
			shape = slices.Concat(b.shape[:1], tensor.Shape{0, 0})
		}
		n := len(shape)
		if shape[n-2], shape[n-1] = int64(a.height()), int64(b.width()); left.transpose {
			shape[n-2] = int64(a.width())
		}
		if right.transpose {
			shape[n-1] = int64(b.height())
		}
		out, err := newCSR(shape, parts)
		return putCSR(ctx, out, err)
	}), err
}

func checkSparseProduct(a, b *CSR, want tensor.DType) error {
	switch {
	case a.values.DType() != want:
		return status.InvalidArgumentf("dtype of a is not equal to 'type': %v vs. %v", a.values.DType(), want)
	case b.values.DType() != want:
		return status.InvalidArgumentf("dtype of b is not equal to 'type': %v vs. %v", b.values.DType(), want)
	case a.size() != b.size() && a.size() != 1 && b.size() != 1, a.size() == 0 != (b.size() == 0):
		return status.InvalidArgumentf("Batch sizes of A and B are not compatible.  Batch sizes are: %d vs. %d", a.size(), b.size())
	}
	return nil
}

// times returns the product of two matrices, computed row by row (Gustavson 1978). It fails if ctx
// ends.
func (p csrPart[T]) times(ctx context.Context, q csrPart[T]) (csrPart[T], error) {
	out := csrPart[T]{rows: membudget.Make[int32](p.height + 1), height: p.height, width: q.width}
	sums, seen := membudget.Make[T](q.width), membudget.Make[bool](q.width)
	progress := stepctx.Progress{Context: ctx, Each: 4}
	for r := range p.height {
		first := len(out.cols)
		for i := p.rows[r]; i < p.rows[r+1]; i++ {
			if err := progress.Pass(int(q.rows[p.cols[i]+1] - q.rows[p.cols[i]])); err != nil {
				return out, err
			}
			for j := q.rows[p.cols[i]]; j < q.rows[p.cols[i]+1]; j++ {
				c := q.cols[j]
				if !seen[c] {
					seen[c] = true
					out.cols = membudget.Append(out.cols, c)
				}
				sums[c] += p.vals[i] * q.vals[j]
			}
		}
		slices.Sort(out.cols[first:])
		for _, c := range out.cols[first:] {
			out.vals = membudget.Append(out.vals, sums[c])
			sums[c], seen[c] = 0, false
		}
		out.rows[r+1] = int32(len(out.cols))
	}
	return out, nil
}
