package nn

import (
	"math"
	"math/bits"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "ApproxTopK",
			Doc:  "Returns the k largest values along a dimension, or the k smallest if is_max_k is false, and their positions. The result is exact. If aggregate_to_topk is false, it has as many values as the approximate search would pass to the aggregation.",
			In:   []string{"input: T"}, Out: []string{"values: T", "indices: int32"},
			Attrs: []string{
				"k: int >= 0", "reduction_dimension: int = -1", "recall_target: float = 0.949999988079071", "is_max_k: bool = true",
				"reduction_input_size_override: int = -1", "aggregate_to_topk: bool = true", "T: {float16, bfloat16, float32}",
			},
			Shape: approxTopKShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16:  approxTopK(func(a, b tensor.Float16Elem) bool { return a.Float32() < b.Float32() }, 0x7c00, 0xfc00),
			tensor.BFloat16: approxTopK(func(a, b tensor.BFloat16Elem) bool { return a.Float32() < b.Float32() }, 0x7f80, 0xff80),
			tensor.Float32:  approxTopK(less[float32], float32(math.Inf(1)), float32(math.Inf(-1))),
		}),
	})
}

func approxTopKShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil || in.Rank() < 0 {
		return err
	}
	a := newApproxSearch(c.Attrs)
	dim, err := a.dim(in.Rank())
	if err != nil {
		return err
	}
	size := shapefn.Unknown
	if n := in.Dim(dim); n >= 0 {
		if size, err = a.size(n, in.Rank()); err != nil {
			return err
		}
	}
	c.SetAll(shapefn.Replace(in, dim, size))
	return nil
}

// approxSearch holds the attributes of ApproxTopK.
type approxSearch struct {
	k, dimension, inputSize int64
	recall                  float64
	aggregate, isMax        bool
}

func newApproxSearch(attrs opdef.Attrs) approxSearch {
	return approxSearch{
		k: int64(attrs.Int("k")), dimension: int64(attrs.Int("reduction_dimension")), inputSize: int64(attrs.Int("reduction_input_size_override")),
		recall: float64(attrs.Float("recall_target")), aggregate: attrs.Bool("aggregate_to_topk"), isMax: attrs.Bool("is_max_k"),
	}
}

// dim returns the dimension that is searched.
func (a *approxSearch) dim(rank int) (int, error) {
	dim := a.dimension
	if dim < 0 {
		dim += int64(rank)
	}
	if dim < 0 || dim >= int64(rank) {
		return 0, status.InvalidArgumentf("Invalid reduction dimension: %d. Must be within the range of [%d, %d]", a.dimension, -rank, rank-1)
	}
	return int(dim), nil
}

// size returns the number of values in the output for a dimension of size n: k if the result is
// aggregated, and otherwise the number of partitions that reaches the recall target, as TensorFlow
// computes it.
func (a *approxSearch) size(n int64, rank int) (int64, error) {
	switch {
	case n < a.k:
		return 0, status.InvalidArgumentf("input must have last dimension >= k = %d but was %d", a.k, n)
	case a.recall > 1 || a.recall <= 0:
		return 0, status.InvalidArgumentf("Invalid recall target: %v. Valid value range in : [0, 1.0].", float32(a.recall))
	case a.aggregate:
		return a.k, nil
	}
	tile := int64(128)
	if rank == 1 {
		tile = 1024
	}
	if n <= tile || a.recall == 1 {
		return n, nil
	}
	if a.k == 1 {
		return tile, nil
	}
	logical := n
	if a.inputSize >= 0 {
		logical = a.inputSize
	}
	parts := min(max(int64(float64(1-a.k)/math.Log(a.recall)), tile), n)
	shift := bits.Len64(uint64(logical/parts)) - 1
	if shift <= 0 {
		return n, nil
	}
	shift = min(shift, bits.Len64(uint64(n/tile-1)))
	return ceilDiv(ceilDiv(n, tile), 1<<shift) * tile, nil
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func approxTopK[T tensor.Elem](less func(a, b T) bool, infinity, minusInfinity T) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a, before, worst := newApproxSearch(c.Attrs), less, minusInfinity
		if !a.isMax {
			before, worst = func(x, y T) bool { return less(y, x) }, infinity
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			if in.Rank() == 0 {
				return status.InvalidArgumentf("input must be >= 1-D, got shape %v", in.Shape())
			}
			dim, err := a.dim(in.Rank())
			if err != nil {
				return err
			}
			size, err := a.size(in.Shape()[dim], in.Rank())
			if err != nil {
				return err
			}
			shape := slices.Clone(in.Shape())
			shape[dim] = size
			values, err := ctx.Allocate(0, shape)
			if err != nil {
				return err
			}
			indices, err := ctx.Allocate(1, shape)
			if err != nil || values.NumElements() == 0 {
				return err
			}
			largestAlong(tensor.Values[T](values), indices, tensor.Values[T](in), int(in.Shape()[dim]), int(shape[dim+1:].NumElements()), before, worst)
			return nil
		}), nil
	}
}

// largestAlong finds the largest values along a dimension of x with n elements that are inner
// elements apart. If the output has room for more than n values, the rest is filled with the value
// worst and the position -1.
func largestAlong[T tensor.Elem](z []T, indices *tensor.Tensor, x []T, n, inner int, less func(a, b T) bool, worst T) {
	size := len(z) / (len(x) / n)
	positions := membudget.Make[int64](len(z))
	parallel.For(len(z)/size, max(1, 10_000/n), func(lo, hi int) {
		row, at := membudget.Make[T](n), membudget.Make[int64](min(n, size))
		for i := lo; i < hi; i++ {
			first := i/inner*n*inner + i%inner
			for j := range row {
				row[j] = x[first+j*inner]
			}
			largest(at, row, less)
			to := i/inner*size*inner + i%inner
			for j, p := range at {
				z[to+j*inner], positions[to+j*inner] = row[p], p
			}
			for j := n; j < size; j++ {
				z[to+j*inner], positions[to+j*inner] = worst, -1
			}
		}
	})
	intarg.Set(indices, positions)
}
