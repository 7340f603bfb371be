package random

import (
	"github.com/weft-ml/weft/internal/philox"
	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, op := range []struct {
		name, doc string
		kernels   kernel.Table
	}{
		{"RandomUniform", "Draws numbers uniformly distributed over [0, 1).", kernel.Table{
			tensor.Float16:  drawing(philox.UniformHalf),
			tensor.BFloat16: drawing(philox.UniformBFloat),
			tensor.Float32:  drawing(philox.Uniform32),
			tensor.Float64:  drawing(philox.Uniform64),
		}},
		{"RandomStandardNormal", "Draws numbers from the normal distribution with mean 0 and deviation 1.", kernel.Table{
			tensor.Float16:  drawing(philox.NormalHalf),
			tensor.BFloat16: drawing(philox.NormalBFloat),
			tensor.Float32:  drawing(philox.NormalFloat32),
			tensor.Float64:  drawing(philox.NormalFloat64),
		}},
		{"TruncatedNormal", "Draws numbers from the standard normal distribution, again where one is beyond two deviations.", kernel.Table{
			tensor.Float16:  drawing(philox.TruncatedHalf),
			tensor.BFloat16: drawing(philox.TruncatedBFloat),
			tensor.Float32:  drawing(philox.TruncatedFloat32),
			tensor.Float64:  drawing(philox.TruncatedFloat64),
		}},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: op.doc,
				In: []string{"shape: T"}, Out: []string{"output: dtype"},
				Attrs: []string{
					"seed: int = 0", "seed2: int = 0", "dtype: {float16, bfloat16, float32, float64}", "T: {int32, int64}",
				},
				Stateful: true, Shape: shapeOfInput0,
			},
			Kernels: kernel.ByType("dtype", op.kernels),
		})
	}
}

// shapeOfInput0 is the rule of operations whose first input is the shape of the output.
func shapeOfInput0(c *opdef.ShapeContext) error {
	s, err := shapes.Input(c, 0)
	c.SetAll(s)
	return err
}
