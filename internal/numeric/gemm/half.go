package gemm

import "github.com/weft-ml/weft/internal/numeric/microkernel"

// Half computes C = A*B for a type H that is computed in float32. widen and narrow convert slices
// of equal length.
func Half[H any](c, a, b Matrix[H], widen func(dst []float32, src []H), narrow func(dst []H, src []float32)) {
	check(c, a, b, nil)
	s := microkernel.ScratchOf[float32]()
	defer s.Release()
	wide := func(buf *[]float32, m Matrix[H]) Matrix[float32] {
		w := Matrix[float32]{microkernel.Resize(buf, len(m.Data)), m.Rows, m.Cols, m.RowStride, m.ColStride}
		widen(w.Data, m.Data)
		return w
	}
	product := Dense(microkernel.Resize(&s.BufC, c.Rows*c.Cols), c.Rows, c.Cols)
	Mul(product, wide(&s.BufA, a), wide(&s.BufB, b), Options[float32]{})
	for i := range c.Rows {
		row := product.Data[i*c.Cols:][:c.Cols]
		if c.ColStride == 1 {
			narrow(c.Data[i*c.RowStride:][:c.Cols], row)
			continue
		}
		for j := range row {
			narrow(c.Data[c.at(i, j):][:1], row[j:j+1])
		}
	}
}
