package nn

import "github.com/weft-ml/weft/op"

// Flatten makes vectors of the elements of a batch: [batch, …] becomes [batch, n].
type Flatten struct{}

// Apply implements [Layer].
func (l *Flatten) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "flatten")
	n := 1
	for i := 1; i < c.rank(x); i++ {
		n *= int(c.size(x, i, -1))
	}
	return c.done(x, reshape(c.Scope, x, -1, n), false)
}

// Reshape gives the elements of a batch another shape: [batch, …] becomes [batch, Shape…]. One size
// may be -1.
type Reshape struct{ Shape []int }

// Apply implements [Layer].
func (l *Reshape) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "reshape")
	total, known, free := 1, 1, -1
	for i := 1; i < c.rank(x); i++ {
		total *= int(c.size(x, i, -1))
	}
	dims := append([]int{-1}, l.Shape...)
	for i, d := range l.Shape {
		if d < 0 {
			free = i + 1
		} else {
			known *= d
		}
	}
	if free > 0 && known > 0 {
		dims[free] = total / known
		known *= dims[free]
	}
	if known != total {
		c.fail("%d elements do not have shape %v", total, l.Shape)
		return op.Output{}
	}
	return c.done(x, reshape(c.Scope, x, dims...), false)
}

// rank returns the rank of x; a build error and 0 if it is not known.
func (c *Context) rank(x op.Output) int {
	if x.Node == nil {
		return 0
	}
	n := c.Scope.ShapeOf(x).Rank()
	if n < 0 {
		c.fail("the rank of the input is not known")
		return 0
	}
	return n
}

// ZeroPadding pads the dimensions between the first and the last with zeros: Before[i] in front of
// dimension i+1, After[i] behind it.
type ZeroPadding struct{ Before, After []int }

// Apply implements [Layer].
func (l *ZeroPadding) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "zero_padding")
	n := c.rank(x) - 2
	if n != len(l.Before) || n != len(l.After) {
		c.fail("the input has %d dimensions between batch and channels, and the padding is of %d and %d", n, len(l.Before), len(l.After))
		return op.Output{}
	}
	pads := make([][]int32, n+2)
	for i := range pads {
		pads[i] = []int32{0, 0}
		if i > 0 && i <= n {
			pads[i] = []int32{int32(l.Before[i-1]), int32(l.After[i-1])}
		}
	}
	return c.done(x, op.Pad(c.Scope, x, op.Const(c.Scope, pads)), false)
}

// UpSampling2D repeats rows and columns of images [batch, height, width, channels]; Size is 2 if 0.
type UpSampling2D struct{ Size int }

// Apply implements [Layer].
func (l *UpSampling2D) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "up_sampling2d")
	n, h, w, ch := max(l.Size, 0), c.size(x, 1, 4), c.size(x, 2, 4), c.size(x, 3, 4)
	if n == 0 {
		n = 2
	}
	y := op.Tile(c.Scope, reshape(c.Scope, x, -1, int(h), 1, int(w), 1, int(ch)), ints(c.Scope, 1, 1, n, 1, n, 1))
	return c.done(x, reshape(c.Scope, y, -1, int(h)*n, int(w)*n, int(ch)), false)
}
