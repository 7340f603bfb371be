package sparse

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const setTypes = "T: {int8, int16, int32, int64, uint8, uint16, string}"

func init() {
	attrs := []string{"set_operation: string", "validate_indices: bool = true", setTypes}
	out := []string{"result_indices: int64", "result_values: T", "result_shape: int64"}
	register := func(name, doc string, in []string, dense1, dense2 bool, shape opdef.ShapeFn) {
		kernel.Register(kernel.Op{
			Def: opdef.Def{Name: name, Doc: doc, In: in, Out: out, Attrs: attrs, Shape: shape},
			Kernels: kernel.ByType("T", kernel.Table{
				tensor.Int8:   newSetOperation[int8](dense1, dense2),
				tensor.Int16:  newSetOperation[int16](dense1, dense2),
				tensor.Int32:  newSetOperation[int32](dense1, dense2),
				tensor.Int64:  newSetOperation[int64](dense1, dense2),
				tensor.Uint8:  newSetOperation[uint8](dense1, dense2),
				tensor.Uint16: newSetOperation[uint16](dense1, dense2),
				tensor.String: newSetOperation[string](dense1, dense2),
			}),
		})
	}
	register("DenseToDenseSetOperation", "Applies a set operation to the sets in the last dimension of two tensors.",
		[]string{"set1: T", "set2: T"}, true, true, denseDenseShape)
	register("DenseToSparseSetOperation", "Applies a set operation to the sets in the last dimension of a dense and a sparse tensor.",
		[]string{"set1: T", "set2_indices: int64", "set2_values: T", "set2_shape: int64"}, true, false, denseSparseShape)
	register("SparseToSparseSetOperation", "Applies a set operation to the sets in the last dimension of two sparse tensors.",
		[]string{"set1_indices: int64", "set1_values: T", "set1_shape: int64", "set2_indices: int64", "set2_values: T", "set2_shape: int64"},
		false, false, sparseSparseShape)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SetSize",
			Doc:  "Returns the number of distinct elements in the last dimension of a sparse tensor.",
			In:   []string{"set_indices: int64", "set_values: T", "set_shape: int64"}, Out: []string{"size: int32"},
			Attrs: []string{"validate_indices: bool = true", setTypes}, Shape: opdef.UnknownShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Int8: newSetSize[int8], tensor.Int16: newSetSize[int16], tensor.Int32: newSetSize[int32], tensor.Int64: newSetSize[int64],
			tensor.Uint8: newSetSize[uint8], tensor.Uint16: newSetSize[uint16], tensor.String: newSetSize[string],
		}),
	})
}

// setElem is the constraint of the element types of sets.
type setElem interface {
	tensor.Elem
	cmp.Ordered
}

// sets holds the sets of one input by group number. The group number is the position in the
// dimensions before the last. Each set is sorted and has no duplicates.
type sets[T setElem] struct {
	groups tensor.Shape
	at     map[int64][]T
	sparse *coo            // source for fill, or nil
	meter  membudget.Meter // of at
	// Texts may share their memory, so an operation may take any time.
	progress stepctx.Progress
}

func newSets[T setElem](ctx *kernel.Context, groups tensor.Shape, c *coo) *sets[T] {
	return &sets[T]{groups: groups, at: map[int64][]T{}, sparse: c, progress: stepctx.Progress{Context: ctx.Context(), Each: 16}}
}

func denseSets[T setElem](ctx *kernel.Context, t *tensor.Tensor) (*sets[T], error) {
	groups, err := groupShape(t.Shape())
	if err != nil {
		return nil, err
	}
	s, n := newSets[T](ctx, groups, nil), t.Dim(t.Rank()-1)
	group := int64(0)
	for vals := range slices.Chunk(tensor.Values[T](t), max(n, 1)) {
		s.meter.MustTakeEntry(0)
		if s.at[group], err = distinct(&s.progress, membudget.AppendAll[T](nil, vals...)); err != nil {
			return nil, err
		}
		group++
	}
	return s, nil
}

// sparseSets checks a sparse tensor. The caller reads its sets with fill.
func sparseSets[T setElem](ctx *kernel.Context, first int, validate bool) (*sets[T], error) {
	shape := ctx.Input(first + 2)
	if shape.Rank() != 1 {
		return nil, status.InvalidArgumentf("Shape must be a 1D tensor.")
	}
	dims, err := intarg.Shape(intarg.Values(shape))
	if err != nil {
		return nil, err
	}
	if len(dims) < 2 {
		return nil, status.InvalidArgumentf("Invalid rank %d.", len(dims))
	}
	c, err := makeCOO(ctx.Input(first), ctx.Input(first+1), dims)
	if err == nil && validate {
		err = c.checkOrder()
	}
	if err != nil {
		return nil, err
	}
	groups, err := groupShape(dims)
	return newSets[T](ctx, groups, c), err
}

// fill reads the sets of the sparse tensor.
func (s *sets[T]) fill() error {
	c := s.sparse
	if c == nil {
		return nil
	}
	for i, v := range tensor.Values[T](c.values) {
		for d, x := range c.at(i) {
			if x < 0 || x >= c.shape[d] {
				return status.Internalf("indices[%d, %d] expected < %d, got %d.", i, d, c.shape[d], x)
			}
		}
		group := int64(0)
		for d, size := range s.groups {
			group = group*size + c.at(i)[d]
		}
		if len(s.at[group]) == 0 {
			s.meter.MustTakeEntry(0)
		}
		s.at[group] = membudget.Append(s.at[group], v)
	}
	for g, vals := range s.at {
		vals, err := distinct(&s.progress, vals)
		if err != nil {
			return err
		}
		//sizedmake:ok the key exists
		s.at[g] = vals
	}
	return nil
}

// distinct sorts vals in place and removes duplicates. It fails when the step ends.
func distinct[T setElem](p *stepctx.Progress, vals []T) ([]T, error) {
	texts, ok := any(vals).([]string)
	if !ok {
		slices.Sort(vals)
		return slices.Compact(vals), nil
	}
	var ended error
	compare := func(a, b string) int {
		if ended == nil {
			ended = p.Pass(min(len(a), len(b)))
		}
		if ended != nil {
			return 0
		}
		return strings.Compare(a, b)
	}
	slices.SortFunc(texts, compare)
	n := len(slices.CompactFunc(texts, func(a, b string) bool { return compare(a, b) == 0 }))
	return vals[:n], ended
}

func groupShape(shape tensor.Shape) (tensor.Shape, error) {
	if len(shape) < 2 {
		return nil, status.InvalidArgumentf("Shape [%s] has rank %d < 2", joined(shape, ","), len(shape))
	}
	return shape[:len(shape)-1], nil
}

// keep selects the elements of the result: those of the first set alone, of the second alone, and
// of both.
type keep struct{ first, second, both bool }

var setOperations = map[string]keep{
	"a-b":          {first: true},
	"b-a":          {second: true},
	"intersection": {both: true},
	"union":        {true, true, true},
}

// combine merges two sorted sets. It fails when the step ends.
func combine[T setElem](p *stepctx.Progress, a, b []T, k keep) (out []T, err error) {
	for len(a) > 0 || len(b) > 0 {
		n := 0
		if texts, ok := any(a).([]string); ok && len(texts) > 0 {
			n = len(texts[0])
		}
		if err := p.Pass(n); err != nil {
			return nil, err
		}
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			if k.first {
				out = membudget.Append(out, a[0])
			}
			a = a[1:]
		case len(a) == 0 || b[0] < a[0]:
			if k.second {
				out = membudget.Append(out, b[0])
			}
			b = b[1:]
		default:
			if k.both {
				out = membudget.Append(out, a[0])
			}
			a, b = a[1:], b[1:]
		}
	}
	return out, nil
}

func newSetOperation[T setElem](dense1, dense2 bool) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		name, validate := strings.ToLower(c.Attrs.String("set_operation")), c.Attrs.Bool("validate_indices")
		k, ok := setOperations[name]
		if !ok {
			return nil, status.InvalidArgumentf("Invalid set_operation %s.", name)
		}
		read := func(ctx *kernel.Context, first int, dense bool) (*sets[T], error) {
			if dense {
				return denseSets[T](ctx, ctx.Input(first))
			}
			return sparseSets[T](ctx, first, validate)
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			second := 3
			if dense1 {
				second = 1
			}
			a, err := read(ctx, 0, dense1)
			if err != nil {
				return err
			}
			b, err := read(ctx, second, dense2)
			if err != nil {
				return err
			}
			if !a.groups.Equal(b.groups) {
				return status.InvalidArgumentf("Mismatched shapes [%s] vs [%s]", joined(a.groups, ","), joined(b.groups, ","))
			}
			for _, s := range []*sets[T]{a, b} {
				if err := s.fill(); err != nil {
					return err
				}
			}
			return putSets(ctx, a, b, k)
		}), nil
	}
}

// putSets sets the outputs to the sparse tensor of the combined sets.
func putSets[T setElem](ctx *kernel.Context, a, b *sets[T], k keep) error {
	var groups []int64
	for g := range a.at {
		groups = membudget.Append(groups, g)
	}
	for g := range b.at {
		groups = membudget.Append(groups, g)
	}
	var ix []int64
	var vals []T
	longest, position := 0, membudget.Make[int64](len(a.groups))
	slices.Sort(groups)
	for _, g := range slices.Compact(groups) {
		set, err := combine(&a.progress, a.at[g], b.at[g], k)
		if err != nil {
			return err
		}
		longest = max(longest, len(set))
		for d, rest := len(position)-1, g; d >= 0; d-- {
			position[d] = rest % a.groups[d]
			rest /= a.groups[d]
		}
		for i, v := range set {
			ix = membudget.Append(membudget.AppendAll(ix, position...), int64(i))
			vals = membudget.Append(vals, v)
		}
	}
	if err := putMatrix(ctx, 0, ix, len(vals), len(position)+1); err != nil {
		return err
	}
	out, err := ctx.Allocate(1, tensor.Shape{int64(len(vals))})
	if err != nil {
		return err
	}
	copy(tensor.Values[T](out), vals)
	return putVector(ctx, 2, append(slices.Clone(a.groups), int64(longest)))
}

func newSetSize[T setElem](c *kernel.Construction) (kernel.Kernel, error) {
	validate := c.Attrs.Bool("validate_indices")
	return kernel.Func(func(ctx *kernel.Context) error {
		s, err := sparseSets[T](ctx, 0, validate)
		if err == nil {
			err = s.fill()
		}
		if err != nil {
			return err
		}
		out, err := ctx.AllocateZeros(0, s.groups)
		if err != nil {
			return err
		}
		for g, set := range s.at {
			tensor.Values[int32](out)[g] = int32(len(set))
		}
		return nil
	}), nil
}
