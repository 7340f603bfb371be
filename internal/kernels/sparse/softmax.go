package sparse

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
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
			Name: "SparseSoftmax", Doc: "Computes the softmax of the elements in each row of the last dimension.",
			In: []string{"sp_indices: int64", "sp_values: T", "sp_shape: int64"}, Out: []string{"output: T"},
			Attrs: []string{"T: {float16, float32, float64}"},
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[0] = c.In[1]
				return shapefn.CheckRanks(c, 0, 2, 1, 1)
			},
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: kernel.Stateless(func(ctx *kernel.Context) error { return softmaxRows(ctx, softmax[float32]) }),
			tensor.Float64: kernel.Stateless(func(ctx *kernel.Context) error { return softmaxRows(ctx, softmax[float64]) }),
			tensor.Float16: kernel.Stateless(func(ctx *kernel.Context) error { return softmaxRows(ctx, softmaxHalf) }),
		}),
	})
}

// softmax replaces values by their softmax.
func softmax[T float32 | float64](v []T) {
	greatest, sum := slices.Max(v), T(0)
	for i, x := range v {
		v[i] = T(math.Exp(float64(x - greatest)))
		sum += v[i]
	}
	for i := range v {
		v[i] /= sum
	}
}

func softmaxHalf(v []tensor.Float16Elem) {
	w := membudget.Make[float32](len(v))
	elementwise.Widen(w, v)
	softmax(w)
	elementwise.Narrow(v, w)
}

// softmaxRows sets output 0 to the values, in index order, with f applied to each row.
func softmaxRows[T tensor.Elem](ctx *kernel.Context, f func([]T)) error {
	indices, values, shape := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	switch {
	case indices.Rank() != 2:
		return status.InvalidArgumentf("Input sp_indices should be a matrix but received shape: %v", indices.Shape())
	case values.Rank() != 1 || shape.Rank() != 1:
		return status.InvalidArgumentf("Inputs sp_values and sp_shape should be vectors but received shapes: %v and %v", values.Shape(), shape.Shape())
	case shape.NumElements() < 2:
		return status.InvalidArgumentf("Input should have rank >= 2, but received shape: %s", shape.Summary(3))
	}
	s, err := makeCOO(indices, values, intarg.Values(shape))
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, values.Shape())
	if err != nil {
		return err
	}
	order, err := s.sorted(ctx.Context(), span(s.rank))
	if err != nil {
		return err
	}
	gather(out, values, order)
	row := func(i int) []int64 { return s.at(int(order[i]))[:s.rank-1] }
	for v, lo := tensor.Values[T](out), 0; lo < s.n; {
		hi := lo + 1
		for hi < s.n && slices.Equal(row(lo), row(hi)) {
			hi++
		}
		f(v[lo:hi])
		lo = hi
	}
	return nil
}
