package boosted

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesBucketize", Doc: "Returns the buckets of values: for each, the index of the first boundary that is not smaller, or of the last boundary.",
		In:  []string{"float_values: num_features * float32", "bucket_boundaries: num_features * float32"},
		Out: []string{"buckets: num_features * int32"}, Attrs: []string{"num_features: int >= 0"},
		Shape: func(c *opdef.ShapeContext) error {
			n := shapefn.Unknown
			for i := range c.Attrs.Int("num_features") {
				values, err := opdef.WithRank(c.In[i], 1)
				if err != nil {
					return err
				}
				if n, err = opdef.MergeDims(n, values.Dim(0)); err != nil {
					return err
				}
				c.Out[i] = values
			}
			return nil
		},
	}, kernel.Stateless(bucketize))
}

func bucketize(ctx *kernel.Context) error {
	n := ctx.NumOutputs()
	for f := range n {
		bounds, err := vector[float32](ctx, n+f, "bucket_boundaries")
		if err != nil {
			return status.InvalidArgumentf("Buckets should be flat vectors.")
		}
		values, err := vector[float32](ctx, f, "float_values")
		if err != nil {
			return err
		}
		out, err := ctx.Allocate(f, tensor.Shape{int64(len(values))})
		if err != nil {
			return err
		}
		buckets := tensor.Values[int32](out)
		for i, v := range values {
			at, _ := slices.BinarySearch(bounds, v)
			buckets[i] = int32(max(0, min(at, len(bounds)-1))) //nolint:gosec // an index
		}
	}
	return nil
}
