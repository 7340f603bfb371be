package listops

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// registerTyped registers an operation whose kernel is a function of the element type.
func registerTyped(def opdef.Def, compute func(ctx *kernel.Context, dtype tensor.DType) error) {
	kernel.RegisterNew(def, func(c *kernel.Construction) (kernel.Kernel, error) {
		dtype := c.Attrs.Type("element_dtype")
		return kernel.Func(func(ctx *kernel.Context) error { return compute(ctx, dtype) }), nil
	})
}

func init() {
	attrs := []string{"element_dtype: type", "shape_type: {int32, int64}"}
	handle, output := []string{"handle: variant"}, []string{"output_handle: variant"}
	registerTyped(opdef.Def{
		Name: "EmptyTensorList",
		Doc: "Creates an empty tensor list with at most max_num_elements elements, or any number if it " +
			"is -1.",
		In: []string{"element_shape: shape_type", "max_num_elements: int32"}, Out: handle, Attrs: attrs, Shape: newListShape(0),
	}, emptyList)
	registerTyped(opdef.Def{
		Name: "TensorListReserve", Doc: "Creates a tensor list with the given number of uninitialized elements.",
		In: []string{"element_shape: shape_type", "num_elements: int32"}, Out: handle, Attrs: attrs, Shape: newListShape(0),
	}, reserve)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorListFromTensor", Doc: "Creates a list with the rows of a tensor as elements.",
		In: []string{"tensor: element_dtype", "element_shape: shape_type"}, Out: output, Attrs: attrs, Shape: fromTensorShape,
	}, fromTensor)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorListSplit",
		Doc:  "Creates a list with pieces of a tensor, split along its first dimension, as elements.",
		In:   []string{"tensor: element_dtype", "element_shape: shape_type", "lengths: int64"}, Out: output, Attrs: attrs, Shape: splitShape,
	}, splitList)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorListScatter", Doc: "Creates a list with the rows of a tensor at the given indices.",
		In:  []string{"tensor: element_dtype", "indices: int32", "element_shape: shape_type"},
		Out: output, Attrs: attrs, Shape: newListShape(2),
	}, scatterList)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorListScatterV2",
		Doc: "Creates a list of num_elements elements, or as many as necessary if it is -1, with the " +
			"rows of a tensor at the given indices.",
		In:  []string{"tensor: element_dtype", "indices: int32", "element_shape: shape_type", "num_elements: int32"},
		Out: output, Attrs: attrs, Shape: newListShape(2),
	}, scatterList)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorListScatterIntoExistingList",
		Doc:  "Returns a list with the elements at the given indices replaced by the rows of a tensor.",
		In:   []string{"input_handle: variant", "tensor: element_dtype", "indices: int32"},
		Out:  output, Attrs: attrs[:1], Shape: scatterIntoShape,
	}, scatterInto)
}

func emptyList(ctx *kernel.Context, dtype tensor.DType) error {
	limit := ctx.Input(1)
	if limit.Rank() != 0 {
		return status.InvalidArgumentf("max_num_elements expected to be a scalar but got shape: %v", limit.Shape())
	}
	elem, err := shapeOf(ctx.Input(0))
	if err == nil {
		(&List{dtype: dtype, gpu: ctx.GPU(), elem: elem, limit: int(tensor.Value[int32](limit))}).setOutput(ctx, 0)
	}
	return err
}

func reserve(ctx *kernel.Context, dtype tensor.DType) error {
	elem, err := shapeOf(ctx.Input(0))
	if err != nil {
		return err
	}
	size := ctx.Input(1)
	if size.Rank() != 0 {
		return status.InvalidArgumentf("The num_elements to reserve must be a tensor size 1, but got %v", size.Shape())
	}
	n := int(tensor.Value[int32](size))
	if n < 0 {
		return status.InvalidArgumentf("The num_elements to reserve must be a non negative number, but got %d", n)
	}
	(&List{dtype: dtype, gpu: ctx.GPU(), elem: elem, limit: -1, items: vector{}.resize(n)}).setOutput(ctx, 0)
	return nil
}

// forRows returns an empty list for the rows of value. Input i is the element shape.
func forRows(ctx *kernel.Context, op string, value *tensor.Tensor, i int) (*List, error) {
	shape := ctx.Input(i)
	if shape.Rank() > 1 {
		return nil, status.InvalidArgumentf("%s: element_shape must be at most rank 1 but has the shape of %v", op, shape.Shape())
	}
	elem, err := shapeOf(shape)
	if err != nil {
		return nil, err
	}
	if err := checkVector(value); err != nil {
		return nil, err
	}
	if row := value.Shape()[1:]; !elem.CompatibleWith(row) {
		return nil, status.InvalidArgumentf("Specified a list with shape %v from a tensor with shape %v", elem, row)
	}
	return &List{dtype: value.DType(), gpu: ctx.GPU(), elem: elem, limit: -1}, nil
}

func checkVector(value *tensor.Tensor) error {
	if value.Rank() == 0 {
		return status.InvalidArgumentf("Tensor must be at least a vector, but saw shape: %v", value.Shape())
	}
	return nil
}

// rowOf returns row i of value in the form in which lists hold elements.
func rowOf(value *tensor.Tensor, i int) *tensor.Tensor {
	row := stacking.RowView(value, i)
	return &row
}

func fromTensor(ctx *kernel.Context) error {
	value := ctx.Input(0)
	l, err := forRows(ctx, "TensorListFromTensor", value, 1)
	if err != nil {
		return err
	}
	var meter membudget.Meter
	l.held(value)
	l.items, err = vectorOf(value.Dim(0), func(i int) (*tensor.Tensor, error) {
		if i%checkEvery == 0 && ctx.Context().Err() != nil {
			return nil, status.FromContext(ctx.Context(), "making the elements of a list")
		}
		meter.MustTake(elementBytes)
		return rowOf(value, i), nil
	})
	if err != nil {
		return err
	}
	l.setOutput(ctx, 0)
	return nil
}

const (
	// elementBytes is the memory of an element of a list whose values are those of another tensor:
	// its header with its shape and, for strings, its buffer.
	elementBytes = 200
	// pathBytes is the memory of the new nodes of a list in which an element is set, in bytes, if
	// the other nodes are shared.
	pathBytes = 600
	// checkEvery is the number of elements between checks of whether the step was cancelled. An
	// element takes about 1 µs.
	checkEvery = 1 << 12
)

func splitList(ctx *kernel.Context) error {
	value, lengths := ctx.Input(0), ctx.Input(2)
	elem, err := shapeOf(ctx.Input(1))
	if err != nil {
		return err
	}
	if elem.Rank() == 0 {
		return status.InvalidArgumentf("TensorListSplit requires element_shape to be at least of rank 1, but saw: %v", elem)
	}
	if err := checkVector(value); err != nil {
		return err
	}
	if elem.RankKnown() && !tensor.MakePartial(elem.Dims()[1:]...).CompatibleWith(value.Shape()[1:]) {
		return status.InvalidArgumentf("tensor shape %v is not compatible with element_shape %v", value.Shape(), elem)
	}
	if lengths.Rank() != 1 {
		return status.InvalidArgumentf("Expected lengths to be a vector, received shape: %v", lengths.Shape())
	}
	l := &List{dtype: value.DType(), gpu: ctx.GPU(), elem: elem, limit: -1}
	l.held(value)
	if l.items, err = pieces(value, tensor.Values[int64](lengths)); err != nil {
		return err
	}
	l.setOutput(ctx, 0)
	return nil
}

// pieces splits value along its first dimension.
func pieces(value *tensor.Tensor, lengths []int64) (vector, error) {
	var meter membudget.Meter
	start, rows := int64(0), int64(value.Dim(0))
	items, err := vectorOf(len(lengths), func(i int) (*tensor.Tensor, error) {
		meter.MustTake(elementBytes)
		n := lengths[i]
		if n < 0 {
			return nil, status.InvalidArgumentf("Invalid value in lengths: %d", n)
		}
		if n > rows-start {
			return nil, status.InvalidArgumentf("Attempting to slice [%d, %d] from tensor with length %d", start, start+n, rows)
		}
		piece := stacking.View(value, int(start), int(start+n))
		start += n
		return &piece, nil
	})
	if err == nil && start != rows {
		return items, status.InvalidArgumentf("Unused values in tensor. Length of tensor: %d Values used: %d", rows, start)
	}
	return items, err
}

func scatterList(ctx *kernel.Context) error {
	value := ctx.Input(0)
	n := int32(-1)
	if ctx.NumInputs() > 3 {
		size := ctx.Input(3)
		if size.Rank() != 0 {
			return status.InvalidArgumentf("num_elements must be a scalar")
		}
		if n = tensor.Value[int32](size); n < -1 {
			return status.InvalidArgumentf("TensorListScatter expects num_elements >= -1, found: %d", n)
		}
	}
	l, err := forRows(ctx, "TensorListScatter", value, 2)
	if err != nil {
		return err
	}
	indices := tensor.Values[int32](ctx.Input(1))
	if len(indices) != value.Dim(0) {
		return status.InvalidArgumentf("Invalid number of rows in input tensor. Expected: %d Actual: %d", len(indices), value.Dim(0))
	}
	size := n
	for _, i := range indices {
		if i < 0 {
			return status.InvalidArgumentf("Indices in TensorListScatter must all be non-negative.")
		}
		if n >= 0 && i >= n {
			return status.InvalidArgumentf("TensorListScatter: Trying to scatter at index %d in list with size %d", i, n)
		}
		size = max(size, i+1)
	}
	l.items = l.items.resize(int(max(size, 0)))
	l.held(value)
	if err := l.scatter(ctx.Context(), indices, value); err != nil {
		return err
	}
	l.setOutput(ctx, 0)
	return nil
}

// scatter sets elements of a list to the rows of value. The caller holds the only reference to the
// list.
func (l *List) scatter(ctx context.Context, indices []int32, value *tensor.Tensor) error {
	var meter membudget.Meter
	for row, i := range indices {
		if row%checkEvery == 0 && ctx.Err() != nil {
			return status.FromContext(ctx, "setting elements of a list")
		}
		meter.MustTake(elementBytes + pathBytes)
		l.items = l.items.set(int(i), rowOf(value, row))
	}
	return nil
}

func scatterInto(ctx *kernel.Context) error {
	l, err := input(ctx, 0)
	if err != nil {
		return err
	}
	value, at := ctx.Input(1), ctx.Input(2)
	if value.DType() != l.dtype {
		return status.InvalidArgumentf("Invalid data types; input tensor type: %v list element_type: %v", value.DType(), l.dtype)
	}
	if err := checkVector(value); err != nil {
		return err
	}
	if at.Rank() != 1 {
		return status.InvalidArgumentf("Expected indices to be a vector, but received shape: %v", at.Shape())
	}
	indices := tensor.Values[int32](at)
	if len(indices) != value.Dim(0) {
		return status.InvalidArgumentf("Expected len(indices) == tensor.shape[0], but saw: %d vs. %d", len(indices), value.Dim(0))
	}
	out := l.with(l.items)
	l.held(value)
	for _, i := range indices {
		if i < 0 {
			return status.InvalidArgumentf("index %d is negative", i)
		}
		out.items = out.items.resize(max(out.items.n, int(i)+1))
	}
	if err := out.scatter(ctx.Context(), indices, value); err != nil {
		return err
	}
	out.setOutput(ctx, 0)
	return nil
}
