package elementwise

import (
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Broadcast returns the shape of an elementwise operation on tensors of shapes a and b. It follows
// NumPy's rules and returns InvalidArgument for incompatible shapes.
func Broadcast(a, b tensor.Shape) (tensor.Shape, error) {
	rank := max(len(a), len(b))
	out := make(tensor.Shape, rank)
	for i := 1; i <= rank; i++ {
		x, y := int64(1), int64(1)
		if i <= len(a) {
			x = a[len(a)-i]
		}
		if i <= len(b) {
			y = b[len(b)-i]
		}
		switch {
		case x == y || y == 1:
			out[rank-i] = x
		case x == 1:
			out[rank-i] = y
		default:
			return nil, status.InvalidArgumentf("Incompatible shapes: %v vs. %v", a, b)
		}
	}
	return out, out.Check()
}

// layout is a broadcast of two operands. Adjacent dimensions are merged if both operands traverse
// them with one stride.
type layout struct {
	dims   []int
	x, y   []int // strides of the operands; 0 where an operand repeats
	length int
}

func newLayout(shape, x, y tensor.Shape) *layout {
	l := &layout{length: int(shape.NumElements())}
	xs, ys := strides(shape, x), strides(shape, y)
	for i, d := range shape {
		n := int(d)
		if n == 1 {
			continue
		}
		k := len(l.dims) - 1
		if k >= 0 && l.x[k] == xs[i]*n && l.y[k] == ys[i]*n {
			l.dims[k] *= n
			l.x[k], l.y[k] = xs[i], ys[i]
			continue
		}
		l.dims, l.x, l.y = append(l.dims, n), append(l.x, xs[i]), append(l.y, ys[i])
	}
	if len(l.dims) == 0 {
		l.dims, l.x, l.y = []int{1}, []int{0}, []int{0}
	}
	return l
}

// strides returns the strides of an operand in the dimensions of the result; 0 where it repeats.
func strides(shape, operand tensor.Shape) []int {
	out := membudget.Make[int](len(shape))
	step, lead := 1, len(shape)-len(operand)
	for i, o := range slices.Backward(operand) {
		if o == shape[lead+i] && o != 1 {
			out[lead+i] = step
		}
		step *= int(o)
	}
	return out
}

// inner returns the length of the innermost dimension.
func (l *layout) inner() int { return l.dims[len(l.dims)-1] }

// repeats reports whether one operand is a short row that is combined with several consecutive rows
// of the other.
func (l *layout) repeats() bool {
	k := len(l.dims) - 1
	if k < 1 || l.x[k] != 1 || l.y[k] != 1 || l.dims[k] > blockLen/4 {
		return false
	}
	n := l.dims[k]
	return l.x[k-1] == 0 && l.y[k-1] == n || l.y[k-1] == 0 && l.x[k-1] == n
}

// position is a position in the result: the index in each dimension except the innermost, and the
// offsets of the operands there.
type position struct {
	index []int
	x, y  int
}

// seek returns the position of the given row of the result.
func (l *layout) seek(row int) position {
	p := position{index: membudget.Make[int](len(l.dims) - 1)}
	for i := len(p.index) - 1; i >= 0; i-- {
		p.index[i] = row % l.dims[i]
		row /= l.dims[i]
		p.x, p.y = p.x+p.index[i]*l.x[i], p.y+p.index[i]*l.y[i]
	}
	return p
}

func (l *layout) next(p *position) {
	for i := len(p.index) - 1; i >= 0; i-- {
		p.index[i]++
		p.x, p.y = p.x+l.x[i], p.y+l.y[i]
		if p.index[i] < l.dims[i] {
			return
		}
		p.index[i] = 0
		p.x, p.y = p.x-l.dims[i]*l.x[i], p.y-l.dims[i]*l.y[i]
	}
}

// Offsets returns the offset of the operand's element that is broadcast to each element of a result
// of the given shape, in row-major order.
func Offsets(shape, operand tensor.Shape) []int {
	out := membudget.Make[int](shape.NumElements())
	if len(out) == 0 {
		return out
	}
	l := newLayout(shape, operand, operand)
	p, n, last := l.seek(0), l.inner(), len(l.dims)-1
	for i := 0; i < len(out); i += n {
		for j := range n {
			out[i+j] = p.x + j*l.x[last]
		}
		l.next(&p)
	}
	return out
}
