package elementwise

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Loops describes an elementwise operation with two inputs.
type Loops[T, R tensor.Elem] struct {
	// Each sets z[i] to the result for x[i] and y[i]. z may be x or y.
	Each func(z []R, x, y []T)
	// Left and Right are Each with a single x, or a single y, for all elements. They are optional.
	Left  func(z []R, x T, y []T)
	Right func(z []R, x []T, y T)
	// Check validates all elements of the second input before the computation. It is optional.
	Check func(y []T) error
	// Cost is the time per element in nanoseconds.
	Cost float64
}

// Kernel returns the kernel of the operation.
func (l Loops[T, R]) Kernel() kernel.New { return kernel.Stateless(l.Compute) }

// Compute runs the operation on inputs 0 and 1.
func (l Loops[T, R]) Compute(ctx *kernel.Context) error {
	a, b := ctx.Input(0), ctx.Input(1)
	x, y := tensor.Values[T](a), tensor.Values[T](b)
	if a.Shape().Equal(b.Shape()) {
		return l.same(ctx, x, y)
	}
	aShape, bShape := a.Shape(), b.Shape()
	shape, err := Broadcast(aShape, bShape)
	if err != nil {
		return err
	}
	out, err := ctx.ForwardAny(0, shape, 0, 1)
	if err != nil {
		return err
	}
	z := tensor.Values[R](out)
	if len(z) == 0 {
		return nil
	}
	if err := l.check(y); err != nil {
		return err
	}
	l.broadcast(z, x, y, newLayout(shape, aShape, bShape))
	return nil
}

func (l Loops[T, R]) check(y []T) error {
	if l.Check == nil || len(y) == 0 {
		return nil
	}
	return l.Check(y)
}

func (l Loops[T, R]) same(ctx *kernel.Context, x, y []T) error {
	if err := l.check(y); err != nil {
		return err
	}
	from := 0
	if !ctx.Input(0).Exclusive() {
		from = 1
	}
	out, err := ctx.Forward(from, 0)
	if err != nil {
		return err
	}
	z := tensor.Values[R](out)
	if grain := Grain(l.Cost); len(z) > grain {
		parallel.For(len(z), evenGrain(len(z), grain), func(lo, hi int) { l.Each(z[lo:hi], x[lo:hi], y[lo:hi]) })
		return nil
	}
	l.Each(z, x, y)
	return nil
}

// shortRow is the length below which the rows of a broadcast are too short for one call each. The
// operands are then copied to full blocks.
const shortRow = 24

// blockLen is the length of the blocks that operands are copied to.
const blockLen = 1024

func (l Loops[T, R]) broadcast(z []R, x, y []T, lay *layout) {
	switch {
	case len(x) == 1:
		parallel.For(len(z), Grain(l.Cost), func(lo, hi int) { l.left(z[lo:hi], x[0], y[lo:hi]) })
	case len(y) == 1:
		parallel.For(len(z), Grain(l.Cost), func(lo, hi int) { l.right(z[lo:hi], x[lo:hi], y[0]) })
	case lay.repeats():
		n := lay.inner()
		parallel.For(len(z)/n, max(1, Grain(l.Cost)/n), func(lo, hi int) { l.tiled(z, x, y, lay, lo, hi) })
	case lay.inner() >= shortRow:
		n := lay.inner()
		parallel.For(len(z)/n, max(1, Grain(l.Cost)/n), func(lo, hi int) { l.rows(z, x, y, lay, lo, hi) })
	default:
		grain := (Grain(l.Cost+1) + blockLen - 1) / blockLen * blockLen
		parallel.For(len(z), grain, func(lo, hi int) { l.blocks(z, x, y, lay, lo, hi) })
	}
}

// rows computes rows lo to hi of the result, each with one call.
func (l Loops[T, R]) rows(z []R, x, y []T, lay *layout, lo, hi int) {
	n, last := lay.inner(), len(lay.dims)-1
	p := lay.seek(lo)
	for row := lo; row < hi; row++ {
		out := z[row*n : (row+1)*n]
		switch {
		case lay.x[last] == 0:
			l.left(out, x[p.x], y[p.y:p.y+n])
		case lay.y[last] == 0:
			l.right(out, x[p.x:p.x+n], y[p.y])
		default:
			l.Each(out, x[p.x:p.x+n], y[p.y:p.y+n])
		}
		lay.next(&p)
	}
}

// tiled computes rows lo to hi of the result if one operand repeats a row. It fills a block with
// copies of that row and combines the block with rows of the other operand.
func (l Loops[T, R]) tiled(z []R, x, y []T, lay *layout, lo, hi int) {
	n, same := lay.inner(), lay.dims[len(lay.dims)-2]
	tile := membudget.Make[T](min(hi-lo, same, blockLen/n) * n)
	for lo < hi {
		p, rows := lay.seek(lo), min(hi-lo, same-lo%same)
		xs, ys, left := x[p.x:], y[p.y:], lay.x[len(lay.dims)-2] == 0
		row := ys[:n]
		if left {
			row = xs[:n]
		}
		copies := tile[:min(rows*n, len(tile))]
		for done := copy(copies, row); done < len(copies); done *= 2 {
			copy(copies[done:], copies[:done])
		}
		for rows > 0 {
			m := min(rows*n, len(copies))
			if left {
				l.Each(z[lo*n:lo*n+m], copies[:m], ys[:m])
				ys = ys[m:]
			} else {
				l.Each(z[lo*n:lo*n+m], xs[:m], copies[:m])
				xs = xs[m:]
			}
			lo, rows = lo+m/n, rows-m/n
		}
	}
}

// blocks computes elements lo to hi of the result in blocks. It copies both operands to scratch
// memory for each block.
func (l Loops[T, R]) blocks(z []R, x, y []T, lay *layout, lo, hi int) {
	scratch := membudget.Make[T](2 * blockLen)
	xs, ys := scratch[:blockLen], scratch[blockLen:]
	for ; lo < hi; lo += blockLen {
		n := min(blockLen, hi-lo)
		lay.expand(lo, n, func(at, run, xo, yo int) {
			expand(xs[at:at+run], x[xo:], lay.x[len(lay.dims)-1])
			expand(ys[at:at+run], y[yo:], lay.y[len(lay.dims)-1])
		})
		l.Each(z[lo:lo+n], xs[:n], ys[:n])
	}
}

func expand[T any](dst, src []T, stride int) {
	if stride == 0 {
		v := src[0]
		for i := range dst {
			dst[i] = v
		}
		return
	}
	for i, v := range src[:len(dst)] {
		dst[i] = v
	}
}

// expand calls run for each piece of a row within the n elements from lo. The arguments are the
// start of the piece in the block, its length and the offsets of the operands.
func (l *layout) expand(lo, n int, run func(at, n, x, y int)) {
	inner, last := l.inner(), len(l.dims)-1
	p, col := l.seek(lo/inner), lo%inner
	for at := 0; at < n; {
		k := min(inner-col, n-at)
		run(at, k, p.x+col*l.x[last], p.y+col*l.y[last])
		at, col = at+k, 0
		l.next(&p)
	}
}

func (l Loops[T, R]) left(z []R, x T, y []T) {
	if l.Left != nil {
		l.Left(z, x, y)
		return
	}
	xs := membudget.Make[T](min(len(z), blockLen))
	for i := range xs {
		xs[i] = x
	}
	for lo := 0; lo < len(z); lo += blockLen {
		n := min(blockLen, len(z)-lo)
		l.Each(z[lo:lo+n], xs[:n], y[lo:lo+n])
	}
}

func (l Loops[T, R]) right(z []R, x []T, y T) {
	if l.Right != nil {
		l.Right(z, x, y)
		return
	}
	ys := membudget.Make[T](min(len(z), blockLen))
	for i := range ys {
		ys[i] = y
	}
	for lo := 0; lo < len(z); lo += blockLen {
		n := min(blockLen, len(z)-lo)
		l.Each(z[lo:lo+n], x[lo:lo+n], ys[:n])
	}
}
