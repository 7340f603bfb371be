package nn

import (
	"math"
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/channelwise"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// orderedKernels holds the kernels, for one type, of operations that search for largest elements.
type orderedKernels struct {
	pool, poolV2, pool3D                    kernel.New
	grad, gradV2, grad3D                    kernel.New
	gradGrad, gradGradV2, gradGrad3D        kernel.New
	argmax, argmaxGrad, argmaxGradGrad      kernel.New
	dilation, dilationInput, dilationFilter kernel.New
	nthElement                              kernel.New
}

type orderedTable map[tensor.DType]orderedKernels

// table returns the kernel that pick selects for each of the types, or for all types if none are
// given.
func (m orderedTable) table(pick func(*orderedKernels) kernel.New, types ...tensor.DType) kernel.Table {
	out := kernel.Table{}
	if types == nil {
		for t, k := range m {
			out[t] = pick(&k)
		}
	}
	for _, t := range types {
		k := m[t]
		out[t] = pick(&k)
	}
	return out
}

// ordered has an entry for each real type.
var ordered = orderedTable{
	tensor.Float16:  orderedKernelsOf(shortOrder(tensor.Float16Of, -65504)),
	tensor.BFloat16: orderedKernelsOf(shortOrder(tensor.BFloat16Of, -0x1.fep127)),
	tensor.Float32:  orderedKernelsOf(floatOrder[float32](-math.MaxFloat32)),
	tensor.Float64:  orderedKernelsOf(floatOrder[float64](-math.MaxFloat64)),
	tensor.Int8:     orderedKernelsOf(intOrder[int8](math.MinInt8)),
	tensor.Int16:    orderedKernelsOf(intOrder[int16](math.MinInt16)),
	tensor.Int32:    orderedKernelsOf(intOrder[int32](math.MinInt32)),
	tensor.Int64:    orderedKernelsOf(intOrder[int64](math.MinInt64)),
	tensor.Uint8:    orderedKernelsOf(intOrder[uint8](0)),
	tensor.Uint16:   orderedKernelsOf(intOrder[uint16](0)),
	tensor.Uint32:   orderedKernelsOf(intOrder[uint32](0)),
	tensor.Uint64:   orderedKernelsOf(intOrder[uint64](0)),
}

func orderedKernelsOf[T tensor.Elem](o order[T]) orderedKernels {
	return orderedKernels{
		pool: newPool(2, o.maxPool), poolV2: newPoolV2(o.maxPool), pool3D: newPool(3, o.maxPool),
		grad: newMaxGrad(o.gradient), gradV2: newMaxGradV2(o.gradient), grad3D: newMaxGrad3D(o.nearGradient),
		argmax: o.newArgmax, argmaxGrad: o.newArgmaxGrad, argmaxGradGrad: newArgmaxGradGrad[T],
		dilation: newDilation(dilationForward, o), dilationInput: newDilation(dilationInputGrad, o),
		dilationFilter: newDilation(dilationFilterGrad, o), nthElement: newNthElement(o),
		gradGrad: newMaxGradGrad(2, o.gradGrad), gradGradV2: newMaxGradGradV2(o.gradGrad), gradGrad3D: newMaxGradGrad(3, o.gradGrad),
	}
}

// order holds what these operations need to know about an element type.
type order[T tensor.Elem] struct {
	lowest T
	less   func(a, b T) bool
	same   func(a, b T) bool
	add    func(a, b T) T
	// max sets z to the larger of z and x, and leaves z unchanged where x is NaN.
	max func(z, x []T)
	// near reports whether two values are considered equal by the gradient of 3-D pooling.
	near func(a, b T) bool
	vectorPooling[T]
}

// vectorPooling holds vector code for max pooling and its gradients. A function is nil if there is
// no vector code for it. grad returns false without any effect if it does not support its inputs.
type vectorPooling[T tensor.Elem] struct {
	pool     func(s *channelwise.Pooling, y, x []T)
	grad     func(s *channelwise.Pooling, dx, x, dy []T) bool
	nearGrad func(s *channelwise.Pooling, dx, x, y, dy []T)
}

func same[T comparable](a, b T) bool { return a == b }

func intOrder[T elementwise.Integer](lowest T) order[T] {
	return order[T]{
		lowest: lowest, less: less[T], same: same[T], near: same[T], add: func(a, b T) T { return a + b },
		max: func(z, x []T) { elementwise.Greatest(z, z, x) },
	}
}

// nearness is the distance below which values are considered near.
const nearness = 1e-5

func floatOrder[T simd.Float](lowest T) order[T] {
	return order[T]{
		lowest: lowest, less: less[T], same: same[T], add: func(a, b T) T { return a + b },
		near: func(a, b T) bool { return a-b < nearness && b-a < nearness },
		max:  func(z, x []T) { elementwise.Greatest(z, z, x) },
		vectorPooling: vectorPooling[T]{
			pool: channelwise.MaxPool[T], nearGrad: channelwise.NearPoolGrad[T],
			grad: func(s *channelwise.Pooling, dx, x, dy []T) bool {
				// In double precision, TensorFlow keeps a NaN that is the first element of its
				// window.
				if unsafe.Sizeof(T(0)) == 8 && math.IsNaN(float64(simd.MaxOf(x))) {
					return false
				}
				channelwise.MaxPoolGrad(s, dx, x, dy)
				return true
			},
		},
	}
}

func shortOrder[H elementwise.Short](round func(float32) H, lowest float32) order[H] {
	value := func(h H) float32 {
		var v [1]float32
		elementwise.Widen(v[:], []H{h})
		return v[0]
	}
	close := float64(value(round(nearness)))
	return order[H]{
		lowest: round(lowest),
		less:   func(a, b H) bool { return value(a) < value(b) },
		same:   func(a, b H) bool { return value(a) == value(b) },
		near:   func(a, b H) bool { return math.Abs(float64(value(a)-value(b))) < close },
		add:    func(a, b H) H { return round(value(a) + value(b)) },
		max: func(z, x []H) {
			elementwise.Arithmetic[H](elementwise.Max)(z, z, x)
		},
	}
}
