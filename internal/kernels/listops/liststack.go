package listops

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs, input := []string{"element_dtype: type"}, "input_handle: variant"
	kernel.RegisterNew(opdef.Def{
		Name: "TensorListStack",
		Doc: "Stacks the elements of a list along a new first dimension. Unless num_elements is -1, the " +
			"list must have that many elements.",
		In: []string{input, "element_shape: int32"}, Out: []string{"tensor: element_dtype"},
		Attrs: []string{"element_dtype: type", "num_elements: int = -1"}, Shape: stackShape,
	}, newListStack)
	registerTyped(opdef.Def{
		Name: "TensorListGather", Doc: "Stacks elements of a list along a new first dimension.",
		In: []string{input, "indices: int32", "element_shape: int32"}, Out: []string{"values: element_dtype"}, Attrs: attrs,
		Shape: gatherListShape,
	}, gatherList)
	tensors := []string{"tensor: element_dtype", "lengths: int64"}
	kernel.RegisterNew(opdef.Def{
		Name: "TensorListConcat",
		Doc:  "Concatenates the elements of a list along their first dimension and returns their lengths.",
		In:   []string{input}, Out: tensors, Attrs: []string{"element_dtype: type", "element_shape: shape = <unknown>"},
		Shape: concatListShape,
	}, newListConcat)
	kernel.RegisterNew(opdef.Def{
		Name: "TensorListConcatV2",
		Doc: "Concatenates the elements of a list along their first dimension and returns their lengths. " +
			"Uninitialized elements are zeros with the lengths in leading_dims.",
		In:  []string{input, "element_shape: shape_type", "leading_dims: int64"},
		Out: tensors, Attrs: []string{"element_dtype: type", "shape_type: {int32, int64}"}, Shape: concatListShape,
	}, newListConcat)
}

func newListStack(c *kernel.Construction) (kernel.Kernel, error) {
	dtype, n := c.Attrs.Type("element_dtype"), c.Attrs.Int("num_elements")
	return kernel.Func(func(ctx *kernel.Context) error {
		l, err := inputOf(ctx, 0, dtype)
		if err != nil {
			return err
		}
		if n != -1 && l.items.n != n {
			return status.InvalidArgumentf("Operation expected a list with %d elements but got a list with %d elements.", n, l.items.n)
		}
		elem, err := l.elemShape(ctx, 1)
		if err != nil {
			return err
		}
		if _, full := elem.Full(); !full && l.items.n == 0 {
			return status.InvalidArgumentf("Tried to stack elements of an empty list with non-fully-defined element_shape: %v", elem)
		}
		if elem, err = l.refine(elem); err != nil {
			return err
		}
		shape, ok := elem.Full()
		if !ok {
			return status.InvalidArgumentf("Tried to stack list which only contains uninitialized tensors and has a "+
				"non-fully-defined element_shape: %v", elem)
		}
		out, err := ctx.AllocateZeros(0, slices.Concat(tensor.Shape{int64(l.items.n)}, shape))
		if err != nil {
			return err
		}
		for i, t := range l.items.all() {
			stacking.SetRow(out, i, t)
		}
		return nil
	}), nil
}

func gatherList(ctx *kernel.Context, dtype tensor.DType) error {
	l, err := inputOf(ctx, 0, dtype)
	if err != nil {
		return err
	}
	indices := tensor.Values[int32](ctx.Input(1))
	elem, err := l.elemShape(ctx, 2)
	if err != nil {
		return err
	}
	if _, full := elem.Full(); !full && len(indices) == 0 {
		return status.InvalidArgumentf("Tried to gather 0-elements from a list with non-fully-defined shape: %v", elem)
	}
	for _, i := range indices {
		if i < 0 || int(i) >= l.items.n {
			return status.InvalidArgumentf("Trying to gather element %d in a list with %d elements.", i, l.items.n)
		}
		if t := l.items.get(int(i)); t != nil {
			if elem, err = merge(elem, t.Shape().Partial()); err != nil {
				return err
			}
		}
	}
	shape, ok := elem.Full()
	if !ok {
		return status.InvalidArgumentf("Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: %v", elem)
	}
	out, err := ctx.AllocateZeros(0, slices.Concat(tensor.Shape{int64(len(indices))}, shape))
	if err != nil {
		return err
	}
	for row, i := range indices {
		if t := l.items.get(int(i)); t != nil {
			stacking.SetRow(out, row, t)
		}
	}
	return nil
}

// listConcat is the kernel that concatenates elements along their first dimension.
type listConcat struct {
	dtype tensor.DType
	elem  tensor.PartialShape // element shape from the attribute, if it is not an input
}

func newListConcat(c *kernel.Construction) (kernel.Kernel, error) {
	k := &listConcat{c.Attrs.Type("element_dtype"), c.Attrs.Shape("element_shape")}
	if k.elem.Rank() == 0 {
		return nil, status.InvalidArgumentf("element_shape must not be empty")
	}
	if k.elem.RankKnown() { // the first dimension of elements may vary
		k.elem = tensor.MakePartial(slices.Concat([]int64{tensor.UnknownDim}, k.elem.Dims()[1:])...)
	}
	return k, nil
}

// Compute implements kernel.Kernel.
func (k *listConcat) Compute(ctx *kernel.Context) error {
	l, err := inputOf(ctx, 0, k.dtype)
	if err != nil {
		return err
	}
	elem := k.elem
	if ctx.NumInputs() > 1 {
		if elem, err = l.elemShape(ctx, 1); err != nil {
			return err
		}
		if elem.Rank() == 0 {
			return status.InvalidArgumentf("Concat requires elements to be at least vectors, found scalars instead.")
		}
	}
	first, rest, err := l.concatShape(elem)
	if err != nil {
		return err
	}
	lengths, err := l.lengths(ctx, first)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, n := range lengths {
		total += n
	}
	out, err := ctx.AllocateZeros(0, slices.Concat(tensor.Shape{total}, rest))
	if err != nil {
		return err
	}
	row := 0
	for i, n := range lengths {
		if t := l.items.get(i); t != nil {
			stacking.SetRows(out, row, t)
		}
		row += int(n)
	}
	ctx.SetOutput(1, tensor.Vector(lengths...))
	return nil
}

// concatShape returns the first dimension of the elements, or -1 if it varies, and the other
// dimensions. They come from the known part of the element shape and from the elements that are
// set.
func (l *List) concatShape(elem tensor.PartialShape) (first int64, rest tensor.Shape, err error) {
	first, others := int64(-1), tensor.PartialShape{}
	if elem.RankKnown() {
		first, others = elem.Dim(0), tensor.MakePartial(elem.Dims()[1:]...)
	}
	if _, full := others.Full(); !full && l.items.n == 0 {
		return 0, nil, status.InvalidArgumentf("All except the first dimension must be fully defined when concating an empty tensor "+
			"list. element_shape: %v", others)
	}
	given, one := first, true
	for i, t := range l.items.all() {
		shape := t.Shape()
		if len(shape) == 0 {
			return 0, nil, status.InvalidArgumentf("Concat saw a scalar shape at index %d but requires at least vectors.", i)
		}
		if others, err = merge(others, shape[1:].Partial()); err != nil {
			return 0, nil, err
		}
		if given != -1 && given != shape[0] {
			return 0, nil, status.InvalidArgumentf("First entry of element_shape input does not match the first dim of list element at "+
				"index: %d Expected: %d Actual: %d", i, given, shape[0])
		}
		switch {
		case !one:
		case first == -1:
			first = shape[0]
		case first != shape[0]:
			first, one = -1, false
		}
	}
	rest, ok := others.Full()
	if !ok {
		return 0, nil, status.InvalidArgumentf("Trying to concat list with only uninitialized tensors but "+
			"element_shape_except_first_dim is not fully defined: %v", others)
	}
	return first, rest, nil
}

// lengths returns the first dimension of each element. For unset elements, it is taken from input 2
// or else is first.
func (l *List) lengths(ctx *kernel.Context, first int64) ([]int64, error) {
	var given []int64
	if ctx.NumInputs() > 2 {
		given = tensor.Values[int64](ctx.Input(2))
	}
	lengths := membudget.Make[int64](l.items.n)
	for i := range lengths {
		switch t := l.items.get(i); {
		case t != nil:
			lengths[i] = t.Shape()[0]
		case i < len(given) && given[i] >= 0:
			lengths[i] = given[i]
		case first >= 0:
			lengths[i] = first
		case ctx.NumInputs() < 3:
			return nil, status.InvalidArgumentf("Concating lists with uninitialized tensors is not supported in this version of " +
				"TensorListConcat. Consider updating your GraphDef to run the newer version.")
		default:
			return nil, status.InvalidArgumentf("List contains uninitialized tensor at index %d but leading_dims has only %d elements.",
				i, len(given))
		}
	}
	return lengths, nil
}
