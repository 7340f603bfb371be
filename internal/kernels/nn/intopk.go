package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Returns whether the targets are in the top K predictions of their row. Classes that tie with the K-th prediction are considered to be in the top K."
	kernel.RegisterNew(opdef.Def{
		Name: "InTopK", Doc: doc,
		In: []string{"predictions: float32", "targets: T"}, Out: []string{"precision: bool"},
		Attrs: []string{"k: int", "T: {int32, int64} = int32"}, Shape: inTopKShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		k := int64(c.Attrs.Int("k"))
		return kernel.Func(func(ctx *kernel.Context) error { return inTopK(ctx, k) }), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "InTopKV2", Doc: doc,
		In: []string{"predictions: float32", "targets: T", "k: T"}, Out: []string{"precision: bool"},
		Attrs: []string{"T: {int32, int64} = int32"}, Shape: inTopKShape,
	}, func(ctx *kernel.Context) error {
		k := ctx.Input(2)
		if k.Rank() != 0 {
			return status.InvalidArgumentf("k must be 0-D, got shape %v", k.Shape())
		}
		return inTopK(ctx, intarg.Scalar(k))
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
	for i, target := range intarg.Values(targets) {
		z[i] = amongLargest(x[i*n:(i+1)*n], target, k)
	}
	return nil
}

// amongLargest reports whether fewer than k predictions are larger than that of the target. It
// reports false if the target is not a class or a prediction is not finite. The inner loop has no
// branches, because the order of predictions is unpredictable.
func amongLargest(predictions []float32, target, k int64) bool {
	if target < 0 || target >= int64(len(predictions)) {
		return false
	}
	limit, nonFinite := predictions[target], uint32(0)
	const first, most = 8, 64 // block sizes: the search stops once k predictions are larger
	for larger, n := int64(0), first; len(predictions) > 0; n = min(2*n, most) {
		some := predictions[:min(n, len(predictions))]
		for _, v := range some {
			// The exponent bits of a non-finite number are all ones, so the sum overflows into the
			// sign bit.
			nonFinite |= math.Float32bits(v)&0x7fffffff + 1<<23
			one := int64(0)
			if v > limit {
				one = 1
			}
			larger += one
		}
		if larger >= k || nonFinite>>31 != 0 {
			return false
		}
		predictions = predictions[len(some):]
	}
	return true
}
