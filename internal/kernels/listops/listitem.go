package listops

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs, input, output := []string{"element_dtype: type"}, "input_handle: variant", []string{"output_handle: variant"}
	registerTyped(opdef.Def{
		Name: "TensorListPushBack", Doc: "Returns a list with a tensor appended.",
		In: []string{input, "tensor: element_dtype"}, Out: output, Attrs: attrs, Shape: pushShape,
	}, pushBack)
	registerTyped(opdef.Def{
		Name: "TensorListPushBackBatch", Doc: "Returns lists with one row of a tensor appended to each.",
		In: []string{"input_handles: variant", "tensor: element_dtype"}, Out: []string{"output_handles: variant"}, Attrs: attrs,
		Shape: pushBatchShape,
	}, pushBatch)
	registerTyped(opdef.Def{
		Name: "TensorListPopBack", Doc: "Returns the last element of a list and the list without it.",
		In: []string{input, "element_shape: int32"}, Out: []string{"output_handle: variant", "tensor: element_dtype"}, Attrs: attrs,
		Shape: popShape,
	}, popBack)
	registerTyped(opdef.Def{
		Name: "TensorListGetItem", Doc: "Returns an element of a list.",
		In: []string{input, "index: int32", "element_shape: Tshape"}, Out: []string{"item: element_dtype"},
		Attrs: []string{"element_dtype: type", "Tshape: {int32, int64} = int32"}, Shape: getShape,
	}, getItem)
	kernel.RegisterNew(opdef.Def{
		Name: "TensorListSetItem",
		Doc: "Returns a list with an element replaced. With resize_if_index_out_of_bounds, the list " +
			"grows if necessary.",
		In: []string{input, "index: int32", "item: element_dtype"}, Out: output,
		Attrs: []string{"element_dtype: type", "resize_if_index_out_of_bounds: bool = false"}, Shape: setShape,
	}, newSetItem)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorListLength", Doc: "Returns the number of elements of a list.",
		In: []string{input}, Out: []string{"length: int32"}, Shape: opdef.ScalarShape,
	}, length)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorListElementShape", Doc: "Returns the known part of the element shape of a list.",
		In: []string{input}, Out: []string{"element_shape: shape_type"}, Attrs: []string{"shape_type: {int32, int64}"},
		Shape: elementShapeShape,
	}, elementShape)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorListResize",
		Doc:  "Returns a list resized to size elements. Additional elements are uninitialized.",
		In:   []string{input, "size: int32"}, Out: output, Shape: resizeShape,
	}, resize)
	registerTyped(opdef.Def{
		Name: "TensorListConcatLists", Doc: "Concatenates pairs of lists.",
		In: []string{"input_a: variant", "input_b: variant"}, Out: []string{"output: variant"}, Attrs: attrs, Shape: concatListsShape,
	}, concatLists)
}

func pushBack(ctx *kernel.Context, dtype tensor.DType) error {
	l, err := input(ctx, 0)
	if err != nil {
		return err
	}
	value := ctx.Input(1)
	if !l.elem.CompatibleWith(value.Shape()) {
		return status.InvalidArgumentf("Tried to append a tensor with incompatible shape to a list. Op element shape: %v list shape: %v",
			value.Shape(), l.elem)
	}
	if l.dtype != dtype {
		return status.InvalidArgumentf("Invalid data types; op elements %v but list elements %v", dtype, l.dtype)
	}
	if l.limit != -1 && l.items.n >= l.limit {
		return status.InvalidArgumentf("Tried to push item into a full list list size: %d max_num_elements: %d", l.items.n, l.limit)
	}
	own, err := element(ctx, l, 1)
	if err == nil {
		l.with(l.items.push(own)).setOutput(ctx, 0)
	}
	return err
}

func pushBatch(ctx *kernel.Context, dtype tensor.DType) error {
	lists, value := ctx.Input(0), ctx.Input(1)
	if value.Rank() == 0 {
		return status.InvalidArgumentf("Expected tensor to be at least a vector, but saw shape: %v", value.Shape())
	}
	if lists.Rank() != 1 {
		return status.InvalidArgumentf("Expected input_handles to be a vector, but saw shape: %v", lists.Shape())
	}
	if value.Dim(0) != lists.Dim(0) {
		return status.InvalidArgumentf("Expected tensor.shape[0] == input_handles.size, but saw %d vs. %d", value.Dim(0), lists.Dim(0))
	}
	out := membudget.Make[tensor.VariantValue](lists.Dim(0))
	var meter membudget.Meter
	for i, v := range tensor.Values[tensor.VariantValue](lists) {
		meter.MustTake(elementBytes + pathBytes)
		l, row := asList(v), rowOf(value, i)
		if l != nil {
			var err error
			if l, err = l.on(ctx); err != nil {
				return err
			}
		}
		switch {
		case l == nil:
			return status.InvalidArgumentf("Input handle at index %d is not a list. Saw: '%T'", i, v.Value)
		case !l.elem.CompatibleWith(row.Shape()):
			return status.InvalidArgumentf("Tried to append a tensor with incompatible shape to a list at index %d. Op element shape: %v "+
				"list shape: %v", i, row.Shape(), l.elem)
		case l.dtype != dtype:
			return status.InvalidArgumentf("Invalid data type at index %d; op elements %v but list elements %v", i, dtype, l.dtype)
		}
		out[i].Value = l.with(l.items.push(l.held(row)))
	}
	ctx.SetOutput(0, tensor.Vector(out...))
	return nil
}

func popBack(ctx *kernel.Context, dtype tensor.DType) error {
	l, err := inputOf(ctx, 0, dtype)
	if err != nil {
		return err
	}
	if l.items.n == 0 {
		return status.InvalidArgumentf("Trying to pop from an empty list.")
	}
	last := l.items.n - 1
	if t := l.items.get(last); t != nil {
		ctx.SetOutput(1, t.Retain())
	} else {
		elem, err := l.elemShape(ctx, 1)
		if err != nil {
			return err
		}
		if err := zeros(ctx, 1, elem, "Trying to read an uninitialized tensor but element_shape is not fully defined.%v"); err != nil {
			return err
		}
	}
	l.with(l.items.resize(last)).setOutput(ctx, 0)
	return nil
}

// zeros sets output i to zeros. elem must be fully known; format is the error if it is not.
func zeros(ctx *kernel.Context, i int, elem tensor.PartialShape, format string) error {
	shape, ok := elem.Full()
	if !ok {
		return status.InvalidArgumentf(format, elem)
	}
	_, err := ctx.AllocateZeros(i, shape)
	return err
}

// refine returns the known part of the element shape, merged with the shapes of all set elements.
func (l *List) refine(elem tensor.PartialShape) (tensor.PartialShape, error) {
	for _, t := range l.items.all() {
		var err error
		if elem, err = merge(elem, t.Shape().Partial()); err != nil {
			return elem, err
		}
	}
	return elem, nil
}

func getItem(ctx *kernel.Context, dtype tensor.DType) error {
	l, err := inputOf(ctx, 0, dtype)
	if err != nil {
		return err
	}
	i := int(intarg.Scalar(ctx.Input(1)))
	if i < 0 || i >= l.items.n {
		return status.InvalidArgumentf("Trying to access element %d in a list with %d elements.", i, l.items.n)
	}
	if t := l.items.get(i); t != nil {
		ctx.SetOutput(0, t.Retain())
		return nil
	}
	elem, err := l.elemShape(ctx, 2)
	if err != nil {
		return err
	}
	if _, full := elem.Full(); !full {
		if elem, err = l.refine(elem); err != nil {
			return err
		}
	}
	return zeros(ctx, 0, elem,
		"Trying to read an uninitialized tensor but element_shape is not fully defined: %v and no list element is set.")
}

func newSetItem(c *kernel.Construction) (kernel.Kernel, error) {
	dtype, grow := c.Attrs.Type("element_dtype"), c.Attrs.Bool("resize_if_index_out_of_bounds")
	return kernel.Func(func(ctx *kernel.Context) error {
		l, err := inputOf(ctx, 0, dtype)
		if err != nil {
			return err
		}
		index, value := ctx.Input(1), ctx.Input(2)
		if index.Rank() != 0 {
			return status.InvalidArgumentf("Expected argument 1 to be a scalar. Received%v", index)
		}
		if !l.elem.CompatibleWith(value.Shape()) {
			return status.InvalidArgumentf("Tried to set a tensor with incompatible shape at a list index. Item element shape: %v "+
				"list shape: %v", value.Shape(), l.elem)
		}
		i, items := int(tensor.Value[int32](index)), l.items
		if i < 0 || i >= items.n && !grow {
			return status.InvalidArgumentf("Trying to modify element %d in a list with %d elements.", i, items.n)
		}
		own, err := element(ctx, l, 2)
		if err == nil {
			l.with(items.resize(max(items.n, i+1)).set(i, own)).setOutput(ctx, 0)
		}
		return err
	}), nil
}

func length(ctx *kernel.Context) error {
	l, err := input(ctx, 0)
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(int32(l.items.n)))
	}
	return err
}

func elementShape(ctx *kernel.Context) error {
	l, err := input(ctx, 0)
	if err != nil {
		return err
	}
	shape, dims := tensor.Shape{int64(l.elem.Rank())}, l.elem.Dims()
	if !l.elem.RankKnown() {
		shape, dims = tensor.Shape{}, []int64{-1}
	}
	out, err := ctx.Allocate(0, shape)
	if err == nil {
		intarg.Set(out, dims)
	}
	return err
}

func resize(ctx *kernel.Context) error {
	l, err := input(ctx, 0)
	if err != nil {
		return err
	}
	size := ctx.Input(1)
	if size.Rank() != 0 {
		return status.InvalidArgumentf("size must be a scalar")
	}
	n := int(tensor.Value[int32](size))
	if n < 0 {
		return status.InvalidArgumentf("TensorListSlice expects size to be non-negative. Got: %d", n)
	}
	l.with(l.items.resize(n)).setOutput(ctx, 0)
	return nil
}

func concatLists(ctx *kernel.Context, dtype tensor.DType) error {
	a, b := ctx.Input(0), ctx.Input(1)
	if !a.Shape().Equal(b.Shape()) {
		return status.InvalidArgumentf("Incompatible input TensorList tensor shapes: %v vs. %v", a.Shape(), b.Shape())
	}
	out, err := ctx.Allocate(0, a.Shape())
	if err != nil {
		return err
	}
	to, others := tensor.Values[tensor.VariantValue](out), tensor.Values[tensor.VariantValue](b)
	for i, v := range tensor.Values[tensor.VariantValue](a) {
		if to[i].Value, err = chain(ctx, i, v, others[i], dtype); err != nil {
			return err
		}
	}
	return nil
}

// chain returns the concatenation of the lists at position i of two tensors.
func chain(ctx *kernel.Context, i int, a, b tensor.VariantValue, dtype tensor.DType) (*List, error) {
	first, second := asList(a), asList(b)
	for _, in := range []struct {
		name  string
		list  *List
		value tensor.VariantValue
	}{{"input_a", first, a}, {"input_b", second, b}} {
		if in.list == nil {
			return nil, status.InvalidArgumentf("%s is not a TensorList at index %d.  Saw: '%T'", in.name, i, in.value.Value)
		}
		if in.list.dtype != dtype {
			return nil, status.InvalidArgumentf("%s[%d].dtype != element_dtype.  Saw: %v vs. %v", in.name, i, in.list.dtype, dtype)
		}
	}
	if !first.elem.Equal(second.elem) {
		return nil, status.InvalidArgumentf("input_a and input_b TensorList element shapes are not identical at index %d.  Saw %v vs. %v",
			i, first.elem, second.elem)
	}
	first, err := first.on(ctx)
	if err != nil {
		return nil, err
	}
	if second, err = second.on(ctx); err != nil {
		return nil, err
	}
	n := first.items.n
	if n+second.items.n > math.MaxInt32 { // which TensorListLength could not return
		return nil, status.InvalidArgumentf("the concatenation of lists of %d and %d elements is too long", n, second.items.n)
	}
	items, set := first.items.resize(n+second.items.n), 0
	var meter membudget.Meter
	for j, t := range second.items.all() {
		if set%checkEvery == 0 && ctx.Context().Err() != nil {
			return nil, status.FromContext(ctx.Context(), "concatenating lists")
		}
		set++
		meter.MustTake(pathBytes)
		items = items.set(n+j, t)
	}
	return first.with(items), nil
}
