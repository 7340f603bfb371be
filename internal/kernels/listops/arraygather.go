package listops

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"dtype: type", "element_shape: shape = <unknown>"}
	registerVersions(opdef.Def{
		Name: "TensorArrayGather", Doc: "Stacks elements of a tensor array along a new first dimension.",
		In: []string{"indices: int32", "flow_in: float"}, Out: []string{"value: dtype"}, Attrs: attrs, Shape: gatherShape,
	}, newGather)
	kernel.RegisterNew(opdef.Def{
		Name: "TensorArrayPack", Doc: "Stacks all elements of a tensor array along a new first dimension.",
		In: []string{"handle: Ref(string)", "flow_in: float"}, Out: []string{"value: dtype"}, Attrs: attrs, Shape: opdef.UnknownShape,
	}, newGather)
	registerVersions(opdef.Def{
		Name: "TensorArrayConcat",
		Doc: "Concatenates all elements of a tensor array along their first dimension and returns their " +
			"lengths.",
		In: []string{"flow_in: float"}, Out: []string{"value: dtype", "lengths: int64"},
		Attrs: []string{"dtype: type", "element_shape_except0: shape = <unknown>"},
		Shape: arrayRule(concatShape, 0),
	}, newConcat)
}

func gatherShape(c *opdef.ShapeContext) error {
	return arrayRule(func(c *opdef.ShapeContext) error {
		if c.Op.Inputs[0].DType != tensor.Resource {
			return nil // the older form does not check the shape
		}
		elem, ok := elemOf(c)
		if !ok {
			elem = c.Attrs.Shape("element_shape")
		}
		indices, err := opdef.WithRank(c.In[1], 1)
		c.Out[0] = shapefn.Concat(indices, elem)
		return err
	}, 1, 0)(c)
}

func concatShape(c *opdef.ShapeContext) error {
	c.Out[1] = shapefn.Of(shapefn.Unknown)
	return nil
}

func newGather(c *kernel.Construction) (kernel.Kernel, error) {
	elem, all := c.Attrs.Shape("element_shape"), len(c.Inputs) == 2
	return onArray(func(ctx *kernel.Context, a *Array) error {
		if err := a.checkRequested(ctx.OutputType(0)); err != nil {
			return err
		}
		if err := a.refine(elem); err != nil {
			return err
		}
		indices, err := a.gathered(ctx, all)
		if err != nil {
			return err
		}
		if len(indices) == 0 {
			return emptyResult(ctx, elem, "element shape", "packing")
		}
		values, err := a.readMany(ctx, indices)
		if err != nil {
			return err
		}
		defer release(values)
		return stack(ctx, elem, values)
	})(c)
}

// gathered returns the indices of the gathered elements: input 1, or all.
func (a *Array) gathered(ctx *kernel.Context, all bool) ([]int32, error) {
	if all {
		return a.allIndices()
	}
	t := ctx.Input(1)
	if t.Rank() != 1 {
		return nil, status.InvalidArgumentf("Expected indices to be a vector, but received shape: %v", t.Shape())
	}
	return tensor.Values[int32](t), nil
}

// allIndices returns the indices of all elements.
func (a *Array) allIndices() ([]int32, error) {
	n, err := a.packSize()
	indices := membudget.Make[int32](n)
	for i := range indices {
		indices[i] = int32(i)
	}
	return indices, err
}

// emptyResult sets output 0 to a tensor without rows. The shape of a row must be known.
func emptyResult(ctx *kernel.Context, elem tensor.PartialShape, what, doing string) error {
	full, ok := elem.Full()
	if !ok {
		return status.Unimplementedf("TensorArray has size zero, but %s %v is not fully defined. "+
			"Currently only static shapes are supported when %s zero-size TensorArrays.", what, elem, doing)
	}
	_, err := ctx.Allocate(0, slices.Concat(tensor.Shape{0}, full))
	return err
}

// stack sets output 0 to the values stacked along a new dimension.
func stack(ctx *kernel.Context, elem tensor.PartialShape, values []tensor.Tensor) error {
	first := values[0].Shape()
	if !elem.CompatibleWith(first) {
		return status.InvalidArgumentf("TensorArray was passed element_shape %v which does not match the Tensor at index 0: %v", elem, first)
	}
	for i := range values {
		if shape := values[i].Shape(); !shape.Equal(first) {
			return status.InvalidArgumentf("TensorArray has inconsistent shapes.  Index 0 has shape: %v but index %d has shape: %v",
				first, i, shape)
		}
	}
	if ctx.GPU() != nil {
		out, err := ctx.Allocate(0, slices.Concat(tensor.Shape{int64(len(values))}, first))
		if err != nil {
			return err
		}
		for i := range values {
			stacking.SetRow(out, i, &values[i])
		}
		return nil
	}
	out, err := stacking.Stack(ctx.OutputType(0), first, values)
	if err == nil {
		ctx.SetOutput(0, out)
	}
	return err
}

func newConcat(c *kernel.Construction) (kernel.Kernel, error) {
	rest := c.Attrs.Shape("element_shape_except0")
	return onArray(func(ctx *kernel.Context, a *Array) error {
		if err := a.checkRequested(ctx.OutputType(0)); err != nil {
			return err
		}
		indices, err := a.allIndices()
		if err != nil {
			return err
		}
		if len(indices) == 0 {
			ctx.SetOutput(1, tensor.Vector[int64]())
			return emptyResult(ctx, rest, "element_shape_except0", "concatenating")
		}
		values, err := a.readMany(ctx, indices)
		if err != nil {
			return err
		}
		defer release(values)
		lengths, err := concatLengths(rest, values)
		if err != nil {
			return err
		}
		ctx.SetOutput(1, tensor.Vector(lengths...))
		return concat(ctx, values)
	})(c)
}

// concatLengths returns the first dimension of each value. The other dimensions must be equal.
func concatLengths(rest tensor.PartialShape, values []tensor.Tensor) ([]int64, error) {
	lengths := membudget.Make[int64](len(values))
	var first tensor.Shape
	for i := range values {
		shape := values[i].Shape()
		if len(shape) == 0 {
			return nil, status.InvalidArgumentf(
				"Concat saw a scalar shape at index %d but requires at least vectors.  Did you mean to call pack?", i)
		}
		lengths[i] = shape[0]
		switch {
		case i == 0:
			if first = shape[1:]; !rest.CompatibleWith(first) {
				return nil, status.InvalidArgumentf("TensorArray was passed element_shape_except0 %v but index 0 has (excepting "+
					"dimension 0) shape: %v which does not match.", rest, first)
			}
		case !first.Equal(shape[1:]):
			return nil, status.InvalidArgumentf("TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: %v "+
				"but index %d has (excepting dimension 0) shape: %v", first, i, shape[1:])
		}
	}
	return lengths, nil
}

// concat sets output 0 to the values concatenated along their first dimension.
func concat(ctx *kernel.Context, values []tensor.Tensor) error {
	shape := slices.Clone(values[0].Shape())
	shape[0] = 0
	for i := range values {
		shape[0] += values[i].Shape()[0]
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	row := 0
	for i := range values {
		stacking.SetRows(out, row, &values[i])
		row += values[i].Dim(0)
	}
	return nil
}
