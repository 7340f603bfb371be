package nn

import (
	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/tensor"
)

// convEngine holds the functions that compute channels-last convolutions and their gradients. Each
// function fills its first slice. x is the input, f the filter and y the output.
type convEngine[T tensor.Elem] struct {
	forward    func(s *conv.Shape, y, x, f []T)
	inputGrad  func(s *conv.Shape, x, y, f []T)
	filterGrad func(s *conv.Shape, f, x, y []T)
}

func floatEngine[T simd.Float]() convEngine[T] {
	return convEngine[T]{
		forward:    func(s *conv.Shape, y, x, f []T) { conv.Forward(s, y, x, f, conv.Epilogue[T]{}) },
		inputGrad:  func(s *conv.Shape, x, y, f []T) { conv.InputGrad(s, x, y, f, false) },
		filterGrad: func(s *conv.Shape, f, x, y []T) { conv.FilterGrad(s, f, x, y, false) },
	}
}

// shortEngine returns an engine for a 16-bit type that computes in float32.
func shortEngine[H elementwise.Short]() convEngine[H] {
	e := floatEngine[float32]()
	return convEngine[H]{
		forward:    func(s *conv.Shape, y, x, f []H) { viaWide(s, e.forward, y, x, f) },
		inputGrad:  func(s *conv.Shape, x, y, f []H) { viaWide(s, e.inputGrad, x, y, f) },
		filterGrad: func(s *conv.Shape, f, x, y []H) { viaWide(s, e.filterGrad, f, x, y) },
	}
}

// bfloatEngine returns an engine that uses the bfloat16 instructions of the processor, or float32
// if it has none.
func bfloatEngine() convEngine[tensor.BFloat16Elem] {
	e := shortEngine[tensor.BFloat16Elem]()
	e.forward = bfloatOr(conv.ForwardBFloat16[tensor.BFloat16Elem], e.forward)
	e.inputGrad = bfloatOr(conv.InputGradBFloat16[tensor.BFloat16Elem], e.inputGrad)
	e.filterGrad = bfloatOr(conv.FilterGradBFloat16[tensor.BFloat16Elem], e.filterGrad)
	return e
}

type (
	bfloats   = []tensor.BFloat16Elem
	bfloatFn  = func(s *conv.Shape, out, a, b bfloats)
	bfloatTry = func(s *conv.Shape, out []float32, a, b bfloats) bool
)

// bfloatOr returns a function that tries direct and falls back to otherwise if direct reports
// false.
func bfloatOr(direct bfloatTry, otherwise bfloatFn) bfloatFn {
	return func(s *conv.Shape, out, a, b bfloats) {
		m := microkernel.ScratchOf[float32]()
		wide := microkernel.Resize(&m.BufA, len(out))
		done := direct(s, wide, a, b)
		if done {
			elementwise.Narrow(out, wide)
		}
		m.Release()
		if !done {
			otherwise(s, out, a, b)
		}
	}
}

func viaWide[H elementwise.Short](s *conv.Shape, compute func(s *conv.Shape, out, a, b []float32), out, a, b []H) {
	m := microkernel.ScratchOf[float32]()
	defer m.Release()
	z, x, y := microkernel.Resize(&m.BufC, len(out)), microkernel.Resize(&m.BufA, len(a)), microkernel.Resize(&m.BufB, len(b))
	elementwise.Widen(x, a)
	elementwise.Widen(y, b)
	compute(s, z, x, y)
	elementwise.Narrow(out, z)
}

// plainEngine returns an engine of simple loops, for types without vector code.
func plainEngine[T elementwise.Integer]() convEngine[T] {
	return convEngine[T]{
		forward: func(s *conv.Shape, y, x, f []T) {
			clear(y)
			parallel.For(s.Batch, 1, func(lo, hi int) { addPlain(s, lo, hi, y, x, f) })
		},
		inputGrad: func(s *conv.Shape, x, y, f []T) {
			clear(x)
			in, out := s.InC/s.Groups, s.OutC/s.Groups
			parallel.For(s.Batch, 1, func(lo, hi int) {
				eachTap(s, lo, hi, func(px, pf, py int) {
					sums := x[px*s.InC:][:s.InC]
					for c := range sums {
						row := f[(pf*in+c%in)*s.OutC:][c/in*out:][:out]
						for o, v := range y[py*s.OutC:][c/in*out:][:out] {
							sums[c] += v * row[o]
						}
					}
				})
			})
		},
	}
}

// addPlain adds the convolution of images lo to hi to y.
func addPlain[T elementwise.Integer](s *conv.Shape, lo, hi int, y, x, f []T) {
	in, out := s.InC/s.Groups, s.OutC/s.Groups
	eachTap(s, lo, hi, func(px, pf, py int) {
		for c, v := range x[px*s.InC:][:s.InC] {
			row := f[(pf*in+c%in)*s.OutC:][c/in*out:][:out]
			for o, sums := 0, y[py*s.OutC:][c/in*out:][:out]; o < len(sums); o++ {
				sums[o] += v * row[o]
			}
		}
	})
}

// eachTap calls visit for each pair of an output pixel in images lo to hi and a filter element that
// meets an input pixel. px, pf and py are the indices of the input pixel, the filter element and
// the output pixel.
func eachTap(s *conv.Shape, lo, hi int, visit func(px, pf, py int)) {
	rows := span{s.InH, s.FilterH, s.OutH, s.StrideH, s.DilationH, s.PadTop}
	cols := span{s.InW, s.FilterW, s.OutW, s.StrideW, s.DilationW, s.PadLeft}
	for n := lo; n < hi; n++ {
		for oy := range s.OutH {
			fy0, fy1, y0 := rows.clip(oy)
			for ox := range s.OutW {
				fx0, fx1, x0 := cols.clip(ox)
				py := (n*s.OutH+oy)*s.OutW + ox
				for fy, y := fy0, y0; fy < fy1; fy, y = fy+1, y+s.DilationH {
					px := (n*s.InH+y)*s.InW + x0
					for fx := fx0; fx < fx1; fx++ {
						visit(px, fy*s.FilterW+fx, py)
						px += s.DilationW
					}
				}
			}
		}
	}
}
