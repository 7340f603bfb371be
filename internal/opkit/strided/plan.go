package strided

import (
	"cmp"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// dim is one dimension of both views of a copy.
type dim struct{ n, d, s int }

// plan is a copy in its simplest form. Dimensions of size 1 are dropped, and adjacent dimensions
// that both views traverse with one stride are merged. The innermost dimension is contiguous in the
// destination. If the source is not contiguous there, the second-last dimension is contiguous in
// the source, if any is.
type plan struct {
	dims  []dim // all except the two innermost
	outer int   // product of dims

	n0, d0, s0, n1, d1, s1 int // the two innermost
	d, s                   int // offsets
}

func newPlan(dst, src View) *plan {
	p := &plan{d: dst.Offset, s: src.Offset}
	dims := membudget.MakeCap[dim](len(dst.Dims) + 2)
	for i, n := range dst.Dims {
		x := dim{n, dst.Strides[i], src.Strides[i]}
		if n == 0 {
			return &plan{}
		}
		if n == 1 {
			continue
		}
		if x.d < 0 { // traverse in reverse
			p.d, p.s = p.d+(n-1)*x.d, p.s+(n-1)*x.s
			x.d, x.s = -x.d, -x.s
		}
		dims = append(dims, x)
	}
	slices.SortStableFunc(dims, func(a, b dim) int { return cmp.Compare(b.d, a.d) })
	dims = merge(dims)
	if k := len(dims); k > 2 && dims[k-1].s != 1 {
		if at := slices.IndexFunc(dims, func(x dim) bool { return x.s == 1 }); at >= 0 {
			x := dims[at]
			dims = slices.Insert(slices.Delete(dims, at, at+1), k-2, x)
		}
	}
	if k := len(dims); k > 2 && dims[k-1].d == 1 && dims[k-1].s == 1 && dims[k-2].n < manyRows && dims[k-2].n < dims[k-3].n {
		// More rows per call.
		dims[k-3], dims[k-2] = dims[k-2], dims[k-3]
	}
	for len(dims) < 2 {
		dims = slices.Insert(dims, 0, dim{1, 0, 0})
	}
	in0, in1 := dims[len(dims)-2], dims[len(dims)-1]
	if len(dims) == 2 && in0.n == 1 && in1.n > 1 && in1.d == 1 && in1.s == 1 {
		in0, in1 = splitRun(in1)
	}
	p.n0, p.d0, p.s0, p.n1, p.d1, p.s1 = in0.n, in0.d, in0.s, in1.n, in1.d, in1.s
	p.dims, p.outer = dims[:len(dims)-2], 1
	for _, x := range p.dims {
		p.outer *= x.n
	}
	return p
}

// manyRows is the number of rows per call above which more rows do not make the copy faster.
const manyRows = 16

// splitRun splits one long contiguous run into equal rows, if possible, so that cores can share it.
func splitRun(x dim) (rows, row dim) {
	const long = 1 << 14
	for k := x.n / long; k > 1; k-- {
		if x.n%k == 0 {
			return dim{k, x.n / k, x.n / k}, dim{x.n / k, 1, 1}
		}
	}
	return dim{1, 0, 0}, x
}

func merge(dims []dim) []dim {
	out := dims[:0]
	for _, x := range dims {
		if k := len(out); k > 0 && out[k-1].d == x.d*x.n && out[k-1].s == x.s*x.n {
			out[k-1] = dim{out[k-1].n * x.n, x.d, x.s}
			continue
		}
		out = append(out, x)
	}
	return out
}

// cursor is a position in the outer dimensions.
type cursor struct {
	index []int
	d, s  int
}

// seek returns the position with the given linear index in the outer dimensions.
func (p *plan) seek(number int) cursor {
	c := cursor{index: membudget.Make[int](len(p.dims)), d: p.d, s: p.s}
	for i := len(p.dims) - 1; i >= 0; i-- {
		x := p.dims[i]
		c.index[i] = number % x.n
		number /= x.n
		c.d, c.s = c.d+c.index[i]*x.d, c.s+c.index[i]*x.s
	}
	return c
}

func (c *cursor) next(p *plan) {
	for i := len(p.dims) - 1; i >= 0; i-- {
		x := p.dims[i]
		c.index[i]++
		c.d, c.s = c.d+x.d, c.s+x.s
		if c.index[i] < x.n {
			return
		}
		c.index[i] = 0
		c.d, c.s = c.d-x.n*x.d, c.s-x.n*x.s
	}
}
