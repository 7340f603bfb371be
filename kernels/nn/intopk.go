package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/ints"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Says of each row whether the target class is among the k with the largest predictions; ties count as among them."
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "InTopK", Doc: doc,
			In: []string{"predictions: float32", "targets: T"}, Out: []string{"precision: bool"},
			Attrs: []string{"k: int", "T: {int32, int64} = int32"}, Shape: inTopKShape,
		},
		Kernels: kernel.Any(func(c *kernel.Construction) (kernel.Kernel, error) {
			k := int64(c.Attrs.Int("k"))
			return kernel.Func(func(ctx *kernel.Context) error { return inTopK(ctx, k) }), nil
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "InTopKV2", Doc: doc,
			In: []string{"predictions: float32", "targets: T", "k: T"}, Out: []string{"precision: bool"},
			Attrs: []string{"T: {int32, int64} = int32"}, Shape: inTopKShape,
		},
		Kernels: kernel.Any(kernel.Stateless(func(ctx *kernel.Context) error {
			k := ctx.Input(2)
			if k.Rank() != 0 {
				return status.InvalidArgumentf("k must be 0-D, got shape %v", k.Shape())
			}
			return inTopK(ctx, ints.Scalar(k))
		})),
	})
}

func inTopKShape(c *opdef.ShapeContext) error {
	predictions, err := opdef.WithRank(c.In[0], 2)
	if err != nil {
		return err
	}
	targets, err := opdef.WithRank(c.In[1], 1)
	if err != nil {
		return err
	}
	batch, err := opdef.MergeDims(predictions.Dim(0), targets.Dim(0))
	c.SetAll(tensor.MakePartial(batch))
	return err
}

func inTopK(ctx *kernel.Context, k int64) error {
	predictions, targets := ctx.Input(0), ctx.Input(1)
	switch {
	case predictions.Rank() != 2:
		return status.InvalidArgumentf("predictions must be 2-dimensional")
	case targets.Rank() != 1:
		return status.InvalidArgumentf("targets must be 1-dimensional")
	case predictions.Dim(0) != targets.Dim(0):
		return status.InvalidArgumentf("First dimension of predictions %d must match length of targets %d",
			predictions.Dim(0), targets.Dim(0))
	}
	out, err := ctx.AllocateLike(0, targets)
	if err != nil {
		return err
	}
	x, z, n := tensor.Values[float32](predictions), tensor.Values[bool](out), predictions.Dim(1)
	for i, target := range ints.Values(targets) {
		z[i] = amongLargest(x[i*n:(i+1)*n], target, k)
	}
	return nil
}

// amongLargest reports whether fewer than k predictions are larger than that of the target. Nothing can be said, and the
// answer is no, where the target is no class or predictions are not finite before k larger ones were seen.
func amongLargest(predictions []float32, target, k int64) bool {
	if target < 0 || target >= int64(len(predictions)) || !finite(predictions[target]) {
		return false
	}
	larger, limit := int64(0), predictions[target]
	for _, v := range predictions {
		if !finite(v) {
			return false
		}
		if v > limit {
			if larger++; larger > k {
				break
			}
		}
	}
	return larger < k
}

func finite(v float32) bool { return !math.IsInf(float64(v), 0) && v == v }
