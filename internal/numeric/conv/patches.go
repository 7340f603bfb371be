package conv

import (
	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// The functions below write the patches of some images as a matrix with one row per output and one
// column per filter element, and multiply it.

// patchElements is the approximate size of such a matrix.
const patchElements = 64 << 10

// group returns the number of images whose patches form a matrix of that size.
func (s *Shape) group() int {
	return min(s.Batch, max(1, patchElements/max(1, s.pixels()*s.patch())))
}

func forwardPatches[T simd.Float](s *Shape, y, x, f []T, e Epilogue[T]) {
	parallel.For(s.Batch, s.group(), func(lo, hi int) {
		b := microkernel.ScratchOf[T]()
		defer b.Release()
		rows := (hi - lo) * s.pixels()
		p := microkernel.Resize(&b.BufA, rows*s.patch())
		for g := range s.groups() {
			s.patches(lo, hi, g, func(at, from, n int) { copyOrClear(p[at:at+n], x, from) })
			gemm.Mul(channels(y[lo*s.pixels()*s.OutC:], rows, s.OutC, g, s), gemm.Dense(p, rows, s.patch()),
				channels(f, s.patch(), s.OutC, g, s), e.options(g*s.groupOut()))
		}
	})
}

func inputGradPatches[T simd.Float](s *Shape, dx, dy, f []T, add bool) {
	image := s.InH * s.InW * s.InC
	parallel.For(s.Batch, s.group(), func(lo, hi int) {
		b := microkernel.ScratchOf[T]()
		defer b.Release()
		rows := (hi - lo) * s.pixels()
		p := microkernel.Resize(&b.BufA, rows*s.patch())
		if !add {
			clear(dx[lo*image : hi*image])
		}
		for g := range s.groups() {
			gemm.Mul(gemm.Dense(p, rows, s.patch()), channels(dy[lo*s.pixels()*s.OutC:], rows, s.OutC, g, s),
				channels(f, s.patch(), s.OutC, g, s).T(), gemm.Options[T]{})
			s.patches(lo, hi, g, func(at, from, n int) {
				if from < 0 {
					return
				}
				for i, v := range p[at : at+n] {
					dx[from+i] += v
				}
			})
		}
	})
}

func filterGradPatches[T simd.Float](s *Shape, df, x, dy []T, add bool) {
	b := microkernel.ScratchOf[T]()
	defer b.Release()
	o := (&Epilogue[T]{Add: add}).options(0)
	for lo := 0; lo < s.Batch; lo += s.group() {
		hi := min(s.Batch, lo+s.group())
		rows := (hi - lo) * s.pixels()
		p := microkernel.Resize(&b.BufA, rows*s.patch())
		for g := range s.groups() {
			s.patches(lo, hi, g, func(at, from, n int) { copyOrClear(p[at:at+n], x, from) })
			gemm.Mul(channels(df, s.patch(), s.OutC, g, s), gemm.Dense(p, rows, s.patch()).T(),
				channels(dy[lo*s.pixels()*s.OutC:], rows, s.OutC, g, s), o)
		}
		o.Beta = 1
	}
}

func copyOrClear[T any](dst, x []T, from int) {
	if from < 0 {
		clear(dst)
	} else {
		copy(dst, x[from:])
	}
}

// patches calls f for runs of n elements of the patches of images [lo, hi) in the channels of a
// group. at is the position in the matrix. from is the position in the input, or -1 if the run lies
// outside the image.
func (s *Shape) patches(lo, hi, group int, f func(at, from, n int)) {
	at, row := 0, s.FilterW*s.groupIn()
	for image := lo; image < hi; image++ {
		for oy := range s.OutH {
			for ox := range s.OutW {
				top, left := oy*s.StrideH-s.PadTop, ox*s.StrideW-s.PadLeft
				for a := range s.FilterH {
					y := top + a*s.DilationH
					if y < 0 || y >= s.InH {
						f(at, -1, row)
					} else {
						s.patchRow(at, (image*s.InH+y)*s.InW*s.InC+group*s.groupIn(), left, f)
					}
					at += row
				}
			}
		}
	}
}

// patchRow is patches for one row of a patch, which begins at column left of the image row at from.
func (s *Shape) patchRow(at, from, left int, f func(at, from, n int)) {
	n := s.groupIn()
	if s.DilationW == 1 && n == s.InC {
		before := min(s.FilterW, max(0, -left))
		inside := max(0, min(s.FilterW-before, s.InW-left-before))
		if before > 0 {
			f(at, -1, before*n)
		}
		if inside > 0 {
			f(at+before*n, from+(left+before)*n, inside*n)
		}
		if rest := s.FilterW - before - inside; rest > 0 {
			f(at+(before+inside)*n, -1, rest*n)
		}
		return
	}
	for b := range s.FilterW {
		col := left + b*s.DilationW
		if col < 0 || col >= s.InW {
			f(at+b*n, -1, n)
		} else {
			f(at+b*n, from+col*s.InC, n)
		}
	}
}
