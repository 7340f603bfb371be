package nn

import (
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

const reluTypes = "{realnumbertype, qint8}"

func init() {
	registerActivation("Relu", "Computes max(features, 0).", reluTypes, "features", nil,
		real1(0.3, simd.Relu[float32], simd.Relu[float64], clampTable(noCeiling)),
		real2(0.4, simd.ReluGrad[float32], simd.ReluGrad[float64], passTable(noCeiling)))
	registerActivation("Relu6", "Computes min(max(features, 0), 6).", realTypes, "features", nil,
		real1(0.4, relu6[float32], relu6[float64], clampTable(6)),
		real2(1, relu6Grad[float32], relu6Grad[float64], passTable(6)))
}

func relu6[T simd.Float](z, x []T) { simd.Clamp(z, x, 0, 6) }

// relu6Grad multiplies blocked gradients by zero instead of dropping them, so that non-finite ones
// remain visible as NaN.
func relu6Grad[T simd.Float](z, g, x []T) {
	n := min(len(z), scratchLen)
	scratch := membudget.Make[T](2 * n)
	for lo := 0; lo < len(z); lo += scratchLen {
		n = min(n, len(z)-lo)
		z, g, x, zero, below := z[lo:lo+n], g[lo:lo+n], x[lo:lo+n], scratch[:n], scratch[n:2*n]
		simd.MulScalar(zero, g, 0)
		simd.SelectLess(below, x, 6, g, zero)
		simd.SelectGreater(z, x, 0, below, zero)
	}
}

// noCeiling disables the upper bound for integers.
const noCeiling = 0

// clampTable returns the integer kernels that clamp to the range from 0 to the ceiling.
func clampTable(ceiling int8) kernel.Table {
	return kernel.Table{
		tensor.Int8: clamp[int8](ceiling), tensor.Int16: clamp[int16](ceiling), tensor.Int32: clamp[int32](ceiling),
		tensor.Int64: clamp[int64](ceiling), tensor.Uint8: clamp[uint8](ceiling), tensor.Uint16: clamp[uint16](ceiling),
		tensor.Uint32: clamp[uint32](ceiling), tensor.Uint64: clamp[uint64](ceiling),
	}
}

func clamp[T elementwise.Integer](ceiling int8) kernel.New {
	return elementwise.Unary(0.5, elementwise.Map(func(x T) T {
		x = max(x, 0)
		if ceiling != noCeiling {
			x = min(x, T(ceiling))
		}
		return x
	}))
}

// passTable returns the integer kernels that pass on the gradient of features between 0 and the
// ceiling.
func passTable(ceiling int8) kernel.Table {
	return kernel.Table{
		tensor.Int8: pass[int8](ceiling), tensor.Int16: pass[int16](ceiling), tensor.Int32: pass[int32](ceiling),
		tensor.Int64: pass[int64](ceiling), tensor.Uint8: pass[uint8](ceiling), tensor.Uint16: pass[uint16](ceiling),
		tensor.Uint32: pass[uint32](ceiling), tensor.Uint64: pass[uint64](ceiling),
	}
}

func pass[T elementwise.Integer](ceiling int8) kernel.New {
	return binaryKernel(elementwise.Map2(func(g, x T) T {
		if x > 0 && (ceiling == noCeiling || x < T(ceiling)) {
			return g
		}
		return 0
	}))
}
