package elementwise

import (
	"sync"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/tensor"
)

// Short are the 16-bit floating types, for which arithmetic goes through float32.
type Short interface{ tensor.Half | tensor.BFloat }

// detourLen is how many elements are widened at a time: three such blocks stay in the first cache.
const detourLen = 1024

type detour struct{ x, y, z [detourLen]float32 }

var detours = sync.Pool{New: func() any { return new(detour) }}

// Widen sets dst to the values of src.
func Widen[H Short](dst []float32, src []H) {
	switch src := any(src).(type) {
	case []tensor.Half:
		simd.FromHalf(dst, src)
	case []tensor.BFloat:
		simd.FromBFloat(dst, src)
	}
}

// Narrow sets dst to the values of src, rounded to nearest even.
func Narrow[H Short](dst []H, src []float32) {
	switch dst := any(dst).(type) {
	case []tensor.Half:
		simd.ToHalf(dst, src, tensor.HalfOf)
	case []tensor.BFloat:
		simd.ToBFloat(dst, src, tensor.BFloatOf)
	}
}

// Via32 returns the loop of a 16-bit type that computes with one of float32.
func Via32[H Short](loop func(z, x []float32)) func(z, x []H) {
	return func(z, x []H) {
		d := detours.Get().(*detour)
		defer detours.Put(d)
		for lo := 0; lo < len(z); lo += detourLen {
			n := min(detourLen, len(z)-lo)
			Widen(d.x[:n], x[lo:])
			loop(d.z[:n], d.x[:n])
			Narrow(z[lo:lo+n], d.z[:n])
		}
	}
}

// Via32Binary is Via32 for loops with two inputs.
func Via32Binary[H Short](loop func(z, x, y []float32)) func(z, x, y []H) {
	return func(z, x, y []H) {
		d := detours.Get().(*detour)
		defer detours.Put(d)
		for lo := 0; lo < len(z); lo += detourLen {
			n := min(detourLen, len(z)-lo)
			Widen(d.x[:n], x[lo:])
			Widen(d.y[:n], y[lo:])
			loop(d.z[:n], d.x[:n], d.y[:n])
			Narrow(z[lo:lo+n], d.z[:n])
		}
	}
}

// Via32To is Via32 for loops with results of another type.
func Via32To[H Short, R tensor.Elem](loop func(z []R, x []float32)) func(z []R, x []H) {
	return func(z []R, x []H) {
		d := detours.Get().(*detour)
		defer detours.Put(d)
		for lo := 0; lo < len(z); lo += detourLen {
			n := min(detourLen, len(z)-lo)
			Widen(d.x[:n], x[lo:])
			loop(z[lo:lo+n], d.x[:n])
		}
	}
}

// Via32BinaryTo is Via32Binary for loops with results of another type.
func Via32BinaryTo[H Short, R tensor.Elem](loop func(z []R, x, y []float32)) func(z []R, x, y []H) {
	return func(z []R, x, y []H) {
		d := detours.Get().(*detour)
		defer detours.Put(d)
		for lo := 0; lo < len(z); lo += detourLen {
			n := min(detourLen, len(z)-lo)
			Widen(d.x[:n], x[lo:])
			Widen(d.y[:n], y[lo:])
			loop(z[lo:lo+n], d.x[:n], d.y[:n])
		}
	}
}
