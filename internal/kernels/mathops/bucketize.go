package mathops

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Bucketize", Doc: "Returns, for each element, the number of boundaries that are not greater than it.",
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
	line := membudget.Make[F](len(boundaries))
	for i, b := range boundaries {
		line[i] = F(b)
	}
	return elementwise.Unary(medium, func(found []int32, x []T) {
		if same, ok := any(x).([]F); ok {
			elementwise.UpperBounds(found, line, same)
			return
		}
		var wanted [64]F
		for len(x) > 0 {
			n := min(len(x), len(wanted))
			for i, v := range x[:n] {
				wanted[i] = F(v)
			}
			elementwise.UpperBounds(found[:n], line, wanted[:])
			found, x = found[n:], x[n:]
		}
	})(c)
}
