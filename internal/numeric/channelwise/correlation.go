package channelwise

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// phase describes the movement of a window along one dimension for outputs that are step apart.
type phase struct {
	Span
	size     int // size of the output, over all phases
	at, step int // position of the phase's first output, and distance between its outputs
	// filter element of the window's first element, and distance to that of the next one
	tap, tapStep int
}

func (s Span) forward() phase { return phase{Span: s, size: s.Out, step: 1, tapStep: 1} }

// backward returns the phases of the gradient with respect to the input. Window element k of output
// o meets input position o*Stride - Before + k*Dilation. Inputs that are Stride apart therefore
// meet the same window elements, and move by one output from one to the next. The filter is flipped
// so that windows move forward.
func (s Span) backward() []phase {
	var phases []phase
	shared := gcd(s.Stride, s.Dilation)
	for at := range min(s.Stride, s.In) {
		p := phase{size: s.In, at: at, step: s.Stride, tapStep: -s.Stride / shared}
		p.In, p.Stride, p.Dilation = s.Out, 1, s.Dilation/shared
		p.Out = (s.In - at + s.Stride - 1) / s.Stride
		first := 0 // first element that this phase meets
		for first < s.Window && (at+s.Before-first*s.Dilation)%s.Stride != 0 {
			first++
		}
		if first < s.Window {
			p.Window = (s.Window-1-first)/-p.tapStep + 1
			p.tap = first - (p.Window-1)*p.tapStep
			p.Before = (p.Window-1)*p.Dilation - (at+s.Before-first*s.Dilation)/s.Stride
		}
		phases = append(phases, p)
	}
	return phases
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// correlation relates the windows of x, the elements of a filter f, and the outputs y.
type correlation struct {
	rows, cols phase
	channels   int
	filterCols int
}

func (s *Depthwise) correlation(rows, cols phase) correlation {
	return correlation{rows, cols, s.Channels, s.Cols.Window}
}

func (c *correlation) rowsPerBlock() int {
	return max(1, parallelWork/max(1, c.cols.Out*c.rows.Window*c.cols.Window*c.channels))
}

// overwrite sets the outputs y of a batch to the sums over the windows of x times f.
func overwrite[T simd.Float](c *correlation, batch int, y, x, f []T) {
	parallel.For(batch*c.rows.Out, c.rowsPerBlock(), func(lo, hi int) { overwriteRows(c, y, x, f, lo, hi) })
}

// overwriteRows is overwrite for rows lo to hi of the batch's outputs.
func overwriteRows[T simd.Float](c *correlation, y, x, f []T, lo, hi int) {
	if c.channels == 0 {
		return
	}
	k := tapKernels[T]()
	p := pass[T]{correlation: c, x: x, f: f, y: y, kernel: k.correlate, slid: k.slidCorrelate, clear: true}
	p.run(lo, hi)
}

// accumulateRows adds to f, for the outputs y in rows lo to hi of the batch, the sums of y times
// their windows of x.
func accumulateRows[T simd.Float](c *correlation, f, x, y []T, lo, hi int) {
	if c.channels == 0 {
		return
	}
	k := tapKernels[T]()
	p := pass[T]{correlation: c, x: x, f: f, y: y, kernel: k.products, slid: k.slidProducts}
	p.run(lo, hi)
}

// tapArgs describes a call of a kernel for lines of outputs whose windows have the same size.
// Distances are in bytes. The kernel modifies the counts. The assembly depends on the layout.
type tapArgs struct {
	x, f, y       unsafe.Pointer
	pixels, lines int
	stepX, stepY  int // from one output of a line to the next
	skipX, skipY  int // from the end of a line to the start of the next
	rowX, colX    int // between window elements in x
	rowF, colF    int // between the corresponding filter elements
	height, width int // of the window
	channels      int
	left          int // scratch of the kernel
}

// pass is a pass over rows of outputs.
type pass[T simd.Float] struct {
	*correlation
	x, f, y []T
	kernel  func(args *byte)
	slid    map[int]func(args *byte) // kernels for windows at distance 1, by width
	clear   bool                     // clear outputs without a window
	args    tapArgs
}

// run processes rows lo to hi of the outputs of the whole batch.
func (p *pass[T]) run(lo, hi int) {
	for n := p.rows.Out; lo < hi; {
		image, row := lo/n, lo%n
		last := min(n, row+hi-lo)
		rectangles(&p.rows.Span, &p.cols.Span, row, last, func(row, col, high, wide int) { p.rectangle(image, row, col, high, wide) })
		lo += last - row
	}
}

// rectangle runs the kernel for a rectangle of outputs of an image.
func (p *pass[T]) rectangle(image, row, col, high, wide int) {
	rows, cols := &p.rows, &p.cols
	top, bottom, atRow := rows.Clip(row)
	left, right, atCol := cols.Clip(col)
	x := direction{((image*rows.In+atRow)*cols.In + atCol) * p.channels, cols.Stride * p.channels, rows.Stride * cols.In * p.channels}
	y := direction{
		((image*rows.size+rows.at+rows.step*row)*cols.size + cols.at + cols.step*col) * p.channels,
		cols.step * p.channels, rows.step * cols.size * p.channels,
	}
	if bottom <= top || right <= left {
		for i := range high * wide {
			if p.clear {
				clear(p.y[y.at+i%wide*y.step+i/wide*y.line:][:p.channels])
			}
		}
		return
	}
	a, pixel := &p.args, p.channels*size[T]()
	a.rowX, a.colX = rows.Dilation*cols.In*pixel, cols.Dilation*pixel
	a.rowF, a.colF = rows.tapStep*p.filterCols*pixel, cols.tapStep*pixel
	a.height, a.width, a.channels = bottom-top, right-left, p.channels
	a.f = unsafe.Pointer(&p.f[((rows.tap+rows.tapStep*top)*p.filterCols+cols.tap+cols.tapStep*left)*p.channels])
	const few = 4 // the kernels take four outputs at a time
	if wide < few && high > wide {
		wide, high = high, wide
		x.step, x.line, y.step, y.line = x.line, x.step, y.line, y.step
	}
	p.calls(x, y, high, wide)
}

// direction describes the order of elements in x or y: the first one, and the distances between
// pixels and between lines.
type direction struct{ at, step, line int }

// calls runs the kernel for high lines of wide pixels, as many per call as callWork permits.
func (p *pass[T]) calls(x, y direction, high, wide int) {
	a, size := &p.args, size[T]()
	most := max(1, callWork/(a.height*a.width*p.channels))
	pixels := min(wide, most)
	lines := min(high, max(1, most/wide))
	a.stepX, a.stepY = x.step*size, y.step*size
	kernel := p.kernel
	if slid := p.slid[a.width]; slid != nil && a.colX == a.stepX {
		kernel = slid
	}
	for line := 0; line < high; line += lines {
		for done := 0; done < wide; done += pixels {
			a.pixels, a.lines = min(pixels, wide-done), min(lines, high-line)
			a.skipX, a.skipY = (x.line-a.pixels*x.step)*size, (y.line-a.pixels*y.step)*size
			a.x = unsafe.Pointer(&p.x[x.at+line*x.line+done*x.step])
			a.y = unsafe.Pointer(&p.y[y.at+line*y.line+done*y.step])
			kernel((*byte)(unsafe.Pointer(a)))
		}
	}
}
