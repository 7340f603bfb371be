// Package clustering holds the operations that k-means clustering is made of: the choice of first
// centers among points, by k-means++ and by a Markov chain, and the search for the centers that are
// nearest to points.
package clustering

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// points is a matrix that has a point in each row.
type points struct {
	coords    []float32
	n, dims   int
	halfNorms []float32 // half of the squared norms: with them distances cost an inner product
}

// inputPoints returns the points that are input i.
func inputPoints(ctx *kernel.Context, i int, name string) (*points, error) {
	t := ctx.Input(i)
	if t.Rank() != 2 {
		return nil, status.InvalidArgumentf("Input %s should be a matrix.", name)
	}
	p := &points{coords: tensor.Values[float32](t), n: t.Dim(0), dims: t.Dim(1)}
	p.halfNorms = make([]float32, p.n)
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

// scalar returns the number that is input i.
func scalar(ctx *kernel.Context, i int, name string) (int64, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return 0, status.InvalidArgumentf("Input %s should be a scalar.", name)
	}
	return tensor.Value[int64](t), nil
}
