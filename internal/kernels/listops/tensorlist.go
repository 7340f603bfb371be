package listops

import (
	"slices"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// List is a tensor list, the value of a variant: a sequence of tensors of one type. Elements may be
// unset. A List is immutable, so several variants can share it. The garbage collector frees its
// elements.
//
// All elements are in the memory of one device or of the host, including those of lists within
// lists. It is that of the kernel which has made the list, and all tensors that the kernel gets are
// there.
type List struct {
	dtype tensor.DType
	gpu   *device.Device      // in whose memory the elements are; nil for the host
	elem  tensor.PartialShape // known part of the element shape
	limit int                 // maximum number of elements, or -1
	items vector
}

// with returns the list with other elements.
func (l *List) with(items vector) *List {
	out := *l
	out.items = items
	return &out
}

// setOutput sets output i to a variant with the list.
func (l *List) setOutput(ctx *kernel.Context, i int) { //nolint:unparam // reads like SetOutput
	ctx.SetOutput(i, tensor.Scalar(tensor.VariantValue{Value: l}))
}

// asList returns the list in a variant, or nil.
func asList(v tensor.VariantValue) *List {
	l, _ := v.Value.(*List)
	return l
}

// input returns the list in input i, with its elements in the memory in which the kernel computes.
func input(ctx *kernel.Context, i int) (*List, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return nil, status.InvalidArgumentf("Input list must be a scalar saw: %v", t.Shape())
	}
	v := tensor.Value[tensor.VariantValue](t)
	if l := asList(v); l != nil {
		return l.on(ctx)
	}
	return nil, status.InvalidArgumentf("Input handle is not a list. Saw: '%T'", v.Value)
}

// inputOf returns the list in input i, whose elements must have the given type.
func inputOf(ctx *kernel.Context, i int, dtype tensor.DType) (*List, error) { //nolint:unparam // reads like Input
	l, err := input(ctx, i)
	if err == nil && l.dtype != dtype {
		return nil, status.InvalidArgumentf("Invalid data types; op elements %v but list elements %v", dtype, l.dtype)
	}
	return l, err
}

// shapeOf returns the shape in a tensor: a vector of dimensions, where -1 is unknown, or the scalar
// -1 for an unknown shape.
func shapeOf(t *tensor.Tensor) (tensor.PartialShape, error) {
	var none tensor.PartialShape
	dims := intarg.Values(t)
	switch {
	case t.Rank() == 0 && dims[0] == -1:
		return none, nil
	case t.Rank() == 0:
		return none, status.InvalidArgumentf("The only valid scalar shape tensor is the fully unknown shape specified as -1.")
	case t.Rank() > 1:
		return none, status.InvalidArgumentf("Shape must be at most rank 1 but is rank %d", t.Rank())
	case len(dims) > tensor.MaxRank:
		return none, status.InvalidArgumentf("a shape has at most %d dimensions, got %d", tensor.MaxRank, len(dims))
	}
	return shapefn.FromDims(dims)
}

// merge returns the merged knowledge of two partial shapes.
func merge(a, b tensor.PartialShape) (tensor.PartialShape, error) {
	merged, ok := a.Merge(b)
	switch {
	case ok:
		return merged, nil
	case a.Rank() != b.Rank():
		return merged, status.InvalidArgumentf("PartialTensorShape: Incompatible ranks during merge: %d vs. %d", a.Rank(), b.Rank())
	}
	return merged, status.InvalidArgumentf("PartialTensorShape: Incompatible shapes during merge: %v vs. %v", a, b)
}

// elemShape returns the element shape in input i, merged with that of the list.
func (l *List) elemShape(ctx *kernel.Context, i int) (tensor.PartialShape, error) {
	shape, err := shapeOf(ctx.Input(i))
	if err != nil {
		return shape, err
	}
	return merge(shape, l.elem)
}

// ZerosLike returns a list with zeros in place of the elements.
func (l *List) ZerosLike() (any, error) { return (&zeroLists{done: map[*List]*List{}}).of(l) }

// maxNested bounds the lists within lists that operations on all elements visit. A loop could nest
// lists until the visit of all of them exceeds the stack, which would end the process.
const maxNested = 10_000

// visit counts the lists that a visit is within, and the memory of the lists that it makes.
type visit struct {
	depth int
	meter membudget.Meter
}

// enter begins with a list. If it returns no error, leave must be called.
func (v *visit) enter() error {
	if v.depth >= maxNested {
		return status.ResourceExhaustedf("lists of tensors are nested more than %d deep", maxNested)
	}
	v.depth++
	v.meter.MustTakeEntry(int(unsafe.Sizeof(List{})))
	return nil
}

func (v *visit) leave() { v.depth-- }

// zeroLists has the results for lists that were visited. Lists of lists may share elements, so that
// there are many more ways to a list than lists.
type zeroLists struct {
	visit
	done map[*List]*List
}

func (z *zeroLists) of(l *List) (*List, error) {
	if out := z.done[l]; out != nil {
		return out, nil
	}
	if err := z.enter(); err != nil {
		return nil, err
	}
	defer z.leave()
	out := &List{dtype: l.dtype, gpu: l.gpu, elem: l.elem, limit: -1, items: l.items}
	for i, t := range l.items.all() {
		z.meter.MustTake(elementBytes + pathBytes)
		zero, err := z.like(t)
		if err != nil {
			return nil, err
		}
		out.items = out.items.set(i, out.held(&zero))
	}
	z.done[l] = out
	return out, nil
}

func (z *zeroLists) like(t *tensor.Tensor) (tensor.Tensor, error) {
	zero, err := zerosAs(t)
	if err != nil || t.DType() != tensor.Variant {
		return zero, err
	}
	from, to := tensor.Values[tensor.VariantValue](t), tensor.Values[tensor.VariantValue](&zero)
	for i, v := range from {
		if l := asList(v); l != nil {
			if to[i].Value, err = z.of(l); err != nil {
				return zero, err
			}
		}
	}
	return zero, nil
}

// AddVariant returns the list of the elementwise sums of l and another list. If one element is
// unset, the sum is the other.
func (l *List) AddVariant(other any) (any, error) {
	m, ok := other.(*List)
	if !ok {
		return nil, status.InvalidArgumentf("Trying to add a list of tensors and a %T", other)
	}
	return newSums().of(l, m)
}

// sumLists has the sums of lists that were visited, see zeroLists.
type sumLists struct {
	visit
	done map[[2]*List]*List
}

func newSums() *sumLists { return &sumLists{done: map[[2]*List]*List{}} }

func (s *sumLists) of(l, m *List) (*List, error) {
	if out := s.done[[2]*List{l, m}]; out != nil {
		return out, nil
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if l.dtype != m.dtype {
		return nil, status.InvalidArgumentf(
			"Trying to add two lists of tensors of different dtypes. One is %v and the other is %v", l.dtype, m.dtype)
	}
	if !l.elem.Compatible(m.elem) {
		return nil, status.InvalidArgumentf(
			"Trying to add two lists of tensors with incompatible element shapes. One is %v and the other is %v", l.elem, m.elem)
	}
	if l.items.n != m.items.n {
		return nil, status.InvalidArgumentf(
			"Trying to add two lists of tensors with different lengths. One is %d and the other is %d", l.items.n, m.items.n)
	}
	to := l.gpu
	if l.items.root == nil {
		to = m.gpu
	}
	moved, err := m.movedTo(to)
	if err != nil {
		return nil, err
	}
	out := &List{dtype: l.dtype, gpu: to, limit: -1, items: l.items}
	out.elem, _ = l.elem.Merge(m.elem)
	for i, t := range moved.items.all() {
		s.meter.MustTake(elementBytes + pathBytes)
		sum := t
		if old := l.items.get(i); old != nil {
			if sum, err = s.add(old, t); err != nil {
				return nil, err
			}
			out.held(sum)
		}
		out.items = out.items.set(i, sum)
	}
	s.done[[2]*List{l, m}] = out
	return out, nil
}

func (s *sumLists) add(a, b *tensor.Tensor) (*tensor.Tensor, error) {
	if !a.Shape().Equal(b.Shape()) {
		return nil, status.InvalidArgumentf("Trying to add elements of lists of shapes %v and %v", a.Shape(), b.Shape())
	}
	sum, err := a.Clone()
	if err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(typeset.Numbers, a.DType()):
		elementwise.Accumulate(elementwise.Add, &sum, b)
	case a.DType() == tensor.Variant:
		values, others := tensor.Values[tensor.VariantValue](&sum), tensor.Values[tensor.VariantValue](b)
		for i, v := range values {
			l := asList(v)
			if l == nil {
				return nil, status.InvalidArgumentf("Trying to add variants that are not lists")
			}
			m := asList(others[i])
			if m == nil {
				return nil, status.InvalidArgumentf("Trying to add a list of tensors and a %T", others[i].Value)
			}
			if values[i].Value, err = s.of(l, m); err != nil {
				return nil, err
			}
		}
	default:
		return nil, status.InvalidArgumentf("Trying to add unsupported dtype %d", a.DType())
	}
	return &sum, nil
}
