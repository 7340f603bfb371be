package gemm

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
)

// BFloat16 computes C = A*B like Half. It uses the processor's bfloat16 instructions if there are
// any. These accumulate the dot products of pairs of elements in float32.
func BFloat16[H ~uint16](c, a, b Matrix[H], widen func(dst []float32, src []H), narrow func(dst []H, src []float32)) {
	kern := microkernel.Pairs()
	if kern == nil || c.Rows*c.Cols*a.Cols <= tiny || c.ColStride != 1 {
		Half(c, a, b, widen, narrow)
		return
	}
	check(c, a, b, nil)
	s := microkernel.ScratchOf[float32]()
	defer s.Release()
	x, y := pairs(&s.BufA, a.T()).T(), pairs(&s.BufB, b)
	z := Dense(microkernel.Resize(&s.BufC, c.Rows*c.Cols), c.Rows, c.Cols)
	mulBlocks(kern, z, x, y, Options[float32]{Alpha: 1})
	for i := range c.Rows {
		narrow(c.Data[i*c.RowStride:][:c.Cols], z.Data[i*c.Cols:][:c.Cols])
	}
}

// pairs returns the matrix whose row i holds the elements of rows 2*i and 2*i+1 of m in pairs, with
// zeros after the last row. It is a view of m if the columns of m are contiguous, and otherwise a
// copy in buf.
func pairs[H ~uint16](buf *[]float32, m Matrix[H]) Matrix[float32] {
	rows, data := (m.Rows+1)/2, unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(m.Data))), len(m.Data))
	if m.RowStride == 1 && m.ColStride != 1 {
		if m.Rows%2 == 0 && m.ColStride%2 == 0 && uintptr(unsafe.Pointer(&data[0]))%4 == 0 {
			words := unsafe.Slice((*float32)(unsafe.Pointer(&data[0])), len(data)/2)
			return Matrix[float32]{words, rows, m.Cols, 1, m.ColStride / 2}
		}
		p := Matrix[float32]{microkernel.Resize(buf, rows*m.Cols), rows, m.Cols, 1, rows}
		words := unsafe.Slice((*[2]uint16)(unsafe.Pointer(unsafe.SliceData(p.Data))), len(p.Data))
		for j := range m.Cols {
			clear(words[j*rows+rows-1:][:1])
			copy(unsafe.Slice(&words[j*rows][0], m.Rows), data[j*m.ColStride:][:m.Rows])
		}
		return p
	}
	p := Dense(microkernel.Resize(buf, rows*m.Cols), rows, m.Cols)
	for i := range rows {
		var second []uint16
		if 2*i+1 < m.Rows {
			second = data[(2*i+1)*m.RowStride:]
		}
		microkernel.PairRows(p.Data[i*m.Cols:][:m.Cols], data[2*i*m.RowStride:], second)
	}
	return p
}
