package state

import (
	"math"

	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// stepCost is the time per element, in nanoseconds, that work on an optimizer's step is divided by.
const stepCost = 1

func init() {
	(&step{
		name: "GradientDescent", doc: "Moves a variable against its gradient: var -= alpha*delta.",
		vars: []string{"var"}, scalars: []string{"alpha"}, grad: "delta",
		kernels: func(s *step, resource bool) kernel.Table {
			return kernel.Table{
				tensor.Float32:  dense(s, resource, descend[float32]),
				tensor.Float64:  dense(s, resource, descend[float64]),
				tensor.Float16:  viaFloat32[tensor.Half](s, resource, descend[float32]),
				tensor.BFloat16: viaFloat32[tensor.BFloat](s, resource, descend[float32]),
			}
		},
	}).register()
	(&step{
		name: "Momentum",
		doc: "Moves a variable by a velocity that gathers gradients: accum = accum*momentum + grad; var -= lr*accum. With use_nesterov " +
			"the gradient is that at the point the velocity leads to.",
		vars: []string{"var", "accum"}, scalars: []string{"lr"}, grad: "grad", after: []string{"momentum"},
		attrs:   []string{"use_nesterov: bool = false"},
		kernels: flagged("use_nesterov", momentum[float32], momentum[float64]),
	}).register()
	(&step{
		name: "Adagrad",
		doc:  "Divides the rate by the root of the sum of squared gradients: accum += grad²; var -= lr*grad/sqrt(accum).",
		vars: []string{"var", "accum"}, scalars: []string{"lr"}, grad: "grad",
		attrs:   []string{"update_slots: bool = true"},
		kernels: flagged("update_slots", adagrad[float32], adagrad[float64]),
	}).register()
	(&step{
		name: "Adam",
		doc: "Adam (Kingma and Ba, 2014): m and v are running means of the gradient and of its square, and var moves by " +
			"lr*sqrt(1-beta2_power)/(1-beta1_power) * m/(sqrt(v)+epsilon).",
		vars: []string{"var", "m", "v"}, scalars: []string{"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"}, grad: "grad",
		attrs:   []string{"use_nesterov: bool = false"},
		kernels: flagged("use_nesterov", adam[float32], adam[float64]),
	}).register()
}

// flagged returns the kernels of a step whose arithmetic depends on an attribute.
func flagged(attr string, f32 func(bool) update[float32], f64 func(bool) update[float64]) func(*step, bool) kernel.Table {
	return func(s *step, resource bool) kernel.Table {
		pick := func(on func(bool) kernel.New) kernel.New {
			return func(c *kernel.Construction) (kernel.Kernel, error) { return on(c.Attrs.Bool(attr))(c) }
		}
		return kernel.Table{
			tensor.Float32:  pick(func(b bool) kernel.New { return dense(s, resource, f32(b)) }),
			tensor.Float64:  pick(func(b bool) kernel.New { return dense(s, resource, f64(b)) }),
			tensor.Float16:  pick(func(b bool) kernel.New { return viaFloat32[tensor.Half](s, resource, f32(b)) }),
			tensor.BFloat16: pick(func(b bool) kernel.New { return viaFloat32[tensor.BFloat](s, resource, f32(b)) }),
		}
	}
}

// viaFloat32 returns the kernel of a step on a 16-bit type, computed in float32 and rounded once.
func viaFloat32[H interface {
	elementwise.Short
	tensor.Elem
}](s *step, resource bool, f update[float32]) kernel.New {
	return dense(s, resource, func(v [][]H, p, g []H) {
		wide := func(x []H) []float32 {
			out := make([]float32, len(x))
			elementwise.Widen(out, x)
			return out
		}
		vars := make([][]float32, len(v))
		for i := range v {
			vars[i] = wide(v[i])
		}
		f(vars, wide(p), wide(g))
		for i := range v {
			elementwise.Narrow(v[i], vars[i])
		}
	})
}

// blocks runs f on blocks of n elements, on several cores if they are many.
func blocks(n int, f func(lo, hi int)) { parallel.For(n, elementwise.Grain(stepCost), f) }

func descend[T simd.Float](v [][]T, p, g []T) {
	blocks(len(g), func(lo, hi int) { simd.SGD(v[0][lo:hi], g[lo:hi], p[0]) })
}

func momentum[T simd.Float](nesterov bool) update[T] {
	return func(v [][]T, p, g []T) {
		blocks(len(g), func(lo, hi int) { simd.Momentum(v[0][lo:hi], v[1][lo:hi], g[lo:hi], p[0], p[1], nesterov) })
	}
}

func adagrad[T simd.Float](updateSlots bool) update[T] {
	return func(v [][]T, p, g []T) {
		blocks(len(g), func(lo, hi int) { simd.Adagrad(v[0][lo:hi], v[1][lo:hi], g[lo:hi], p[0], 0, !updateSlots) })
	}
}

func adam[T simd.Float](nesterov bool) update[T] {
	return func(v [][]T, p, g []T) {
		correction := T(math.Sqrt(float64(1-p[1]))) / (1 - p[0])
		r := simd.AdamRates[T]{Rate: p[2] * correction, Beta1: p[3], Beta2: p[4], Epsilon: p[5], Nesterov: nesterov}
		blocks(len(g), func(lo, hi int) { simd.Adam(v[0][lo:hi], v[1][lo:hi], v[2][lo:hi], g[lo:hi], r) })
	}
}
