package nn

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// perChannel holds one value per channel. Its methods process a piece of a tensor: whole rows of
// all channels if channel is negative, and otherwise elements of that channel alone.
type perChannel[T simd.Float] []T

func (v perChannel[T]) add(z, x []T, channel int) {
	if channel < 0 {
		simd.AddRow(z, x, v)
		return
	}
	simd.AddScalar(z, x, v[channel])
}

func (v perChannel[T]) mul(z, x []T, channel int) {
	if channel < 0 {
		simd.MulRow(z, x, v)
		return
	}
	simd.MulScalar(z, x, v[channel])
}

// values returns f(c) for each channel c.
func values[T simd.Float](n int, f func(c int) T) perChannel[T] {
	v := perChannel[T](membudget.Make[T](n))
	for c := range v {
		v[c] = f(c)
	}
	return v
}

// pieces splits a tensor into pieces and calls visit for each, on several cores. visit receives the
// bounds of the piece and its channel, or -1 if the piece consists of whole rows.
func (l channelLayout) pieces(visit func(lo, hi, channel int)) {
	if l.inner == 1 {
		n := l.channels
		parallel.For(l.outer, max(1, 4*scratchLen/n), func(lo, hi int) { visit(lo*n, hi*n, -1) })
		return
	}
	n := l.inner
	parallel.For(l.outer*l.channels, max(1, scratchLen/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			visit(i*n, (i+1)*n, i%l.channels)
		}
	})
}

// sumsOf returns the sum of each channel over tmp, which prepare computes for each piece of a
// tensor.
func sumsOf[T simd.Float](l channelLayout, prepare func(tmp []T, lo, hi, channel int)) []float64 {
	total := membudget.Make[float64](l.channels)
	if l.inner > 1 {
		parallel.For(l.channels, max(1, scratchLen/(l.inner*l.outer)), func(lo, hi int) {
			tmp := membudget.Make[T](l.inner)
			for c := lo; c < hi; c++ {
				for o := range l.outer {
					at := (o*l.channels + c) * l.inner
					prepare(tmp, at, at+l.inner, c)
					total[c] += simd.Sum64(tmp)
				}
			}
		})
		return total
	}
	n := l.channels
	rows := max(1, scratchLen/n)       // per piece, so that it stays in the cache
	block := rows * max(1, 64/rows+16) // rows that one core sums
	parts := membudget.Make[float64](parallel.Blocks(l.outer, block) * n)
	parallel.For(l.outer, block, func(lo, hi int) {
		part, tmp, sum := parts[lo/block*n:][:n], membudget.Make[T](rows*n), membudget.Make[T](n)
		for ; lo < hi; lo += rows {
			piece := tmp[:min(rows, hi-lo)*n]
			prepare(piece, lo*n, lo*n+len(piece), -1)
			clear(sum)
			simd.SumColumns(sum, piece)
			for c, v := range sum {
				part[c] += float64(v)
			}
		}
	})
	for i, v := range parts {
		total[i%n] += v
	}
	return total
}

// wide returns the elements of a tensor of type float32 or of a 16-bit type as float32. For float32
// they share the memory of the tensor; for other types they are copies.
func wide(t *tensor.Tensor) []float32 {
	switch t.DType() {
	case tensor.Float16:
		return widened(tensor.Values[tensor.Float16Elem](t))
	case tensor.BFloat16:
		return widened(tensor.Values[tensor.BFloat16Elem](t))
	default:
		return tensor.Values[float32](t)
	}
}

func widened[H elementwise.Short](x []H) []float32 {
	out := membudget.Make[float32](len(x))
	elementwise.Widen(out, x)
	return out
}

// wideOutput returns the slice that receives the float32 values of an output tensor, and a function
// that stores them in the tensor. Call done when vals is complete.
func wideOutput(t *tensor.Tensor) (vals []float32, done func()) {
	switch t.DType() {
	case tensor.Float16:
		vals = membudget.Make[float32](t.NumElements())
		return vals, func() { elementwise.Narrow(tensor.Values[tensor.Float16Elem](t), vals) }
	case tensor.BFloat16:
		vals = membudget.Make[float32](t.NumElements())
		return vals, func() { elementwise.Narrow(tensor.Values[tensor.BFloat16Elem](t), vals) }
	default:
		return tensor.Values[float32](t), func() {}
	}
}
