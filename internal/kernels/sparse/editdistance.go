package sparse

import (
	"context"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "EditDistance",
			Doc: "Computes the Levenshtein distance between the sequences in the last dimension of two " +
				"sparse tensors.",
			In: []string{"hypothesis_indices: int64", "hypothesis_values: T", "hypothesis_shape: int64", "truth_indices: int64", "truth_values: T",
				"truth_shape: int64"},
			Out: []string{"output: float32"}, Attrs: []string{"normalize: bool = true", "T: type"}, Shape: editDistanceShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: newEditDistance(identify[float32]), tensor.Float64: newEditDistance(identify[float64]),
			tensor.Float16: newEditDistance(identifyShort[tensor.Float16Elem]), tensor.BFloat16: newEditDistance(identifyShort[tensor.BFloat16Elem]),
			tensor.Int8: newEditDistance(identify[int8]), tensor.Int16: newEditDistance(identify[int16]),
			tensor.Int32: newEditDistance(identify[int32]), tensor.Int64: newEditDistance(identify[int64]),
			tensor.Uint8: newEditDistance(identify[uint8]), tensor.Uint16: newEditDistance(identify[uint16]),
			tensor.Uint32: newEditDistance(identify[uint32]), tensor.Uint64: newEditDistance(identify[uint64]),
			tensor.Complex64: newEditDistance(identify[complex64]), tensor.Complex128: newEditDistance(identify[complex128]),
			tensor.Bool: newEditDistance(identify[bool]), tensor.String: newEditDistance(identify[string]),
		}),
	})
}

func editDistanceShape(c *opdef.ShapeContext) error {
	for i := 0; i < 6; i += 3 {
		if err := shapefn.CheckRanks(c, i, 2, 1, 1); err != nil {
			return err
		}
		if _, err := opdef.MergeDims(c.In[i].Dim(0), c.In[i+1].Dim(0)); err != nil {
			return err
		}
		if _, err := opdef.MergeDims(c.In[i].Dim(1), c.In[i+2].Dim(0)); err != nil {
			return err
		}
	}
	h, known := shapefn.Ints(c, 2)
	t, ok := shapefn.Ints(c, 5)
	switch {
	case !known || !ok:
		return nil
	case len(h) != len(t):
		return status.InvalidArgumentf("Num elements of hypothesis_shape does not match truth_shape: %d vs. %d", len(h), len(t))
	case len(h) < 2:
		return status.InvalidArgumentf("Input Hypothesis SparseTensors must have rank at least 2, but hypothesis_shape rank is: %d", len(h))
	}
	c.Out[0] = shapefn.Of(largest(h, t)...)
	return nil
}

// largest returns the elementwise maximum of two shapes without the last dimension.
func largest(a, b []int64) []int64 {
	out := membudget.Make[int64](len(a) - 1)
	for d := range out {
		out[d] = max(a[d], b[d])
	}
	return out
}

// identify numbers the values of two vectors so that equal values have equal numbers. It fails when
// ctx ends.
func identify[T interface {
	tensor.Elem
	comparable
}](ctx context.Context, a, b *tensor.Tensor) (x, y []int, err error) {
	return numberBoth(ctx, tensor.Values[T](a), tensor.Values[T](b))
}

func identifyShort[H elementwise.Short](ctx context.Context, a, b *tensor.Tensor) (x, y []int, err error) {
	return numberBoth(ctx, wide[H](a), wide[H](b))
}

func numberBoth[T comparable](ctx context.Context, a, b []T) (x, y []int, err error) {
	ids := map[T]int{}
	if x, err = number(ctx, ids, a); err == nil {
		y, err = number(ctx, ids, b)
	}
	return x, y, err
}

func number[T comparable](ctx context.Context, ids map[T]int, vals []T) ([]int, error) {
	out := membudget.Make[int](len(vals))
	texts, _ := any(vals).([]string) // which may share their memory
	var meter membudget.Meter
	p := stepctx.Progress{Context: ctx, Each: 32}
	for i, v := range vals {
		n := 0
		if texts != nil {
			n = len(texts[i])
		}
		if err := p.Pass(n); err != nil {
			return nil, err
		}
		id, ok := ids[v]
		if !ok { // also for each NaN, which equals nothing
			id = len(ids)
			meter.MustTakeEntry(0)
			ids[v] = id
		}
		out[i] = id
	}
	return out, nil
}

func checkEditDistance(ctx *kernel.Context) error {
	names := []string{"hypothesis", "truth"}
	for part, what := range []string{"indices should be a matrix", "values should be a vector", "shape should be a vector"} {
		for k, name := range names {
			rank := 1
			if part == 0 {
				rank = 2
			}
			if s := ctx.Input(3*k + part).Shape(); len(s) != rank {
				return status.InvalidArgumentf("%s_%s, but got shape: %v", name, what, s)
			}
		}
	}
	for k, name := range names {
		indices, values, shape := ctx.Input(3*k), ctx.Input(3*k+1), ctx.Input(3*k+2)
		switch {
		case k == 1 && shape.NumElements() < 2:
			return status.InvalidArgumentf("Input SparseTensors must have rank at least 2, but truth_shape rank is: %d", shape.NumElements())
		case values.NumElements() != indices.Dim(0):
			return status.InvalidArgumentf("Expected %s_values.NumElements == #rows(%s_indices), their shapes are: %v and %v", name, name, values.Shape(), indices.Shape())
		case shape.NumElements() != indices.Dim(1):
			return status.InvalidArgumentf("Expected %s_shape.NumElements == #cols(%s_indices), their shapes are: %v and %v", name, name, shape.Shape(), indices.Shape())
		}
	}
	if h, t := ctx.Input(2), ctx.Input(5); h.NumElements() != t.NumElements() {
		return status.InvalidArgumentf("Expected truth and hypothesis to have matching ranks, but their shapes are: %v and %v", t.Shape(), h.Shape())
	}
	return nil
}

func newEditDistance(ids func(ctx context.Context, a, b *tensor.Tensor) (x, y []int, err error)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		normalize := c.Attrs.Bool("normalize")
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := checkEditDistance(ctx); err != nil {
				return err
			}
			hyp, err := makeCOO(ctx.Input(0), ctx.Input(1), intarg.Values(ctx.Input(2)))
			if err != nil {
				return err
			}
			truth, err := makeCOO(ctx.Input(3), ctx.Input(4), intarg.Values(ctx.Input(5)))
			if err != nil {
				return err
			}
			dims, err := intarg.Shape(largest(hyp.shape, truth.shape))
			if err != nil {
				return err
			}
			if dims.NumElements() == 0 {
				return status.InvalidArgumentf("Got output shape %v which has 0 elements", dims)
			}
			out, err := ctx.AllocateZeros(0, dims)
			if err != nil {
				return err
			}
			h, t, err := ids(ctx.Context(), hyp.values, truth.values)
			if err != nil {
				return err
			}
			return putDistances(ctx.Context(), tensor.Values[float32](out), dims, sequences{hyp, h}, sequences{truth, t}, normalize)
		}), nil
	}
}

// sequences iterates over the sequences in a sparse tensor with ordered indices.
type sequences struct {
	s   *coo
	ids []int
}

// position returns the index of the next sequence, or nil after the last.
func (q *sequences) position() []int64 {
	if len(q.ids) == 0 {
		return nil
	}
	return q.s.at(q.s.n - len(q.ids))[:q.s.rank-1]
}

// next consumes and returns the sequence at position. It is empty if the next sequence is at
// another index.
func (q *sequences) next(position []int64) []int {
	n := 0
	for n < len(q.ids) && slices.Equal(q.s.at(q.s.n - len(q.ids) + n)[:q.s.rank-1], position) {
		n++
	}
	seq := q.ids[:n]
	q.ids = q.ids[n:]
	return seq
}

func putDistances(ctx context.Context, out []float32, dims tensor.Shape, hyp, truth sequences, normalize bool) error {
	for len(hyp.ids) > 0 || len(truth.ids) > 0 {
		position := hyp.position()
		if p := truth.position(); position == nil || p != nil && slices.Compare(p, position) < 0 {
			position = p
		}
		at, inside := int64(0), true
		for d, x := range position {
			at = at*dims[d] + x
			inside = inside && x >= 0 && x < dims[d]
		}
		if !inside {
			return status.Internalf("Got an inner product %d which would require writing to outside of the buffer for the output tensor (max elements %d)",
				at, len(out))
		}
		h, t := hyp.next(position), truth.next(position)
		d, err := editDistance(ctx, t, h)
		if err != nil {
			return err
		}
		distance := float32(d)
		switch {
		case normalize && len(t) > 0:
			distance /= float32(len(t))
		case normalize && len(h) > 0:
			distance = float32(math.Inf(1))
		}
		out[at] = distance
	}
	return nil
}

// editDistance returns the Levenshtein distance of two sequences. It fails if ctx ends.
func editDistance(ctx context.Context, a, b []int) (int, error) {
	// distance from the prefix of a that was read so far to each prefix of b
	cost := membudget.Make[int](len(b) + 1)
	for j := range cost {
		cost[j] = j
	}
	for i, x := range a {
		if ctx.Err() != nil {
			return 0, status.FromContext(ctx, "computing edit distances")
		}
		diagonal := cost[0]
		cost[0] = i + 1
		for j, y := range b {
			replace := diagonal
			if x != y {
				replace++
			}
			diagonal = cost[j+1]
			cost[j+1] = min(replace, cost[j]+1, cost[j+1]+1)
		}
	}
	return cost[len(b)], nil
}
