package nn

import (
	"github.com/weft-ml/weft/internal/conv"
	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/simd"
)

// depthwiseEngine computes convolutions that keep channels apart: output c*m+q depends on input channel c alone, for m
// outputs per channel.
func depthwiseEngine[T simd.Float]() convEngine[T] {
	return convEngine[T]{forward: depthwiseForward[T], inputGrad: depthwiseInputGrad[T], filterGrad: depthwiseFilterGrad[T]}
}

func shortDepthwise[H elementwise.Short]() convEngine[H] {
	e := depthwiseEngine[float32]()
	return convEngine[H]{
		forward:    func(s *conv.Shape, y, x, f []H) { viaWide(s, e.forward, y, x, f) },
		inputGrad:  func(s *conv.Shape, x, y, f []H) { viaWide(s, e.inputGrad, x, y, f) },
		filterGrad: func(s *conv.Shape, f, x, y []H) { viaWide(s, e.filterGrad, f, x, y) },
	}
}

// run is what one element of the filter does to one row of outputs: pixels lo to hi of the row meet pixels of a row of the
// input, the first of them at, stride apart.
type run struct {
	tap    int // number of the filter's element
	lo, hi int
	in, at int // row of the input, in the whole batch, and column
}

// eachRun calls visit for the runs of rows lo to hi of the outputs of the whole batch.
func eachRun(s *conv.Shape, lo, hi int, visit func(row int, r run)) {
	rows := span{s.InH, s.FilterH, s.OutH, s.StrideH, s.DilationH, s.PadTop}
	for row := lo; row < hi; row++ {
		image, oy := row/s.OutH, row%s.OutH
		from, to, y := rows.clip(oy)
		for fy := from; fy < to; fy++ {
			for fx := range s.FilterW {
				// Output pixel ox meets input pixel ox*StrideW + shift.
				shift := fx*s.DilationW - s.PadLeft
				first := 0
				if shift < 0 {
					first = (-shift + s.StrideW - 1) / s.StrideW
				}
				last := s.OutW
				if room := s.InW - 1 - shift; room < (last-1)*s.StrideW {
					last = 0
					if room >= 0 {
						last = room/s.StrideW + 1
					}
				}
				if first < last {
					visit(row, run{fy*s.FilterW + fx, first, last, image*s.InH + y, first*s.StrideW + shift})
				}
			}
			y += s.DilationH
		}
	}
}

// depthwise is the scratch of one core.
type depthwise[T simd.Float] struct {
	*conv.Shape
	m       int // outputs per channel
	in, tmp []T // up to a row of outputs each
}

func newDepthwise[T simd.Float](s *conv.Shape) *depthwise[T] {
	n := s.OutW * s.OutC
	return &depthwise[T]{Shape: s, m: s.OutC / s.InC, in: make([]T, n), tmp: make([]T, n)}
}

// gather returns the input pixels of a run, each channel repeated for each of its outputs.
func (d *depthwise[T]) gather(x []T, r run) []T {
	from := (r.in*d.InW + r.at) * d.InC
	n := r.hi - r.lo
	if d.m == 1 && d.StrideW == 1 {
		return x[from : from+n*d.InC]
	}
	out := d.in[:n*d.OutC]
	for i := range n {
		px := x[from+i*d.StrideW*d.InC:][:d.InC]
		if d.m == 1 {
			copy(out[i*d.InC:], px)
			continue
		}
		for c, v := range px {
			for q := range d.m {
				out[i*d.OutC+c*d.m+q] = v
			}
		}
	}
	return out
}

// scatter adds the values of a run's outputs to its input pixels.
func (d *depthwise[T]) scatter(x, vals []T, r run) {
	from := (r.in*d.InW + r.at) * d.InC
	n := r.hi - r.lo
	if d.m == 1 && d.StrideW == 1 {
		px := x[from : from+n*d.InC]
		simd.Add(px, px, vals)
		return
	}
	for i := range n {
		px, row := x[from+i*d.StrideW*d.InC:][:d.InC], vals[i*d.OutC:(i+1)*d.OutC]
		if d.m == 1 {
			simd.Add(px, px, row)
			continue
		}
		for c := range px {
			for _, v := range row[c*d.m : (c+1)*d.m] {
				px[c] += v
			}
		}
	}
}

func (d *depthwise[T]) outputs(y []T, row int, r run) []T {
	return y[(row*d.OutW+r.lo)*d.OutC : (row*d.OutW+r.hi)*d.OutC]
}

func (d *depthwise[T]) filter(f []T, r run) []T { return f[r.tap*d.OutC:][:d.OutC] }

// rowsPerBlock returns how many rows of outputs make a block of a parallel loop.
func rowsPerBlock(s *conv.Shape) int {
	return max(1, sumGrain/max(1, s.OutW*s.OutC*s.FilterH*s.FilterW))
}

func depthwiseForward[T simd.Float](s *conv.Shape, y, x, f []T) {
	clear(y)
	parallel.For(s.Batch*s.OutH, rowsPerBlock(s), func(lo, hi int) {
		d := newDepthwise[T](s)
		eachRun(s, lo, hi, func(row int, r run) {
			out, in := d.outputs(y, row, r), d.gather(x, r)
			simd.MulRow(d.tmp[:len(out)], in, d.filter(f, r))
			simd.Add(out, out, d.tmp)
		})
	})
}

func depthwiseInputGrad[T simd.Float](s *conv.Shape, x, y, f []T) {
	clear(x)
	parallel.For(s.Batch, max(1, rowsPerBlock(s)/max(1, s.OutH)), func(lo, hi int) {
		d := newDepthwise[T](s)
		eachRun(s, lo*s.OutH, hi*s.OutH, func(row int, r run) {
			out := d.outputs(y, row, r)
			simd.MulRow(d.tmp[:len(out)], out, d.filter(f, r))
			d.scatter(x, d.tmp[:len(out)], r)
		})
	})
}

func depthwiseFilterGrad[T simd.Float](s *conv.Shape, f, x, y []T) {
	rows := s.Batch * s.OutH
	grain := max(rowsPerBlock(s), rows/16) // each block has a filter of its own
	parts := make([][]T, parallel.Blocks(rows, grain))
	parallel.For(rows, grain, func(lo, hi int) {
		d, part := newDepthwise[T](s), make([]T, len(f))
		parts[lo/grain] = part
		eachRun(s, lo, hi, func(row int, r run) {
			out := d.outputs(y, row, r)
			simd.Mul(d.tmp[:len(out)], d.gather(x, r), out)
			simd.SumColumns(d.filter(part, r), d.tmp[:len(out)])
		})
	})
	clear(f)
	for _, part := range parts {
		simd.Add(f, f, part)
	}
}
