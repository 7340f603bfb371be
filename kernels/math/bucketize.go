package math

import (
	"slices"
	"sort"

	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Bucketize", Doc: "The number of boundaries that are not greater than each element.",
			In:    []string{"input: T"},
			Out:   []string{"output: int32"},
			Attrs: []string{"T: {int32, int64, float32, float64}", "boundaries: list(float)"},
			Shape: opdef.SameShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Int32: bucketize[int32, float32], tensor.Int64: bucketize[int64, float32],
			tensor.Float32: bucketize[float32, float32], tensor.Float64: bucketize[float64, float64],
		}),
	})
}

// bucketize compares elements and boundaries as numbers of type F.
func bucketize[T int32 | int64 | float32 | float64, F float32 | float64](c *kernel.Construction) (kernel.Kernel, error) {
	boundaries := c.Attrs.Floats("boundaries")
	if !slices.IsSorted(boundaries) {
		return nil, status.InvalidArgumentf("Expected sorted boundaries")
	}
	return elementwise.Unary(costly, elementwise.Map(func(v T) int32 {
		return int32(sort.Search(len(boundaries), func(i int) bool { return F(v) < F(boundaries[i]) }))
	}))(c)
}
