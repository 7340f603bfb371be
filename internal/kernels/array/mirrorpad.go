package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "MirrorPad",
		Doc: "Pads a tensor with its reflection. The reflection includes the border (SYMMETRIC) or " +
			"excludes it (REFLECT).",
		In:    []string{"input: T", "paddings: Tpaddings"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tpaddings: {int32, int64} = int32", "mode: {'REFLECT', 'SYMMETRIC'}"},
		Shape: padShape,
	}, newMirrorPad)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name:  "MirrorPadGrad",
			Doc:   "Computes the gradient of MirrorPad: adds each reflected element to its source.",
			In:    []string{"input: T", "paddings: Tpaddings"},
			Out:   []string{"output: T"},
			Attrs: []string{"T: type", "Tpaddings: {int32, int64} = int32", "mode: {'REFLECT', 'SYMMETRIC'}"},
			Shape: mirrorPadGradShape,
		},
		Kernels: kernel.ForTypes("T", newMirrorPadGrad, typeset.Numbers...),
	})
}

// mirrorOffset returns the number of border elements that a reflection omits.
func mirrorOffset(attrs opdef.Attrs) int {
	if attrs.String("mode") == "REFLECT" {
		return 1
	}
	return 0
}

// checkMirror checks paddings against the shape of the unpadded tensor, which errors call what.
func checkMirror(paddings [][2]int, shape tensor.Shape, offset int, what string) error {
	for i, p := range paddings {
		limit := int(shape[i]) - offset
		if p[0] > limit || p[1] > limit {
			relation, fault := "no greater than", "greater than"
			if offset == 1 {
				relation, fault = "less than", "not less than"
			}
			return status.InvalidArgumentf("paddings must be %s the %sdimension size: %d, %d %s %d",
				relation, what, p[0], p[1], fault, shape[i])
		}
	}
	return nil
}

// mirrorTexts holds the error texts that differ between the two directions.
type mirrorTexts struct{ rank, negative, what string }

var (
	padTexts  = mirrorTexts{"%v, %v", "paddings must be non-negative: %d %d", ""}
	gradTexts = mirrorTexts{"%v %v", "Paddings must be non-negative: %d, %d", "output "}
)

func readMirror(t *tensor.Tensor, shape tensor.Shape, texts mirrorTexts) ([][2]int, error) {
	if t.Rank() != 2 || t.Dim(1) != 2 {
		return nil, status.InvalidArgumentf("paddings must be a matrix with 2 columns: %v", t.Shape())
	}
	if t.Dim(0) != len(shape) {
		return nil, status.InvalidArgumentf("The first dimension of paddings must be the rank of inputs"+texts.rank, t.Shape(), shape)
	}
	given := intarg.Values(t)
	out := membudget.Make[[2]int](len(shape))
	for i := range shape {
		before, after := given[2*i], given[2*i+1]
		if before < 0 || after < 0 {
			return nil, status.InvalidArgumentf(texts.negative, before, after)
		}
		out[i] = [2]int{int(before), int(after)}
	}
	return out, nil
}

func newMirrorPad(c *kernel.Construction) (kernel.Kernel, error) {
	offset := mirrorOffset(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		paddings, err := readMirror(ctx.Input(1), in.Shape(), padTexts)
		if err != nil {
			return err
		}
		if err := checkMirror(paddings, in.Shape(), offset, padTexts.what); err != nil {
			return err
		}
		shape := slices.Clone(in.Shape())
		for i, p := range paddings {
			shape[i] += int64(p[0] + p[1])
		}
		if shape.Equal(in.Shape()) {
			return ctx.PassInput(0, 0)
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		strided.Copy(out, inside(shape, paddings, in.Shape()), in, strided.Of(in.Shape()))
		for axis := range paddings {
			for _, m := range mirrors(shape, paddings, axis, offset) {
				strided.Copy(out, m.image, out, m.source)
			}
		}
		return nil
	}), nil
}

// mirror is one side of one dimension: the view of the elements beyond the border and the view of
// the elements they reflect.
type mirror struct{ image, source strided.View }

// mirrors returns both sides of an axis of a padded tensor. The axes before it are already filled,
// and the axes after it are not.
func mirrors(padded tensor.Shape, paddings [][2]int, axis, offset int) []mirror {
	whole := strided.Of(padded)
	for i := axis + 1; i < len(padded); i++ {
		p := paddings[i]
		whole.Slice(i, p[0], int(padded[i])-p[0]-p[1], 1)
	}
	p, n := paddings[axis], int(padded[axis])
	side := func(to, from, count int) mirror {
		m := mirror{image: whole.Clone(), source: whole.Clone()}
		m.image.Slice(axis, to, count, 1)
		m.source.Slice(axis, from, count, -1)
		return m
	}
	return []mirror{
		side(0, 2*p[0]-1+offset, p[0]),
		side(n-p[1], n-p[1]-1-offset, p[1]),
	}
}

func mirrorPadGradShape(c *opdef.ShapeContext) error {
	in, paddings, err := padArguments(c)
	if err != nil || paddings.Dim(0) < 0 {
		return err
	}
	given, known := shapefn.Ints(c, 1)
	if !known {
		c.Out[0] = tensor.UnknownDims(in.Rank())
		return nil
	}
	dims := in.Dims()
	for i, d := range dims {
		before, after := given[2*i], given[2*i+1]
		if before < 0 || after < 0 {
			return status.InvalidArgumentf("Paddings must be non-negative")
		}
		if dims[i], err = shapefn.Minus(d, before+after); err != nil {
			return err
		}
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

func newMirrorPadGrad(c *kernel.Construction) (kernel.Kernel, error) {
	offset := mirrorOffset(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		paddings, err := readMirror(ctx.Input(1), in.Shape(), gradTexts)
		if err != nil {
			return err
		}
		shape := slices.Clone(in.Shape())
		for i, p := range paddings {
			shape[i] -= int64(p[0] + p[1])
			if shape[i] < 0 {
				return status.InvalidArgumentf("Total paddings must be no greater than the input dimension size: %d, %d, %d",
					p[0], p[1], in.Shape()[i])
			}
		}
		if err := checkMirror(paddings, shape, offset, gradTexts.what); err != nil {
			return err
		}
		work, err := in.Clone()
		if err != nil {
			return err
		}
		defer work.Release()
		for axis := range slices.Backward(paddings) {
			for _, m := range mirrors(in.Shape(), paddings, axis, offset) {
				if err := addView(&work, m.source, m.image); err != nil {
					return err
				}
			}
		}
		return copyView(ctx, &work, inside(in.Shape(), paddings, shape), shape)
	}), nil
}

// addView adds the elements of t in view src to those in view dst.
func addView(t *tensor.Tensor, dst, src strided.View) error {
	shape := make(tensor.Shape, len(dst.Dims))
	for i, d := range dst.Dims {
		shape[i] = int64(d)
	}
	a, err := tensor.Alloc(t.DType(), shape)
	if err != nil {
		return err
	}
	defer a.Release()
	b, err := tensor.Alloc(t.DType(), shape)
	if err != nil {
		return err
	}
	defer b.Release()
	dense := strided.Of(shape)
	strided.Copy(&a, dense, t, dst)
	strided.Copy(&b, dense, t, src)
	elementwise.Accumulate(elementwise.Add, &a, &b)
	strided.Copy(t, dst, &a, dense)
	return nil
}
