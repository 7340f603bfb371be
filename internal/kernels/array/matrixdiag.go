package array

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "MatrixDiag", Doc: "Returns square matrices with the given diagonals.",
		In:    []string{"diagonal: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: matrixDiagV1Shape,
	}, newMatrixDiag)
	kernel.RegisterNew(opdef.Def{
		Name:  "MatrixDiagV2",
		Doc:   "Returns matrices with the given left-aligned diagonals k[0] to k[1] and padding elsewhere.",
		In:    []string{"diagonal: T", "k: int32", "num_rows: int32", "num_cols: int32", "padding_value: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: matrixDiagShape,
	}, newMatrixDiag)
	kernel.RegisterNew(opdef.Def{
		Name: "MatrixDiagV3",
		Doc: "Returns matrices with the given diagonals k[0] to k[1], aligned according to align, and " +
			"padding elsewhere.",
		In:  []string{"diagonal: T", "k: int32", "num_rows: int32", "num_cols: int32", "padding_value: T"},
		Out: []string{"output: T"},
		Attrs: []string{
			"T: type",
			"align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
		},
		Shape: matrixDiagShape,
	}, newMatrixDiag)
	kernel.RegisterNew(opdef.Def{
		Name: "MatrixDiagPart", Doc: "Returns the main diagonals of matrices.",
		In:    []string{"input: T"},
		Out:   []string{"diagonal: T"},
		Attrs: []string{"T: type"},
		Shape: matrixDiagPartV1Shape,
	}, newMatrixDiagPart)
	kernel.RegisterNew(opdef.Def{
		Name: "MatrixDiagPartV2",
		Doc: "Returns diagonals k[0] to k[1] of matrices, left-aligned and padded to the length of the " +
			"longest.",
		In:    []string{"input: T", "k: int32", "padding_value: T"},
		Out:   []string{"diagonal: T"},
		Attrs: []string{"T: type"},
		Shape: matrixDiagPartShape,
	}, newMatrixDiagPart)
	kernel.RegisterNew(opdef.Def{
		Name: "MatrixDiagPartV3",
		Doc: "Returns diagonals k[0] to k[1] of matrices, aligned according to align and padded to the " +
			"length of the longest.",
		In:  []string{"input: T", "k: int32", "padding_value: T"},
		Out: []string{"diagonal: T"},
		Attrs: []string{
			"T: type",
			"align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
		},
		Shape: matrixDiagPartShape,
	}, newMatrixDiagPart)
	kernel.RegisterNew(opdef.Def{
		Name: "MatrixSetDiag", Doc: "Replaces the main diagonals of matrices.",
		In:    []string{"input: T", "diagonal: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: matrixSetDiagV1Shape,
	}, newMatrixSetDiag)
	kernel.RegisterNew(opdef.Def{
		Name: "MatrixSetDiagV2", Doc: "Replaces diagonals k[0] to k[1] of matrices with left-aligned diagonals.",
		In:    []string{"input: T", "diagonal: T", "k: int32"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: matrixSetDiagShape,
	}, newMatrixSetDiag)
	kernel.RegisterNew(opdef.Def{
		Name: "MatrixSetDiagV3",
		Doc:  "Replaces diagonals k[0] to k[1] of matrices with diagonals aligned according to align.",
		In:   []string{"input: T", "diagonal: T", "k: int32"},
		Out:  []string{"output: T"},
		Attrs: []string{
			"T: type",
			"align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
		},
		Shape: matrixSetDiagShape,
	}, newMatrixSetDiag)
}

// band is a range of diagonals of matrices. A diagonal's number is column minus row. The packed
// form has the uppermost diagonal first, and each is padded to the length of the longest and
// aligned left or right.
type band struct {
	lower, upper, rows, cols int
	superLeft, subLeft       bool
}

// alignment reads the attribute align. Its two words apply to the diagonals above and below the
// main diagonal. Operations without the attribute align left.
func (b *band) alignment(attrs opdef.Attrs) {
	super, sub, given := strings.Cut(attrs.String("align"), "_")
	b.superLeft, b.subLeft = !given || super == "LEFT", !given || sub == "LEFT"
}

func (b *band) count() int { return b.upper - b.lower + 1 }

// longest returns the length of the longest diagonal.
func (b *band) longest() int {
	return min(b.rows+min(b.upper, 0), b.cols-max(b.lower, 0))
}

// length returns the length of diagonal d.
func (b *band) length(d int) int { return min(b.rows+min(d, 0), b.cols-max(d, 0)) }

// views returns the views of diagonal d in a batch of matrices and in a batch of packed diagonals.
func (b *band) views(d, batch int) (matrix, packed strided.View) {
	n, longest := b.length(d), b.longest()
	offset := longest - n
	if d >= 0 && b.superLeft || d <= 0 && b.subLeft {
		offset = 0
	}
	size := b.rows * b.cols
	matrix = strided.View{Dims: []int{batch, n}, Strides: []int{size, b.cols + 1}, Offset: max(d, 0) - min(d, 0)*b.cols}
	packed = strided.View{
		Dims: []int{batch, n}, Strides: []int{b.count() * longest, 1}, Offset: (b.upper-d)*longest + offset,
	}
	return matrix, packed
}

// readRange reads the optional input k: a scalar or a pair.
func (b *band) readRange(ctx *kernel.Context, input int) error {
	if ctx.NumInputs() <= input {
		return nil
	}
	k := ctx.Input(input)
	if k.Rank() > 1 {
		return status.InvalidArgumentf("diag_index must be a scalar or vector, received shape: %v", k.Shape())
	}
	vals := intarg.Values(k)
	switch len(vals) {
	case 0:
		if input == 2 {
			return status.InvalidArgumentf("diag_index must have at least one element")
		}
		return status.InvalidArgumentf("Expected diag_index to have at least 1 element")
	case 1:
		b.lower, b.upper = int(vals[0]), int(vals[0])
	case 2:
		b.lower, b.upper = int(vals[0]), int(vals[1])
	default:
		return status.InvalidArgumentf("diag_index must have only one or two elements, received %d elements.", len(vals))
	}
	return nil
}

// checkRange checks the range against the size of the matrices.
func (b *band) checkRange(colon string) error {
	out := func(d int) bool { return d != 0 && (-b.rows >= d || d >= b.cols) }
	switch {
	case out(b.lower):
		return status.InvalidArgumentf("lower_diag_index is out of bound: %d%s It must be between %d and %d",
			b.lower, colon, -b.rows, b.cols)
	case out(b.upper):
		return status.InvalidArgumentf("upper_diag_index is out of bound: %d It must be between %d and %d", b.upper, -b.rows, b.cols)
	}
	return b.checkOrder()
}

func (b *band) checkOrder() error {
	if b.lower > b.upper {
		return status.InvalidArgumentf("lower_diag_index must not be larger than upper_diag_index: %d > %d", b.lower, b.upper)
	}
	return nil
}

// matrices sets the size of the matrices to that of in.
func (b *band) matrices(in *tensor.Tensor) error {
	if in.Rank() < 2 {
		return status.InvalidArgumentf("input must be at least 2-dim, received shape: %v", in.Shape())
	}
	b.rows, b.cols = in.Dim(in.Rank()-2), in.Dim(in.Rank()-1)
	return nil
}

// packedShape returns the shape of packed diagonals of matrices of the given shape.
func (b *band) packedShape(matrices tensor.Shape) tensor.Shape {
	shape := slices.Clone(matrices[:len(matrices)-2])
	if b.count() > 1 {
		shape = append(shape, int64(b.count()))
	}
	return append(shape, int64(b.longest()))
}

func newMatrixDiagPart(c *kernel.Construction) (kernel.Kernel, error) {
	var proto band
	proto.alignment(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		b, in := proto, ctx.Input(0)
		if err := b.readRange(ctx, 1); err != nil {
			return err
		}
		if ctx.NumInputs() > 2 && ctx.Input(2).NumElements() != 1 {
			return status.InvalidArgumentf("Padding must be scalar.")
		}
		if err := b.matrices(in); err != nil {
			return err
		}
		if err := b.checkRange("."); err != nil {
			return err
		}
		out, err := ctx.Allocate(0, b.packedShape(in.Shape()))
		if err != nil || out.NumElements() == 0 {
			return err
		}
		if b.count() > 1 && ctx.NumInputs() > 2 {
			splat(out, ctx.Input(2))
		}
		b.each(in.NumElements()/(b.rows*b.cols), func(matrix, packed strided.View) { strided.Copy(out, packed, in, matrix) })
		return nil
	}), nil
}

// each calls f with the views of every diagonal of a batch.
func (b *band) each(batch int, f func(matrix, packed strided.View)) {
	for d := b.lower; d <= b.upper; d++ {
		f(b.views(d, batch))
	}
}

func newMatrixDiag(c *kernel.Construction) (kernel.Kernel, error) {
	var proto band
	proto.alignment(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		b, in := proto, ctx.Input(0)
		if err := b.readRange(ctx, 1); err != nil {
			return err
		}
		if err := b.fitMatrices(ctx, in); err != nil {
			return err
		}
		lead := in.Rank() - 1
		if b.count() > 1 {
			lead--
		}
		shape := append(slices.Clone(in.Shape()[:lead]), int64(b.rows), int64(b.cols))
		out, err := ctx.AllocateZeros(0, shape)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		if ctx.NumInputs() > 4 {
			splat(out, ctx.Input(4))
		}
		b.each(out.NumElements()/(b.rows*b.cols), func(matrix, packed strided.View) { strided.Copy(out, matrix, in, packed) })
		return nil
	}), nil
}

// fitMatrices determines the size of the matrices that hold the diagonals in in. The inputs
// num_rows and num_cols override it unless they are -1.
func (b *band) fitMatrices(ctx *kernel.Context, in *tensor.Tensor) error {
	given := [2]int{-1, -1}
	if ctx.NumInputs() > 4 {
		for i, name := range []string{"num_rows", "num_cols"} {
			if ctx.Input(2+i).Rank() != 0 {
				return status.InvalidArgumentf("%s must be a scalar", name)
			}
			given[i] = int(intarg.Scalar(ctx.Input(2 + i)))
		}
		if ctx.Input(4).Rank() != 0 {
			return status.InvalidArgumentf("padding_value must be a scalar")
		}
	}
	if in.Rank() < 1 {
		return status.InvalidArgumentf("diagonal must be at least 1-dim, received shape: %v", in.Shape())
	}
	if err := b.checkOrder(); err != nil {
		return err
	}
	if b.count() > 1 && (in.Rank() < 2 || in.Dim(in.Rank()-2) != b.count()) {
		return status.InvalidArgumentf("The number of diagonals provided in the input does not match the lower_diag_index and " +
			"upper_diag_index range.")
	}
	longest := in.Dim(in.Rank() - 1)
	minRows, minCols := longest-min(b.upper, 0), longest+max(b.lower, 0)
	switch {
	case given[0] != -1 && given[0] < minRows:
		return status.InvalidArgumentf("The number of rows is too small.")
	case given[1] != -1 && given[1] < minCols:
		return status.InvalidArgumentf("The number of columns is too small.")
	}
	b.rows, b.cols = given[0], given[1]
	if b.rows == -1 && b.cols == -1 {
		b.rows = max(minRows, minCols)
		b.cols = b.rows
	}
	if b.rows == -1 {
		b.rows = minRows
	} else if b.cols == -1 {
		b.cols = minCols
	}
	if b.rows != minRows && b.cols != minCols {
		return status.InvalidArgumentf("The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.")
	}
	return nil
}

func newMatrixSetDiag(c *kernel.Construction) (kernel.Kernel, error) {
	var proto band
	proto.alignment(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		b, in, diagonal := proto, ctx.Input(0), ctx.Input(1)
		if err := b.readRange(ctx, 2); err != nil {
			return err
		}
		if err := b.matrices(in); err != nil {
			return err
		}
		if diagonal.Rank() < 1 {
			return status.InvalidArgumentf("diagonal must be at least 1-dim, received shape: %v", diagonal.Shape())
		}
		if err := b.checkRange(""); err != nil {
			return err
		}
		if b.count() > 1 && (in.Rank() != diagonal.Rank() || diagonal.Dim(diagonal.Rank()-2) != b.count()) {
			return status.InvalidArgumentf(
				"The number of diagonals provided in `diag` is not consistent with `lower_diag_index` and `upper_diag_index`")
		}
		if want := b.packedShape(in.Shape()); !diagonal.Shape().Equal(want) {
			return status.InvalidArgumentf("Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] "+
				"is not equal to the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: %v\n"+
				"Diagonal shape: %v\nExpected diagonal shape: %v", in.Shape(), diagonal.Shape(), want)
		}
		if in.NumElements() == 0 {
			return ctx.PassInput(0, 0)
		}
		out, err := owned(in)
		if err != nil {
			return err
		}
		b.each(out.NumElements()/(b.rows*b.cols), func(matrix, packed strided.View) { strided.Copy(&out, matrix, diagonal, packed) })
		ctx.SetOutput(0, out)
		return nil
	}), nil
}
