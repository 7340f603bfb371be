package strided

import (
	"fmt"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/tensor"
)

// Copy copies the elements of src in view sv to those of dst in view dv. Both views have the same
// dimensions and both tensors the same element type. The elements written are distinct and do not
// overlap the elements read.
// If the tensors are in the memory of a device, the copy is queued there.
func Copy(dst *tensor.Tensor, dv View, src *tensor.Tensor, sv View) {
	if d := device.Of(dst); d != nil {
		copyOnDevice(d, dst, dv, src, sv)
		return
	}
	newPlan(dv, sv).copy(dst, src)
}

// Rows describes n contiguous rows of a tensor: the first is at Offset, and consecutive rows are
// Stride elements apart.
type Rows struct{ Offset, Stride int }

// CopyRows copies n rows of size elements. It is [Copy] for the most common views, without their
// setup cost.
func CopyRows(dst *tensor.Tensor, to Rows, src *tensor.Tensor, from Rows, n, size int) {
	if n == 1 || to.Stride == size && from.Stride == size {
		rows, row := splitRun(dim{n * size, 1, 1})
		n, size, to.Stride, from.Stride = rows.n, row.n, rows.d, rows.s
	}
	if d := device.Of(dst); d != nil {
		copyOnDevice(d, dst, View{Dims: []int{n, size}, Strides: []int{to.Stride, 1}, Offset: to.Offset},
			src, View{Dims: []int{n, size}, Strides: []int{from.Stride, 1}, Offset: from.Offset})
		return
	}
	p := plan{outer: 1, d: to.Offset, s: from.Offset, n0: n, d0: to.Stride, s0: from.Stride, n1: size, d1: 1, s1: 1}
	p.copy(dst, src)
}

func (p *plan) copy(dst, src *tensor.Tensor) {
	if p.n0 == 0 || p.n1 == 0 {
		return
	}
	switch dtype := dst.DType(); dtype {
	case tensor.String:
		run(p, tensor.Values[string](dst), tensor.Values[string](src))
	case tensor.Resource:
		run(p, tensor.Values[*tensor.Handle](dst), tensor.Values[*tensor.Handle](src))
	case tensor.Variant:
		run(p, tensor.Values[tensor.VariantValue](dst), tensor.Values[tensor.VariantValue](src))
	default:
		switch dtype.Size() {
		case 1:
			run(p, Words[uint8](dst), Words[uint8](src))
		case 2:
			run(p, Words[uint16](dst), Words[uint16](src))
		case 4:
			run(p, Words[uint32](dst), Words[uint32](src))
		case 8:
			run(p, Words[uint64](dst), Words[uint64](src))
		default:
			run(p, tensor.Values[complex128](dst), tensor.Values[complex128](src))
		}
	}
}

// Words returns the elements of a tensor of plain memory as unsigned integers of the same size.
func Words[W uint8 | uint16 | uint32 | uint64](t *tensor.Tensor) []W {
	as := *t
	if want := tensor.DTypeOf[W](); t.DType() != want {
		var err error
		if as, err = t.WithDType(want); err != nil {
			panic(fmt.Sprintf("strided: %v", err))
		}
	}
	return tensor.Values[W](&as)
}

// blockBytes is the work of one block of a parallel copy. A copy of less stays on one core.
const blockBytes = 64 << 10

func run[E any](p *plan, dst, src []E) {
	rows := max(1, blockBytes/(8*p.n1))
	// Avoid the allocations of the closures below.
	if p.outer*p.n0 <= rows {
		m := copier[E]{plan: *p, dst: dst, src: src}
		m.outerRange(0, p.outer, 0, p.n0)
		return
	}
	copyParallel(&copier[E]{plan: *p, dst: dst, src: src}, rows)
}

// copyParallel copies on several cores, the given number of rows per block.
func copyParallel[E any](m *copier[E], rows int) {
	p := &m.plan
	if p.outer >= p.n0 || p.outer > 8 {
		parallel.For(p.outer, max(1, rows/p.n0), func(lo, hi int) { m.outerRange(lo, hi, 0, p.n0) })
		return
	}
	grain := (max(rows/p.outer, 1) + tile - 1) / tile * tile
	parallel.For(p.n0, grain, func(lo, hi int) { m.outerRange(0, p.outer, lo, hi) })
}

type copier[E any] struct {
	plan
	dst, src []E
}

// outerRange copies rows lo to hi of the second-last dimension for the outer indices in [from, to).
func (m *copier[E]) outerRange(from, to, lo, hi int) {
	at := m.seek(from)
	for range to - from {
		m.block(at.d+lo*m.d0, at.s+lo*m.s0, hi-lo)
		at.next(&m.plan)
	}
}

// block copies n rows of n1 elements.
func (m *copier[E]) block(d, s, n int) {
	switch {
	case m.d1 == 1 && m.s1 == 1:
		m.rows(d, s, n)
	case m.d1 == 1 && m.s1 == 0:
		for range n {
			repeat(m.dst[d:d+m.n1], m.src[s])
			d, s = d+m.d0, s+m.s0
		}
	case m.d1 == 1 && m.s0 == 1 && n >= 4:
		m.transpose(d, s, n)
	case m.d1 == 1 && m.s1 == -1:
		for range n {
			reverse(m.dst[d:d+m.n1], m.src[s-m.n1+1:s+1])
			d, s = d+m.d0, s+m.s0
		}
	default:
		for range n {
			copyStepped(m.dst[d:], m.d1, m.src, s, m.s1, m.n1)
			d, s = d+m.d0, s+m.s0
		}
	}
}

// copyStepped copies n elements that are dStep apart in dst and sStep apart in src.
func copyStepped[E any](dst []E, dStep int, src []E, s, sStep, n int) {
	if dStep == 1 {
		for i := range dst[:n] {
			dst[i] = src[s]
			s += sStep
		}
		return
	}
	d := 0
	for range n {
		dst[d] = src[s]
		d, s = d+dStep, s+sStep
	}
}

// repeat sets all of row to v.
func repeat[E any](row []E, v E) {
	switch words := any(row).(type) {
	case []uint32:
		simd.Fill(words, any(v).(uint32))
		return
	case []uint64:
		simd.Fill(words, any(v).(uint64))
		return
	}
	const first, maxCopy = 16, 1024
	n := min(len(row), first)
	for i := range row[:n] {
		row[i] = v
	}
	for n < len(row) {
		bulk.SafePoint()
		n += copy(row[n:], row[:min(n, maxCopy)])
	}
}

func (m *copier[E]) rows(d, s, n int) {
	switch dst := any(m.dst).(type) {
	case []uint8:
		simd.CopyRows(dst, d, m.d0, any(m.src).([]uint8), s, m.s0, n, m.n1)
	case []uint16:
		simd.CopyRows(dst, d, m.d0, any(m.src).([]uint16), s, m.s0, n, m.n1)
	case []uint32:
		simd.CopyRows(dst, d, m.d0, any(m.src).([]uint32), s, m.s0, n, m.n1)
	case []uint64:
		simd.CopyRows(dst, d, m.d0, any(m.src).([]uint64), s, m.s0, n, m.n1)
	case []complex128:
		simd.CopyRows(dst, d, m.d0, any(m.src).([]complex128), s, m.s0, n, m.n1)
	default:
		for range n {
			bulk.SafePoint()
			copy(m.dst[d:d+m.n1], m.src[s:s+m.n1])
			d, s = d+m.d0, s+m.s0
		}
	}
}

// reverse copies src to dst in reverse order.
func reverse[E any](dst, src []E) {
	if words, ok := any(dst).([]uint32); ok {
		simd.Reverse(words, any(src).([]uint32))
		return
	}
	for i := range dst {
		dst[i] = src[len(src)-1-i]
	}
}

// tile is the side length of the square blocks of a transposition. The rows of a block, on both
// sides, fit in the L1 cache.
const tile = 16

// transpose copies n rows whose elements are s1 apart in the source, while the source is contiguous
// across rows.
func (m *copier[E]) transpose(d, s, n int) {
	if m.s1 > 0 && min(m.n1, n) < 8 {
		simd.TransposeThin(m.dst[d:], m.d0, m.src[s:], m.s1, m.n1, n)
		return
	}
	switch dst := any(m.dst).(type) {
	case []uint16:
		if m.s1 > 0 {
			simd.Transpose(dst[d:], m.d0, any(m.src).([]uint16)[s:], m.s1, m.n1, n)
			return
		}
	case []uint32:
		if m.s1 > 0 {
			simd.Transpose(dst[d:], m.d0, any(m.src).([]uint32)[s:], m.s1, m.n1, n)
			return
		}
	case []uint64:
		if m.s1 > 0 {
			simd.Transpose(dst[d:], m.d0, any(m.src).([]uint64)[s:], m.s1, m.n1, n)
			return
		}
	}
	for j := 0; j < m.n1; j += tile {
		nj := min(tile, m.n1-j)
		for i := 0; i < n; i += tile {
			ni := min(tile, n-i)
			for k := range ni {
				out := m.dst[d+(i+k)*m.d0+j:][:nj]
				at := s + i + k + j*m.s1
				for c := range out {
					out[c] = m.src[at]
					at += m.s1
				}
			}
		}
	}
}
