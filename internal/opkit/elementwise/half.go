package elementwise

import (
	"sync"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/tensor"
)

// Short is the constraint of 16-bit floating-point types, whose arithmetic uses float32.
type Short interface {
	tensor.Float16Elem | tensor.BFloat16Elem
}

// scratchLen is the number of elements that are widened at a time. Three such blocks fit in the L1
// cache.
const scratchLen = 1024

type scratch struct{ x, y, z [scratchLen]float32 }

var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

// Widen sets dst to the values of src.
func Widen[H Short](dst []float32, src []H) {
	switch src := any(src).(type) {
	case []tensor.Float16Elem:
		simd.FromHalf(dst, src)
	case []tensor.BFloat16Elem:
		simd.FromBFloat(dst, src)
	}
}

// Narrow sets dst to the values of src, rounded to nearest even.
func Narrow[H Short](dst []H, src []float32) {
	switch dst := any(dst).(type) {
	case []tensor.Float16Elem:
		simd.ToHalf(dst, src, tensor.Float16Of)
	case []tensor.BFloat16Elem:
		simd.ToBFloat(dst, src, tensor.BFloat16Of)
	}
}

// Via32 returns the loop over a 16-bit type that computes with a loop over float32.
func Via32[H Short](loop func(z, x []float32)) func(z, x []H) {
	return func(z, x []H) {
		s := scratchPool.Get().(*scratch)
		defer scratchPool.Put(s)
		for lo := 0; lo < len(z); lo += scratchLen {
			n := min(scratchLen, len(z)-lo)
			Widen(s.x[:n], x[lo:])
			loop(s.z[:n], s.x[:n])
			Narrow(z[lo:lo+n], s.z[:n])
		}
	}
}

// Via32Binary is Via32 for loops with two inputs.
func Via32Binary[H Short](loop func(z, x, y []float32)) func(z, x, y []H) {
	return func(z, x, y []H) {
		s := scratchPool.Get().(*scratch)
		defer scratchPool.Put(s)
		for lo := 0; lo < len(z); lo += scratchLen {
			n := min(scratchLen, len(z)-lo)
			Widen(s.x[:n], x[lo:])
			Widen(s.y[:n], y[lo:])
			loop(s.z[:n], s.x[:n], s.y[:n])
			Narrow(z[lo:lo+n], s.z[:n])
		}
	}
}

// Via32To is Via32 for loops whose results have another type.
func Via32To[H Short, R tensor.Elem](loop func(z []R, x []float32)) func(z []R, x []H) {
	return func(z []R, x []H) {
		s := scratchPool.Get().(*scratch)
		defer scratchPool.Put(s)
		for lo := 0; lo < len(z); lo += scratchLen {
			n := min(scratchLen, len(z)-lo)
			Widen(s.x[:n], x[lo:])
			loop(z[lo:lo+n], s.x[:n])
		}
	}
}

// Via32BinaryTo is Via32Binary for loops whose results have another type.
func Via32BinaryTo[H Short, R tensor.Elem](loop func(z []R, x, y []float32)) func(z []R, x, y []H) {
	return func(z []R, x, y []H) {
		s := scratchPool.Get().(*scratch)
		defer scratchPool.Put(s)
		for lo := 0; lo < len(z); lo += scratchLen {
			n := min(scratchLen, len(z)-lo)
			Widen(s.x[:n], x[lo:])
			Widen(s.y[:n], y[lo:])
			loop(z[lo:lo+n], s.x[:n], s.y[:n])
		}
	}
}
