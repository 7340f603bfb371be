package mathops

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	loop := elementwise.Map232(logAddExp)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "CumulativeLogsumexp",
			Doc: "Computes the logarithm of the cumulative sum of exponentials along an axis. exclusive " +
				"excludes the element itself, and reverse starts from the end.",
			In:  []string{"x: T", "axis: Tidx"},
			Out: []string{"out: T"},
			Attrs: []string{
				"exclusive: bool = false",
				"reverse: bool = false",
				"T: {bfloat16, float16, float32, float64}",
				"Tidx: {int32, int64} = int32",
			},
			Shape: opdef.SameShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Float32:  newScan(loop, nil, float32(math.Inf(-1))),
			tensor.Float64:  newScan(elementwise.Map2(logAddExp), nil, math.Inf(-1)),
			tensor.Float16:  newScan(elementwise.Via32Binary[tensor.Float16Elem](loop), nil, tensor.Float16Of(float32(math.Inf(-1)))),
			tensor.BFloat16: newScan(elementwise.Via32Binary[tensor.BFloat16Elem](loop), nil, tensor.BFloat16Of(float32(math.Inf(-1)))),
		}),
	})
}

// logAddExp returns log(e^x + e^y) without overflow.
func logAddExp(x, y float64) float64 {
	lo, hi := min(x, y), max(x, y)
	if math.IsInf(hi, 0) || math.IsNaN(hi) {
		return hi
	}
	return hi + math.Log1p(math.Exp(lo-hi))
}
