// Package clustering implements the operations of k-means clustering: the choice of initial centers
// by k-means++ and by a Markov chain, and the nearest-center search.
package clustering

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// points is a matrix with a point in each row.
type points struct {
	coords    []float32
	n, dims   int
	halfNorms []float32 // half of the squared norms; a distance then costs one inner product
}

// inputPoints returns the points in input i.
func inputPoints(ctx *kernel.Context, i int, name string) (*points, error) {
	t := ctx.Input(i)
	if t.Rank() != 2 {
		return nil, status.InvalidArgumentf("Input %s should be a matrix.", name)
	}
	p := &points{coords: tensor.Values[float32](t), n: t.Dim(0), dims: t.Dim(1)}
	p.halfNorms = membudget.Make[float32](p.n)
	for r := range p.halfNorms {
		x := p.at(r)
		p.halfNorms[r] = dot(x, x) / 2
	}
	return p, nil
}

// at returns the coordinates of a point.
func (p *points) at(i int) []float32 { return p.coords[i*p.dims : (i+1)*p.dims] }

func dot(x, y []float32) (sum float32) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// scalar returns the number in input i.
func scalar(ctx *kernel.Context, i int, name string) (int64, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return 0, status.InvalidArgumentf("Input %s should be a scalar.", name)
	}
	return tensor.Value[int64](t), nil
}
