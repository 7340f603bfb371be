package nn

import (
	"github.com/weft-ml/weft/internal/gemm"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/simd"
)

// volume is a convolution of volumes with channels last. It is computed as a product with a matrix of patches, the parts
// of the input that each output depends on, of which a block is made at a time.
type volume struct {
	batch, inC, outC int
	spans            [3]span // planes, rows, columns
}

func (v *volume) taps() int  { return v.spans[0].filter * v.spans[1].filter * v.spans[2].filter }
func (v *volume) patch() int { return v.taps() * v.inC }
func (v *volume) outputs() int {
	return v.spans[0].out * v.spans[1].out * v.spans[2].out
}

// blockElements is the size of the largest block of patches.
const blockElements = 1 << 19

// blocks calls visit for ranges of the outputs of one image.
func (v *volume) blocks(visit func(lo, hi int)) {
	n, step := v.outputs(), max(8, blockElements/max(v.patch(), 1))
	for lo := 0; lo < n; lo += step {
		visit(lo, min(n, lo+step))
	}
}

// eachTap calls visit for the elements of the filter with the input pixel that each meets at output o of an image, or -1
// where it meets padding.
func (v *volume) eachTap(image, o int, visit func(tap, pixel int)) {
	s := &v.spans
	x, y, z := o%s[2].out, o/s[2].out%s[1].out, o/s[2].out/s[1].out
	at := func(s *span, o, f int) (int, bool) {
		p := o*s.stride - s.before + f*s.dilation
		return p, p >= 0 && p < s.in
	}
	tap := 0
	for fz := range s[0].filter {
		pz, okZ := at(&s[0], z, fz)
		for fy := range s[1].filter {
			py, okY := at(&s[1], y, fy)
			row := ((image*s[0].in+pz)*s[1].in + py) * s[2].in
			for fx := range s[2].filter {
				px, ok := at(&s[2], x, fx)
				if ok && okY && okZ {
					visit(tap, row+px)
				} else {
					visit(tap, -1)
				}
				tap++
			}
		}
	}
}

// gather copies the patches of outputs lo to hi of an image to p.
func gatherPatches[T simd.Float](v *volume, p, x []T, image, lo, hi int) {
	k, c := v.patch(), v.inC
	parallel.For(hi-lo, max(1, scratchLen/max(k, 1)), func(from, to int) {
		for i := from; i < to; i++ {
			row := p[i*k : (i+1)*k]
			v.eachTap(image, lo+i, func(tap, pixel int) {
				if dst := row[tap*c : (tap+1)*c]; pixel < 0 {
					clear(dst)
				} else {
					copy(dst, x[pixel*c:])
				}
			})
		}
	})
}

// scatterPatches adds the patches of outputs lo to hi of an image to x.
func scatterPatches[T simd.Float](v *volume, x, p []T, image, lo, hi int) {
	k, c := v.patch(), v.inC
	for i := range hi - lo {
		row := p[i*k : (i+1)*k]
		v.eachTap(image, lo+i, func(tap, pixel int) {
			if pixel >= 0 {
				dst := x[pixel*c : (pixel+1)*c]
				simd.Add(dst, dst, row[tap*c:(tap+1)*c])
			}
		})
	}
}

// patches returns room for a block of patches.
func patches[T simd.Float](v *volume) []T {
	return make([]T, min(v.outputs(), max(8, blockElements/max(v.patch(), 1)))*v.patch())
}

// volumeForward computes y from x and the filter f [planes, rows, columns, inC, outC].
func volumeForward[T simd.Float](v *volume, y, x, f []T) {
	k, p, filter := v.patch(), patches[T](v), gemm.Dense(f, v.patch(), v.outC)
	for image := range v.batch {
		v.blocks(func(lo, hi int) {
			gatherPatches(v, p, x, image, lo, hi)
			out := y[(image*v.outputs()+lo)*v.outC:][:(hi-lo)*v.outC]
			gemm.Mul(gemm.Dense(out, hi-lo, v.outC), gemm.Dense(p[:(hi-lo)*k], hi-lo, k), filter, gemm.Options[T]{})
		})
	}
}

// volumeInputGrad computes the gradient x of the input from y, that of the output, and the filter.
func volumeInputGrad[T simd.Float](v *volume, x, y, f []T) {
	clear(x)
	k, filter := v.patch(), gemm.Dense(f, v.patch(), v.outC).T()
	parallel.For(v.batch, 1, func(from, to int) {
		p := patches[T](v)
		for image := from; image < to; image++ {
			v.blocks(func(lo, hi int) {
				out := y[(image*v.outputs()+lo)*v.outC:][:(hi-lo)*v.outC]
				gemm.Mul(gemm.Dense(p[:(hi-lo)*k], hi-lo, k), gemm.Dense(out, hi-lo, v.outC), filter, gemm.Options[T]{})
				scatterPatches(v, x, p, image, lo, hi)
			})
		}
	})
}

// volumeFilterGrad computes the gradient f of the filter from the input and y, the gradient of the output.
func volumeFilterGrad[T simd.Float](v *volume, f, x, y []T) {
	clear(f)
	k, p, filter := v.patch(), patches[T](v), gemm.Dense(f, v.patch(), v.outC)
	for image := range v.batch {
		v.blocks(func(lo, hi int) {
			gatherPatches(v, p, x, image, lo, hi)
			out := y[(image*v.outputs()+lo)*v.outC:][:(hi-lo)*v.outC]
			gemm.Mul(filter, gemm.Dense(p[:(hi-lo)*k], hi-lo, k).T(), gemm.Dense(out, hi-lo, v.outC), gemm.Options[T]{Beta: 1})
		})
	}
}
