package listops

import (
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Array is a tensor array. Each element is written once. It is read once or, if requested at
// creation, several times. An array of gradients instead sums all writes to an element, and an
// element without writes is zero.
//
// An element stays in the memory, of the host or a device, of the operation that wrote it last. An
// operation that uses it moves it to its own memory.
type Array struct {
	name  string
	dtype tensor.DType
	grad  bool // holds gradients
	once  bool // a read clears the element
	same  bool // all elements have the shape of the first one written

	mu      sync.Mutex
	cells   cells               // guarded by mu
	dynamic bool                // guarded by mu; writes beyond the end grow the array
	elem    tensor.PartialShape // guarded by mu; known part of the element shape
	// Size at the last unpack or split into the array, or -1; guarded by mu.
	marked   int
	summed   bool // guarded by mu; an element has several writes
	isClosed bool // guarded by mu
}

// TypeName returns TensorFlow's type name of the resource.
func (*Array) TypeName() string { return "N10tensorflow11TensorArrayE" }

// Close drops the values, at the end of the step or on request. Later operations on the array fail.
func (a *Array) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cells.clear()
	a.isClosed = true
}

func (a *Array) invalid(format string, args ...any) error {
	return status.InvalidArgumentf("TensorArray %s"+format, slices.Concat([]any{a.name}, args)...)
}

func (a *Array) checkOpenLocked() error {
	if a.isClosed {
		return a.invalid(" has already been closed.")
	}
	return nil
}

// write sets element i to value and takes ownership of it.
func (a *Array) write(ctx *kernel.Context, i int, value *tensor.Tensor) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writeLocked(ctx, i, value)
}

func (a *Array) writeLocked(ctx *kernel.Context, i int, value *tensor.Tensor) error {
	if err := a.checkWriteLocked(i, value); err != nil {
		return err
	}
	a.cells.grow(i + 1)
	c := a.cells.at(i)
	if c.read {
		return a.invalid(": Could not write to TensorArray index %d because it has already been read.", i)
	}
	if c.written {
		return a.addLocked(ctx, i, c, value)
	}
	c.shape, c.written = value.Shape(), true
	c.value, *value = *value, tensor.Tensor{}
	return nil
}

func (a *Array) checkWriteLocked(i int, value *tensor.Tensor) error {
	if err := a.checkOpenLocked(); err != nil {
		return err
	}
	if i < 0 || !a.dynamic && i >= a.cells.n {
		return a.invalid(": Tried to write to index %d but array is not resizeable and size is: %d", i, a.cells.n)
	}
	if !a.elem.CompatibleWith(value.Shape()) {
		return a.invalid(": Could not write to TensorArray index %d because the value shape is %v which is incompatible with the "+
			"TensorArray's inferred element shape: %v (consider setting infer_shape=False).", i, value.Shape(), a.elem)
	}
	if _, full := a.elem.Full(); a.same && !full {
		a.elem = value.Shape().Partial()
	}
	return nil
}

// addLocked adds value to the current value of element i.
func (a *Array) addLocked(ctx *kernel.Context, i int, c *cell, value *tensor.Tensor) error {
	if !a.grad {
		return a.invalid(": Could not write to TensorArray index %d because it has already been written to.", i)
	}
	if !value.Shape().Equal(c.shape) {
		return a.invalid(": Could not aggregate to TensorArray index %d because the existing shape is %v but the new input shape is %v.",
			i, c.shape, value.Shape())
	}
	if c.value.NumElements() == 0 {
		c.value.Release()
		c.value, *value = *value, tensor.Tensor{}
		return nil
	}
	if !slices.Contains(typeset.Numbers, a.dtype) {
		return status.InvalidArgumentf("tensor_array::AddToTensor type not supported: %v", a.dtype)
	}
	if err := place(ctx, &c.value); err != nil {
		return err
	}
	if err := place(ctx, value); err != nil {
		return err
	}
	own, err := ctx.Writable(&c.value)
	if err != nil {
		return err
	}
	elementwise.Accumulate(elementwise.Add, own, value)
	a.summed = true
	return nil
}

// writeMany sets the elements with the given indices to values and takes ownership of them.
func (a *Array) writeMany(ctx *kernel.Context, indices []int32, values []tensor.Tensor) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, i := range indices {
		if err := a.writeLocked(ctx, int(i), &values[k]); err != nil {
			return err
		}
	}
	return nil
}

// read returns element i, in the memory of ctx, with a reference of its own.
func (a *Array) read(ctx *kernel.Context, i int) (tensor.Tensor, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.readLocked(ctx, i)
}

func (a *Array) readLocked(ctx *kernel.Context, i int) (tensor.Tensor, error) {
	var none tensor.Tensor
	if err := a.checkOpenLocked(); err != nil {
		return none, err
	}
	if i < 0 || !a.grad && i >= a.cells.n {
		return none, status.InvalidArgumentf("Tried to read from index %d but array size is: %d", i, a.cells.n)
	}
	if err := a.defineLocked(i); err != nil {
		return none, err
	}
	c := a.cells.at(i)
	if c.cleared {
		return none, a.invalid(": Could not read index %d twice because it was cleared after a previous read (perhaps try setting "+
			"clear_after_read = false?).", i)
	}
	if c.value.NumElements() == 0 {
		zero, err := a.zeros(c.shape)
		if err != nil {
			return none, err
		}
		c.value.Release()
		c.value = zero
	}
	if err := place(ctx, &c.value); err != nil {
		return none, err
	}
	c.read, c.cleared = true, a.once
	value := c.value
	if a.once {
		c.value = none
		return value, nil
	}
	return value.Retain(), nil
}

// defineLocked sets element i to zeros if it has not been written.
func (a *Array) defineLocked(i int) error {
	shape, known := a.elem.Full()
	if i < a.cells.n {
		c := a.cells.peek(i)
		if c != nil && c.written {
			return nil
		}
		if a.grad && c != nil && len(c.shape) > 0 {
			shape, known = c.shape, true
		}
	}
	if !known {
		return a.invalid(": Could not read from TensorArray index %d.  Furthermore, the element shape is not fully defined: %v.  "+
			"It is possible you are working with a resizeable TensorArray and stop_gradients is not allowing the gradients to be "+
			"written.  If you set the full element_shape property on the forward TensorArray, the proper all-zeros tensor will be "+
			"returned instead of incurring this error.", i, a.elem)
	}
	a.cells.grow(i + 1)
	c := a.cells.at(i)
	c.shape, c.written = shape, true
	return nil
}

func (a *Array) zeros(shape tensor.Shape) (tensor.Tensor, error) {
	if shape.NumElements() > 0 && a.dtype != tensor.Bool && !slices.Contains(typeset.Numbers, a.dtype) {
		return tensor.Tensor{}, status.InvalidArgumentf("tensor_array::TensorSetZero type not supported: %v", a.dtype)
	}
	return tensor.Zeros(a.dtype, shape)
}

// readMany returns the elements with the given indices, in the memory of ctx, each with a reference
// of its own.
func (a *Array) readMany(ctx *kernel.Context, indices []int32) ([]tensor.Tensor, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	values := membudget.Make[tensor.Tensor](len(indices))
	p := stepctx.Progress{Context: ctx.Context(), Each: 64}
	for k, i := range indices {
		err := p.Pass(0)
		if err == nil {
			values[k], err = a.readLocked(ctx, int(i))
		}
		if err != nil {
			release(values)
			return nil, err
		}
	}
	return values, nil
}

// place moves a tensor to the memory in which the kernel of ctx computes.
func place(ctx *kernel.Context, t *tensor.Tensor) error {
	if device.IsPlaced(t, ctx.GPU()) {
		return nil
	}
	held := *t
	*t = tensor.Tensor{}
	placed, err := device.PlaceNow(held, ctx.GPU())
	if err == nil {
		*t = placed
	}
	return err
}

func release(values []tensor.Tensor) {
	for i := range values {
		values[i].Release()
	}
}

// size returns the number of elements and whether writes can grow the array.
func (a *Array) size() (n int, dynamic bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cells.n, a.dynamic, a.checkOpenLocked()
}

// packSize returns the number of elements in operations on all elements.
func (a *Array) packSize() (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.grad {
		return max(0, a.marked), a.checkOpenLocked()
	}
	return a.cells.n, a.checkOpenLocked()
}

// mark records the size for the array of gradients.
func (a *Array) mark(n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.grad {
		a.marked = n
	}
	return a.checkOpenLocked()
}

// refine merges shape into the known part of the element shape.
func (a *Array) refine(shape tensor.PartialShape) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	merged, err := merge(a.elem, shape)
	if err != nil {
		return err
	}
	a.elem = merged
	return nil
}

// gradient returns a new array for the gradients of a and fixes the size of a. If prepend is not
// nil, the gradients have these additional leading dimensions.
func (a *Array) gradient(name string, prepend tensor.Shape) (*Array, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dynamic = false
	if err := a.checkOpenLocked(); err != nil {
		return nil, err
	}
	if a.summed {
		return nil, status.InvalidArgumentf("Unable to create a gradients TensorArray for %s.  Perhaps you used the "+
			"multiple_writes_aggregate flag on a previous write?  Gradient calculation is impossible when multiple writes are "+
			"performed to the same index.", a.name)
	}
	g := &Array{
		name: name, dtype: a.dtype, grad: true, once: true, same: a.same,
		cells: newCells(a.cells.n), elem: a.elem, marked: a.marked,
	}
	if prepend != nil {
		g.elem = tensor.PartialShape{}
		if a.elem.RankKnown() {
			g.elem = tensor.MakePartial(slices.Concat(prepend, a.elem.Dims())...)
		}
	}
	a.cells.written(func(i int, c *cell) {
		d := g.cells.at(i)
		d.shape, d.written = slices.Concat(prepend, c.shape), true
	})
	return g, nil
}
