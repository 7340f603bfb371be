package philox

import (
	"math"

	"github.com/weft-ml/weft/tensor"
)

// tiny replaces smaller uniform numbers, whose logarithm would be too large or infinite.
const tiny = 1.0e-7

// Normal32 returns two samples of the standard normal distribution, computed from two words by the
// Box–Muller transform.
func Normal32(x0, x1 uint32) (float32, float32) {
	u := max(Unit32(x0), tiny)
	radius := float32(math.Sqrt(float64(-2 * log32(u))))
	sin, cos := sincos32(float32(2 * math.Pi * float64(Unit32(x1))))
	return sin * radius, cos * radius
}

// Normal64 returns two samples of the standard normal distribution, computed from four words by the
// Box–Muller transform.
func Normal64(x0, x1, x2, x3 uint32) (float64, float64) {
	u := max(Unit64(x0, x1), tiny)
	radius := math.Sqrt(-2 * log64(u))
	sin, cos := sincos64(2 * math.Pi * Unit64(x2, x3))
	return sin * radius, cos * radius
}

func normals32(x *[4]uint32) (out [4]float32) {
	out[0], out[1] = Normal32(x[0], x[1])
	out[2], out[3] = Normal32(x[2], x[3])
	return out
}

func normals64(x *[4]uint32) (out [4]float64) {
	out[0], out[1] = Normal64(x[0], x[1], x[2], x[3])
	return out
}

// Standard normal distributions.
var (
	NormalHalf    = narrowed(NormalFloat32, tensor.Float16Of)
	NormalBFloat  = narrowed(NormalFloat32, tensor.BFloat16Of)
	NormalFloat32 = mapped(8, normals)
	NormalFloat64 = outputs(2, 80, func(x *[4]uint32, out []float64) {
		v := normals64(x)
		copy(out, v[:])
	})
)

// limit is the bound of the truncated normal distributions, in standard deviations.
const limit = 2

// Standard normal distributions truncated to two standard deviations from the mean.
var (
	TruncatedHalf    = narrowed(TruncatedFloat32, tensor.Float16Of)
	TruncatedBFloat  = narrowed(TruncatedFloat32, tensor.BFloat16Of)
	TruncatedFloat32 = &Distribution[float32]{Group: 4, Stride: reserved, Cost: 25, Fill: fillTruncated}
	TruncatedFloat64 = rejecting(2, 100, normals64, 2, func(v float64) bool { return -limit < v && v < limit })
)

// fillTruncated computes the candidates of the first two outputs of many groups at once, which
// nearly always suffice.
func fillTruncated(g Generator, out []float32) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	accept := func(v float32) bool { return -limit < v && v < limit }
	for len(out) > 0 {
		n := min(most, (len(out)+3)/4)
		for i, at := 0, g; i < len(s.samples); i++ {
			x := s.outputs(at, reserved, (n+3)/4*4)
			normals(s.samples[i][:4*len(x)], flat(x))
			at.Skip(1)
		}
		for i := range n {
			group, k := out[:min(4, len(out))], 0
			out = out[len(group):]
			for j := 0; j < len(s.samples) && k < len(group); j++ {
				for _, v := range s.samples[j][4*i : 4*i+4] {
					if k < len(group) && accept(v) {
						group[k] = v
						k++
					}
				}
			}
			if k < len(group) {
				at := g
				at.Skip(uint64(i) * reserved)
				untilFull(at, group, normals32, 4, accept)
			}
		}
		g.Skip(uint64(n) * reserved)
	}
}

// narrowed returns a distribution with the samples of d, rounded.
func narrowed[T any](d *Distribution[float32], round func(float32) T) *Distribution[T] {
	return &Distribution[T]{Group: d.Group, Stride: d.Stride, Cost: d.Cost + 10, Fill: func(g Generator, out []T) {
		var block [1024]float32
		for len(out) > 0 {
			n := min(len(block), len(out))
			d.Fill(g, block[:n])
			for i, v := range block[:n] {
				out[i] = round(v)
			}
			g.Skip(uint64(n/d.Group) * d.Stride)
			out = out[n:]
		}
	}}
}
