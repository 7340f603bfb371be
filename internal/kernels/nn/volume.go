package nn

import (
	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
)

// volume is a convolution of volumes with channels last. It is computed as a sum of 2-D
// convolutions over the planes of the filter.
type volume struct {
	batch, inC, outC int
	spans            [3]span // planes, rows, columns
}

// inPlane, outPlane and tap return the numbers of elements of a plane of the input, the output and
// the filter.
func (v *volume) inPlane() int  { return v.spans[1].in * v.spans[2].in * v.inC }
func (v *volume) outPlane() int { return v.spans[1].out * v.spans[2].out * v.outC }
func (v *volume) tap() int      { return v.spans[1].filter * v.spans[2].filter * v.inC * v.outC }

// meets returns the range of output planes for which plane f of the filter falls into the input,
// and the input plane that it meets for the first of them.
func (v *volume) meets(f int) (lo, hi, at int) {
	s := &v.spans[0]
	shift := f*s.dilation - s.before
	if shift < 0 {
		lo = (-shift + s.stride - 1) / s.stride
	}
	if shift < s.in {
		hi = min(s.out, (s.in-shift+s.stride-1)/s.stride)
	}
	return lo, max(lo, hi), lo*s.stride + shift
}

// eachRun calls visit for runs of consecutive output planes of one volume that plane f of the
// filter meets. visit receives the 2-D convolution of the planes, and the numbers of the first
// input and output planes. With a stride, each run is a single plane.
func (v *volume) eachRun(f int, visit func(s *conv.Shape, in, out int)) {
	lo, hi, at := v.meets(f)
	step := hi - lo
	if v.spans[0].stride > 1 {
		step = 1
	}
	s := convShape(step, v.inC, v.outC, v.spans[1], v.spans[2])
	for i := range v.batch {
		in, out := i*v.spans[0].in+at, i*v.spans[0].out
		for o := lo; o < hi; o += step {
			visit(&s, in+(o-lo)*v.spans[0].stride, out+o)
		}
	}
}

// eachFilterPlane calls visit for each plane of the filter. The first plane overwrites out and the
// others add to it. all reports whether a plane meets all of out. If no plane does, out is cleared
// first.
func eachFilterPlane[T simd.Float](v *volume, out []T, all func(lo, hi, at int) bool, visit func(f int, add bool)) {
	n, first := v.spans[0].filter, 0
	for first < n && !all(v.meets(first)) {
		first++
	}
	if first == n {
		clear(out)
	}
	for i := range n {
		visit((first+i)%n, i > 0 || first == n)
	}
}

// volumeForward computes y from x and the filter f [planes, rows, columns, inC, outC].
func volumeForward[T simd.Float](v *volume, y, x, f []T) {
	all := func(lo, hi, _ int) bool { return lo == 0 && hi == v.spans[0].out }
	eachFilterPlane(v, y, all, func(tap int, add bool) {
		v.eachRun(tap, func(s *conv.Shape, in, out int) {
			conv.Forward(s, y[out*v.outPlane():], x[in*v.inPlane():], f[tap*v.tap():], conv.Epilogue[T]{Add: add})
		})
	})
}

// volumePlain is like volumeForward, for integers.
func volumePlain[T elementwise.Integer](v *volume, y, x, f []T) {
	clear(y)
	for tap := range v.spans[0].filter {
		v.eachRun(tap, func(s *conv.Shape, in, out int) {
			addPlain(s, 0, s.Batch, y[out*v.outPlane():], x[in*v.inPlane():], f[tap*v.tap():])
		})
	}
}

// volumeInputGrad computes x, the gradient of the input, from y, the gradient of the output, and
// the filter.
func volumeInputGrad[T simd.Float](v *volume, x, y, f []T) {
	all := func(lo, hi, at int) bool { return v.spans[0].stride == 1 && at == 0 && hi-lo == v.spans[0].in }
	eachFilterPlane(v, x, all, func(tap int, add bool) {
		v.eachRun(tap, func(s *conv.Shape, in, out int) {
			conv.InputGrad(s, x[in*v.inPlane():], y[out*v.outPlane():], f[tap*v.tap():], add)
		})
	})
}

// volumeFilterGrad computes f, the gradient of the filter, from the input and y, the gradient of
// the output.
func volumeFilterGrad[T simd.Float](v *volume, f, x, y []T) {
	for tap := range v.spans[0].filter {
		df, add := f[tap*v.tap():][:v.tap()], false
		v.eachRun(tap, func(s *conv.Shape, in, out int) {
			conv.FilterGrad(s, df, x[in*v.inPlane():], y[out*v.outPlane():], add)
			add = true
		})
		if !add {
			clear(df)
		}
	}
}
