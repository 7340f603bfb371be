package array

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/ints"
	"github.com/weft-ml/weft/internal/rows"
	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register(opdef.Def{
		Name: "Unique", Doc: "Gives the distinct elements of a vector in order of appearance, and for each element which of them it is.",
		In:    []string{"x: T"},
		Out:   []string{"y: T", "idx: out_idx"},
		Attrs: []string{"T: type", "out_idx: {int32, int64} = int32"},
		Shape: uniqueShape,
	}, unique)
	register(opdef.Def{
		Name: "UniqueV2", Doc: "Gives the distinct slices along an axis in order of appearance, and for each slice which of them it is.",
		In:    []string{"x: T", "axis: Taxis"},
		Out:   []string{"y: T", "idx: out_idx"},
		Attrs: []string{"T: type", "Taxis: {int32, int64} = int64", "out_idx: {int32, int64} = int32"},
		Shape: uniqueShape,
	}, unique)
	register(opdef.Def{
		Name: "UniqueWithCounts", Doc: "Gives the distinct elements of a vector, which of them each element is, and how often each appears.",
		In:    []string{"x: T"},
		Out:   []string{"y: T", "idx: out_idx", "count: out_idx"},
		Attrs: []string{"T: type", "out_idx: {int32, int64} = int32"},
		Shape: uniqueShape,
	}, unique)
	register(opdef.Def{
		Name: "UniqueWithCountsV2", Doc: "Gives the distinct slices along an axis, which of them each slice is, and how often each appears.",
		In:    []string{"x: T", "axis: Taxis"},
		Out:   []string{"y: T", "idx: out_idx", "count: out_idx"},
		Attrs: []string{"T: type", "Taxis: {int32, int64} = int64", "out_idx: {int32, int64} = int32"},
		Shape: uniqueShape,
	}, unique)
	register(opdef.Def{
		Name: "ListDiff", Doc: "Gives the elements of x that are not in y, and their positions.",
		In:    []string{"x: T", "y: T"},
		Out:   []string{"out: T", "idx: out_idx"},
		Attrs: []string{"T: type", "out_idx: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error {
			c.SetAll(shapes.Of(shapes.Unknown))
			return shapes.CheckRanks(c, 0, 1, 1)
		},
	}, listDiff)
}

func uniqueShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	vector := shapes.Of(shapes.Unknown)
	if len(c.Out) > 2 {
		c.Out[2] = vector
	}
	if len(c.In) == 1 {
		c.Out[0], c.Out[1] = vector, in
		if len(c.Out) > 2 {
			return nil
		}
		_, err := opdef.WithRank(in, 1)
		return err
	}
	if in.RankKnown() {
		c.Out[0] = tensor.UnknownDims(in.Rank())
	}
	c.Out[1] = vector
	axes, known := shapes.Ints(c, 1)
	if !known || !in.RankKnown() {
		return nil
	}
	if c.In[1].Rank() != 1 {
		return status.InvalidArgumentf("axis expects a 1D vector.")
	}
	switch len(axes) {
	case 0:
		if in.Rank() != 1 {
			return status.InvalidArgumentf("x expects a 1D vector.")
		}
		c.Out[1] = in
	case 1:
		axis, ok := ints.Axis(axes[0], in.Rank())
		if !ok {
			return status.InvalidArgumentf("axis expects to be in the range [%d, %d)", -in.Rank(), in.Rank())
		}
		c.Out[1] = shapes.Of(in.Dim(axis))
	default:
		return status.InvalidArgumentf("axis does not support input tensors larger than 1 elements.")
	}
	return nil
}

func unique(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.NumElements() > math.MaxInt32 {
		return status.InvalidArgumentf("unique does not support input tensors larger than %d elements", math.MaxInt32)
	}
	axis, err := uniqueAxis(ctx)
	if err != nil {
		return err
	}
	outer, n, inner := int(in.Shape()[:axis].NumElements()), in.Dim(axis), int(in.Shape()[axis+1:].NumElements())
	class, firsts, err := classes(in, outer, n, inner)
	if err != nil {
		return err
	}
	shape := slices.Clone(in.Shape())
	shape[axis] = int64(len(firsts))
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	rows.Gather(out, in, rows.List{Rows: firsts}, rows.Layout{Outer: outer, Rows: n, Width: inner})
	if err := setVector(ctx, 1, class); err != nil || ctx.NumOutputs() < 3 {
		return err
	}
	counts := make([]int64, len(firsts))
	for _, k := range class {
		counts[k]++
	}
	return setVector(ctx, 2, counts)
}

func uniqueAxis(ctx *kernel.Context) (int, error) {
	in := ctx.Input(0)
	if ctx.NumInputs() > 1 {
		axes := ctx.Input(1)
		if axes.Rank() != 1 {
			return 0, status.InvalidArgumentf("axis expects a 1D vector.")
		}
		if axes.NumElements() > 1 {
			return 0, status.InvalidArgumentf("axis does not support input tensors larger than 1 elements")
		}
		if axes.NumElements() == 1 {
			axis, ok := ints.Axis(ints.Scalar(axes), in.Rank())
			if !ok {
				return 0, status.InvalidArgumentf("axis has to be between [0, %d)", in.Rank())
			}
			return axis, nil
		}
	}
	if in.Rank() != 1 {
		return 0, status.InvalidArgumentf("unique expects a 1D vector.")
	}
	return 0, nil
}

// classes numbers the slices of a tensor so that equal ones have equal numbers, in order of appearance, and returns the
// first slice of each class.
func classes(in *tensor.Tensor, outer, n, inner int) (class, firsts []int64, err error) {
	elem, err := identities(in)
	if err != nil {
		return nil, nil, err
	}
	class = make([]int64, n)
	if outer*inner == 1 {
		seen := int64(0)
		for i, k := range elem {
			class[i] = k
			if k == seen {
				firsts, seen = append(firsts, int64(i)), seen+1
			}
		}
		return class, firsts, nil
	}
	known := map[string]int64{}
	var key []byte
	for i := range n {
		key = key[:0]
		for o := range outer {
			for _, k := range elem[(o*n+i)*inner:][:inner] {
				key = binary.LittleEndian.AppendUint32(key, uint32(k))
			}
		}
		k, ok := known[string(key)]
		if !ok {
			k = int64(len(known))
			known[string(key)], firsts = k, append(firsts, int64(i))
		}
		class[i] = k
	}
	return class, firsts, nil
}

// identities numbers the elements of a tensor so that equal ones have equal numbers, in order of appearance. As in
// arithmetic, zeros of both signs are equal and a NaN is equal to nothing.
func identities(in *tensor.Tensor) ([]int64, error) {
	table := identityTable(in.DType())
	if table == nil {
		return nil, status.InvalidArgumentf("elements of type %v cannot be compared", in.DType())
	}
	return table.number(in), nil
}

// A numbering numbers the elements of tensors; several tensors share the numbers of one numbering.
type numbering interface {
	number(t *tensor.Tensor) []int64
	find(t *tensor.Tensor) []bool // which elements have a number already
}

func identityTable(dtype tensor.DType) numbering {
	switch dtype {
	case tensor.String:
		return newNumbers(same[string])
	case tensor.Bool:
		return newNumbers(same[bool])
	case tensor.Int8:
		return newNumbers(same[int8])
	case tensor.Int16:
		return newNumbers(same[int16])
	case tensor.Int32:
		return newNumbers(same[int32])
	case tensor.Int64:
		return newNumbers(same[int64])
	case tensor.Uint8:
		return newNumbers(same[uint8])
	case tensor.Uint16:
		return newNumbers(same[uint16])
	case tensor.Uint32:
		return newNumbers(same[uint32])
	case tensor.Uint64:
		return newNumbers(same[uint64])
	case tensor.Float32:
		return newNumbers(same[float32])
	case tensor.Float64:
		return newNumbers(same[float64])
	case tensor.Complex64:
		return newNumbers(same[complex64])
	case tensor.Complex128:
		return newNumbers(same[complex128])
	case tensor.Float16:
		return newNumbers(tensor.Half.Float32)
	case tensor.BFloat16:
		return newNumbers(tensor.BFloat.Float32)
	}
	return nil
}

func same[T any](v T) T { return v }

// numbers numbers elements of type T by keys that are equal when the elements are.
type numbers[T tensor.Elem, K comparable] struct {
	key   func(T) K
	known map[K]int64
	next  int64
}

func newNumbers[T tensor.Elem, K comparable](key func(T) K) *numbers[T, K] {
	return &numbers[T, K]{key: key, known: map[K]int64{}}
}

func (m *numbers[T, K]) number(t *tensor.Tensor) []int64 {
	vals := tensor.Values[T](t)
	out := make([]int64, len(vals))
	for i, v := range vals {
		k := m.key(v)
		id, ok := m.known[k]
		if !ok {
			id = m.next
			m.next++
			m.known[k] = id
		}
		out[i] = id
	}
	return out
}

func (m *numbers[T, K]) find(t *tensor.Tensor) []bool {
	vals := tensor.Values[T](t)
	out := make([]bool, len(vals))
	for i, v := range vals {
		_, out[i] = m.known[m.key(v)]
	}
	return out
}

func listDiff(ctx *kernel.Context) error {
	x, y := ctx.Input(0), ctx.Input(1)
	if x.Rank() != 1 {
		return status.InvalidArgumentf("x should be a 1D vector.")
	}
	if y.Rank() != 1 {
		return status.InvalidArgumentf("y should be a 1D vector.")
	}
	table := identityTable(x.DType())
	if table == nil {
		return status.InvalidArgumentf("elements of type %v cannot be compared", x.DType())
	}
	table.number(y)
	var keep []int64
	for i, known := range table.find(x) {
		if !known {
			keep = append(keep, int64(i))
		}
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(len(keep))})
	if err != nil {
		return err
	}
	rows.Gather(out, x, rows.List{Rows: keep}, rows.Layout{Outer: 1, Rows: x.NumElements(), Width: 1})
	return setVector(ctx, 1, keep)
}
