package array

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Select",
		Doc: "Selects elements of t where condition is true and of e elsewhere. A scalar condition " +
			"selects whole tensors, and a vector condition selects slices of the first dimension.",
		In:    []string{"condition: bool", "t: T", "e: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: selectShape,
	}, selectV1)
	kernel.RegisterFunc(opdef.Def{
		Name: "SelectV2",
		Doc: "Selects elements of t where condition is true and of e elsewhere. All three inputs are " +
			"broadcast.",
		In:    []string{"condition: bool", "t: T", "e: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: selectV2Shape,
	}, selectV2)
}

func selectShape(c *opdef.ShapeContext) error {
	data, err := opdef.MergeShapes(c.In[1], c.In[2])
	if err != nil {
		return err
	}
	c.Out[0] = data
	cond := c.In[0]
	if !cond.RankKnown() || !data.RankKnown() || cond.Rank() == 0 {
		return nil
	}
	if cond.Rank() == 1 && data.Rank() != 1 {
		if data.Rank() == 0 {
			_, err := opdef.MergeShapes(data, cond)
			return err
		}
		_, err := opdef.MergeShapes(cond, shapefn.Of(data.Dim(0)))
		return err
	}
	c.Out[0], err = opdef.MergeShapes(data, cond)
	return err
}

func selectV2Shape(c *opdef.ShapeContext) error {
	both, err := opdef.BroadcastShapes(c.In[1], c.In[2])
	if err == nil {
		both, err = opdef.BroadcastShapes(c.In[0], both)
	}
	c.SetAll(both)
	return err
}

func selectV1(ctx *kernel.Context) error {
	cond, then, other := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	same := then.Shape().Equal(other.Shape())
	sizes := func() error {
		return status.InvalidArgumentf("'then' and 'else' must have the same size.  but received: %v vs. %v",
			then.Shape(), other.Shape())
	}
	switch {
	case cond.Rank() == 0:
		if !same {
			return sizes()
		}
		if tensor.Value[bool](cond) {
			return ctx.PassInput(1, 0)
		}
		return ctx.PassInput(2, 0)
	case cond.Rank() == 1 && then.Rank() != 1:
		if then.Rank() < 1 {
			return status.InvalidArgumentf("'then' must be at least a vector, but saw shape: %v", then.Shape())
		}
		if then.Dim(0) != cond.NumElements() {
			return status.InvalidArgumentf("Number of batches of 'then' must match size of 'cond', but saw: %d vs. %d",
				then.Dim(0), cond.NumElements())
		}
		if !same {
			return sizes()
		}
	case !cond.Shape().Equal(then.Shape()):
		return unequal(ctx, 1)
	case !same:
		return unequal(ctx, 2)
	}
	if then.NumElements() == 0 {
		return ctx.PassInput(1, 0)
	}
	return choose(ctx, cond, then, other, then.Shape(), max(1, then.NumElements()/max(1, cond.NumElements())))
}

func unequal(ctx *kernel.Context, input int) error {
	return status.InvalidArgumentf("Inputs to operation %s of type Select must have the same size and shape.  "+
		"Input 0: %v != input %d: %v", ctx.Node, ctx.Input(0).Shape(), input, ctx.Input(input).Shape())
}

func selectV2(ctx *kernel.Context) error {
	cond, then, other := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	shape, err := elementwise.Broadcast(then.Shape(), other.Shape())
	if err == nil {
		shape, err = elementwise.Broadcast(cond.Shape(), shape)
	}
	if err != nil {
		return status.InvalidArgumentf("condition %v, then %v, and else %v must be broadcastable",
			cond.Shape(), then.Shape(), other.Shape())
	}
	if cond.Rank() == 0 && then.Shape().Equal(other.Shape()) {
		return selectV1(ctx)
	}
	var full [3]tensor.Tensor
	for i, t := range []*tensor.Tensor{cond, then, other} {
		full[i], err = repeated(t, shape)
		defer full[i].Release()
		if err != nil {
			return err
		}
	}
	return choose(ctx, &full[0], &full[1], &full[2], shape, 1)
}

// repeated returns t broadcast to a shape, with a reference of its own.
func repeated(t *tensor.Tensor, shape tensor.Shape) (tensor.Tensor, error) {
	if t.Shape().Equal(shape) {
		return t.Retain(), nil
	}
	out, err := tensor.Alloc(t.DType(), shape)
	if err != nil {
		return out, err
	}
	whole := strided.Of(shape)
	strided.Copy(&out, whole, t, strided.Of(t.Shape()).Broadcast(whole.Dims))
	return out, nil
}

// choose sets output 0 to elements of then or of other. Each element of cond selects width
// elements.
func choose(ctx *kernel.Context, cond, then, other *tensor.Tensor, shape tensor.Shape, width int) error {
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	hit := tensor.Values[bool](cond)
	switch dtype := out.DType(); dtype {
	case tensor.String:
		pick(tensor.Values[string](out), hit, tensor.Values[string](then), tensor.Values[string](other), width)
	case tensor.Resource:
		pick(tensor.Values[*tensor.Handle](out), hit, tensor.Values[*tensor.Handle](then), tensor.Values[*tensor.Handle](other), width)
	case tensor.Variant:
		pick(tensor.Values[tensor.VariantValue](out), hit, tensor.Values[tensor.VariantValue](then),
			tensor.Values[tensor.VariantValue](other), width)
	default:
		switch dtype.Size() {
		case 1:
			pick(strided.Words[uint8](out), hit, strided.Words[uint8](then), strided.Words[uint8](other), width)
		case 2:
			pick(strided.Words[uint16](out), hit, strided.Words[uint16](then), strided.Words[uint16](other), width)
		case 4:
			pickWords[uint32](out, hit, then, other, width)
		case 8:
			pickWords[uint64](out, hit, then, other, width)
		default:
			pick(tensor.Values[complex128](out), hit, tensor.Values[complex128](then), tensor.Values[complex128](other), width)
		}
	}
	return nil
}

// pickWords is pick with vector code for conditions with one element per output element.
func pickWords[W uint32 | uint64](out *tensor.Tensor, cond []bool, then, other *tensor.Tensor, width int) {
	z, x, y := strided.Words[W](out), strided.Words[W](then), strided.Words[W](other)
	if width > 1 {
		pick(z, cond, x, y, width)
		return
	}
	parallel.For(len(cond), elementwise.Grain(0.5), func(lo, hi int) { simd.Blend(z[lo:hi], x[lo:hi], y[lo:hi], cond[lo:hi]) })
}

func pick[E any](out []E, cond []bool, then, other []E, width int) {
	parallel.For(len(cond), max(1, 16384/width), func(lo, hi int) {
		if width == 1 {
			for i := lo; i < hi; i++ {
				v := other[i]
				if cond[i] {
					v = then[i]
				}
				out[i] = v
			}
			return
		}
		for i := lo; i < hi; i++ {
			bulk.SafePoint()
			src := other
			if cond[i] {
				src = then
			}
			copy(out[i*width:(i+1)*width], src[i*width:])
		}
	})
}
