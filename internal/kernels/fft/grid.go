package fft

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// transform describes a transform: its number of dimensions and its direction.
type transform struct {
	rank    int
	inverse bool
}

// outSize returns the output size along dimension i of a transform from or to n real numbers.
func (t transform) outSize(i, n int) int {
	if !t.inverse && i == t.rank-1 && n != 0 {
		return n/2 + 1
	}
	return n
}

type number interface {
	float32 | float64 | complex64 | complex128
}

// grid is a stack of arrays to transform, in row-major order.
type grid struct {
	batch int
	dims  []int
	in    []int // input sizes; only the first dims[i] elements of dimension i are read
	half  bool  // the last input dimension only has the non-redundant components
	x     []complex128
}

func newGrid(in tensor.Shape, lengths []int, half bool) grid {
	g := grid{batch: 1, dims: lengths, half: half}
	for i, n := range in {
		if i < len(in)-len(lengths) {
			g.batch *= int(n)
		} else {
			g.in = append(g.in, int(n))
		}
	}
	size := g.batch
	for _, n := range lengths {
		size *= n
	}
	g.x = membudget.Make[complex128](size)
	return g
}

// load fills the grid with the first elements of each dimension of the input.
func load[T number](g grid, in []T) {
	last := len(g.dims) - 1
	n, read := g.dims[last], g.dims[last]
	if g.half {
		read = n/2 + 1
	}
	for r := range len(g.x) / n {
		row, source, step := g.x[r*n:(r+1)*n], 0, g.in[last]
		rest := r
		for axis := last - 1; axis >= 0; axis-- {
			source += rest % g.dims[axis] * step
			rest /= g.dims[axis]
			step *= g.in[axis]
		}
		widen(row[:read], in[rest*step+source:][:read])
	}
}

// transform applies the transform along every dimension. If half is set, it restores the redundant
// components before the last one. When ctx ends, the result is unfinished.
func (g grid) transform(ctx context.Context, inverse bool) {
	stride := 1
	strides := membudget.Make[int](len(g.dims))
	for axis := len(g.dims) - 1; axis >= 0; axis-- {
		strides[axis] = stride
		stride *= g.dims[axis]
	}
	for axis, n := range g.dims {
		if axis == len(g.dims)-1 && g.half {
			g.mirror()
		}
		g.along(ctx, n, strides[axis], inverse)
	}
}

// mirror restores the redundant components of real results: component n-k is the conjugate of
// component k.
func (g grid) mirror() {
	n := g.dims[len(g.dims)-1]
	for row := range slices.Chunk(g.x, n) {
		row[0] = complex(real(row[0]), 0)
		for k := 1; k < (n+1)/2; k++ {
			row[n-k] = complex(real(row[k]), -imag(row[k]))
		}
		if n%2 == 0 {
			row[n/2] = complex(real(row[n/2]), 0)
		}
	}
}

// along transforms all lines of n elements with the given stride, until ctx ends.
func (g grid) along(ctx context.Context, n, stride int, inverse bool) {
	if n == 1 {
		return
	}
	parallel.For(len(g.x)/n, max(1, elementwise.Grain(20)/n), func(lo, hi int) {
		plan := newPlan(n)
		line := membudget.Make[complex128](n)
		for i := lo; i < hi && ctx.Err() == nil; i++ {
			at := i/stride*stride*n + i%stride
			for k := range line {
				line[k] = g.x[at+k*stride]
			}
			if inverse {
				plan.backward(line)
				for k := range line {
					g.x[at+k*stride] = line[k] / complex(float64(n), 0)
				}
				continue
			}
			plan.forward(line)
			for k := range line {
				g.x[at+k*stride] = line[k]
			}
		}
	})
}

// store writes the first n elements of every row.
func store[T number](out []T, g grid, n int) {
	width := g.dims[len(g.dims)-1]
	for r := range len(g.x) / width {
		narrow(out[r*n:(r+1)*n], g.x[r*width:])
	}
}

func widen[T number](dst []complex128, src []T) {
	switch src := any(src).(type) {
	case []float32:
		for i, v := range src {
			dst[i] = complex(float64(v), 0)
		}
	case []float64:
		for i, v := range src {
			dst[i] = complex(v, 0)
		}
	case []complex64:
		for i, v := range src {
			dst[i] = complex128(v)
		}
	case []complex128:
		copy(dst, src)
	}
}

// narrow rounds the first elements of src. For real results it drops the imaginary part, which
// consists of rounding errors.
func narrow[T number](dst []T, src []complex128) {
	switch dst := any(dst).(type) {
	case []float32:
		for i := range dst {
			dst[i] = float32(real(src[i]))
		}
	case []float64:
		for i := range dst {
			dst[i] = real(src[i])
		}
	case []complex64:
		for i := range dst {
			dst[i] = complex64(src[i])
		}
	case []complex128:
		copy(dst, src)
	}
}
