package gemm

import "github.com/weft-ml/weft/internal/numeric/microkernel"

// rowsAtOnce is the number of rows of B that are copied, panel by panel, before the next ones. Long
// rows are on separate pages, and few rows at a time keep the reads sequential.
const (
	rowsAtOnce = 8
	longRow    = 1024
)

// inPlace reports whether the panel of B from column j on is read in place. The micro-kernels read
// whole vectors, so a panel that ends within a vector is copied.
func (w *worker[T]) inPlace(j int) bool { return w.direct && w.n1-j >= w.kern.Width() }

// panelAt returns the position of the panel from column j on in the scratch memory.
func (w *worker[T]) panelAt(j int) int {
	if w.direct {
		return 0 // only the last panel is copied
	}
	return (j - w.n0) * (w.k1 - w.k0)
}

// packPanels copies the panels of B for columns [n0, n1) and depth [k0, k1).
func (w *worker[T]) packPanels() {
	depth, width := w.k1-w.k0, w.kern.Width()
	first := w.n0
	if w.direct {
		first += (w.n1 - w.n0) / width * width
		if first == w.n1 {
			return
		}
	}
	vecs, _ := w.kern.VecsFor(w.n1 - first)
	total := depth * vecs * w.kern.Lanes
	microkernel.Resize(&w.BufB, total)
	if w.b.ColStride != 1 {
		for j := first; j < w.n1; j += width {
			w.packTransposed(j)
		}
	} else {
		w.packRows(first)
	}
	if w.o.Alpha != 1 {
		for i := range w.BufB[:total] {
			w.BufB[i] *= w.o.Alpha
		}
	}
}

// packRows copies the panels from column first on if rows of B are contiguous.
func (w *worker[T]) packRows(first int) {
	depth, width := w.k1-w.k0, w.kern.Width()
	full := first + (w.n1-first)/width*width
	step := depth
	if w.b.RowStride >= longRow {
		step = rowsAtOnce
	}
	for k := 0; k < depth; k += step {
		rows := min(step, depth-k)
		for j := first; j < full; j += width {
			w.kern.PackRows(w.BufB[w.panelAt(j)+k*width:], w.b.Data[w.b.at(w.k0+k, j):], width, w.b.RowStride, rows, width)
		}
	}
	if full < w.n1 {
		vecs, _ := w.kern.VecsFor(w.n1 - full)
		w.kern.PackRows(w.BufB[w.panelAt(full):], w.b.Data[w.b.at(w.k0, full):], vecs*w.kern.Lanes, w.b.RowStride, depth, w.n1-full)
	}
}

// packTransposed copies the panel from column j on if columns of B are contiguous.
func (w *worker[T]) packTransposed(j int) {
	cols, lanes := min(w.kern.Width(), w.n1-j), w.kern.Lanes
	vecs, _ := w.kern.VecsFor(cols)
	dst := w.BufB[w.panelAt(j):]
	for v := 0; v < cols; v += lanes {
		w.kern.PackColumns(dst[v:], w.b.Data[w.b.at(w.k0, j+v):], vecs*lanes, w.b.ColStride, min(lanes, cols-v), w.k1-w.k0)
	}
}

// tileStride returns the distance between the columns of a packed tile of A. With half a vector,
// each column overwrites the excess elements of the previous one.
func (w *worker[T]) tileStride() int {
	if half := w.kern.Lanes / 2; w.kern.Rows <= half {
		return half
	}
	return ceilDiv(w.kern.Rows, w.kern.Lanes) * w.kern.Lanes
}

// packTiles copies the rows of A that belong to the tiles [t0, t1), column by column of each tile.
func (w *worker[T]) packTiles(t0, t1 int) {
	depth, stride, lanes := w.k1-w.k0, w.tileStride(), w.kern.Lanes
	microkernel.Resize(&w.BufA, (t1-t0)*stride*depth+lanes)
	for t := t0; t < t1; t++ {
		i, end := w.tileRow(t), w.tileRow(t+1)
		dst := w.BufA[(t-t0)*stride*depth:]
		if w.a.RowStride == 1 {
			w.kern.PackRows(dst, w.a.Data[w.a.at(i, w.k0):], stride, w.a.ColStride, depth, end-i)
			continue
		}
		for v := 0; i+v < end; v += lanes {
			w.kern.PackColumns(dst[v:], w.a.Data[w.a.at(i+v, w.k0):], stride, w.a.RowStride, min(lanes, end-i-v), depth)
		}
	}
}
