package random

import (
	"github.com/weft-ml/weft/internal/numeric/indexshuffle"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RandomIndexShuffle",
			Doc:  "Returns the position of index in a permutation of [0, ..., max_index] determined by the seed, without creating the permutation.",
			In:   []string{"index: dtype", "seed: Tseed", "max_index: dtype"}, Out: []string{"output: dtype"},
			Attrs: []string{"rounds: int = 4", "dtype: {int32, uint32, int64, uint64}", "Tseed: {int32, uint32, int64, uint64}"},
			Shape: indexShuffleShape,
		},
		Kernels: kernel.ForTypes("dtype", newIndexShuffle, tensor.Int32, tensor.Uint32, tensor.Int64, tensor.Uint64),
	})
}

func indexShuffleShape(c *opdef.ShapeContext) error {
	index, err := opdef.WithRankAtMost(c.In[0], 1)
	if err != nil {
		return err
	}
	seed, err := opdef.WithRankAtLeast(c.In[1], 1)
	if err == nil {
		_, err = opdef.WithRankAtMost(seed, 2)
	}
	if err != nil {
		return err
	}
	limit, err := opdef.WithRankAtMost(c.In[2], 1)
	if err != nil {
		return err
	}
	switch {
	case seed.Rank() == 1 && seed.Dim(0) != 3:
		return status.InvalidArgumentf("Seed must have shape [3] or [n, 3] but got [%d].", seed.Dim(0))
	case seed.Rank() == 2 && seed.Dim(1) != 3:
		return status.InvalidArgumentf("Seed must have shape [3] or [n, 3] but got [%d, %d].", seed.Dim(0), seed.Dim(1))
	case index.Rank() == 0 && seed.Rank() == 1 && limit.Rank() == 0:
		c.SetAll(tensor.MakePartial())
		return nil
	case index.Rank() != 1 && seed.Rank() != 2 && limit.Rank() != 1:
		return nil
	}
	n := tensor.UnknownDim
	if index.Rank() == 1 {
		n = index.Dim(0)
	}
	differ := func(m int64) bool { return n > 1 && m > 1 && m != n }
	if seed.Rank() == 2 {
		if m := seed.Dim(0); differ(m) {
			return status.InvalidArgumentf("Seed has shape [%d, 3] but must have shape [%d, 3]. since index had shape [%d].", m, n, n)
		} else if n < 0 {
			n = m
		}
	}
	if limit.Rank() == 1 {
		if m := limit.Dim(0); differ(m) {
			return status.InvalidArgumentf("Max index has shape [%d] but must have shape [%d].", m, n)
		} else if n < 0 {
			n = m
		}
	}
	c.SetAll(tensor.MakePartial(n))
	return nil
}

func newIndexShuffle(c *kernel.Construction) (kernel.Kernel, error) {
	rounds := c.Attrs.Int("rounds")
	if rounds < 4 || rounds%2 != 0 || rounds > 1024 {
		return nil, status.InvalidArgumentf("rounds must be even and between 4 and 1024, got %d", rounds)
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		index, seed, limit := ctx.Input(0), ctx.Input(1), ctx.Input(2)
		n := max(index.NumElements(), limit.NumElements(), seed.NumElements()/3)
		if err := checkIndexShuffle(index, seed, limit, n); err != nil {
			return err
		}
		shape := tensor.Shape{int64(n)}
		if index.Rank() == 0 && seed.Rank() == 1 && limit.Rank() == 0 {
			shape = tensor.Shape{}
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		at, seeds, limits, z := intarg.Values(index), intarg.Values(seed), intarg.Values(limit), membudget.Make[int64](n)
		signed := index.DType() != tensor.Uint64
		for i := range z {
			const checkEvery = 1 << 12
			if i%checkEvery == 0 && ctx.Context().Err() != nil {
				return ctx.Context().Err()
			}
			x, m, key := at[i%len(at)], limits[i%len(limits)], seeds[i%(len(seeds)/3)*3:]
			switch {
			case signed && x < 0:
				return status.InvalidArgumentf("index must be >= 0 but was %d", x)
			case signed && m < 0:
				return status.InvalidArgumentf("max_index must be >= 0 but was %d", m)
			case uint64(m) < uint64(x):
				return status.InvalidArgumentf("max_index must be >= index, but %d < %d", uint64(m), uint64(x))
			}
			z[i] = int64(indexshuffle.Index(uint64(x), uint64(m), [3]uint32{uint32(key[0]), uint32(key[1]), uint32(key[2])}, rounds))
		}
		setWords(out, z)
		return nil
	}), nil
}

// setWords sets the elements of a tensor of 32- or 64-bit integers.
func setWords(t *tensor.Tensor, vals []int64) {
	switch t.DType() {
	case tensor.Uint32:
		convert(tensor.Values[uint32](t), vals, func(v int64) uint32 { return uint32(v) })
	case tensor.Uint64:
		convert(tensor.Values[uint64](t), vals, func(v int64) uint64 { return uint64(v) })
	default:
		intarg.Set(t, vals)
	}
}

func checkIndexShuffle(index, seed, limit *tensor.Tensor, n int) error {
	scalarOrVector := func(t *tensor.Tensor) bool { return t.Rank() == 0 || t.Rank() == 1 && t.Dim(0) == n }
	if !scalarOrVector(index) {
		return status.InvalidArgumentf("Index bust be a scalar or vector.")
	}
	if s := seed.Shape(); !s.Equal(tensor.Shape{3}) && !s.Equal(tensor.Shape{int64(n), 3}) {
		return status.InvalidArgumentf("Seed must be a vector of size [3] or a matrix of size [%d, 3] but got %v.", n, s)
	}
	if !scalarOrVector(limit) {
		return status.InvalidArgumentf("Maxval must be a scalar or a vector of the same size as index but got %v", limit.Shape())
	}
	return nil
}
