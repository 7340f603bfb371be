package random

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A sample of the gamma, Poisson or binomial distribution consumes a varying number of outputs, so
// each sample has its own position in the stream. A parameter tensor describes the distributions.
// The output has samples of all of them, and its first dimensions are the samples of one
// distribution.

// sampleCost is the time per sample, in nanoseconds.
const sampleCost = 150

// eachSample calls draw for every sample: perParam samples of each of params distributions. param
// is the index of the distribution, out the position of the sample in the output, and sample the
// index that determines its position in the stream. A sample that its type cannot represent is
// drawn thousands of times, so eachSample returns an error when ctx ends.
func eachSample(ctx context.Context, params, perParam int, draw func(param, out, sample int)) error {
	return parallel.Each(ctx, params*perParam, 50_000/sampleCost, func(i int) error {
		param := i / perParam
		draw(param, param+i%perParam*params, i)
		return nil
	})
}

// at returns a generator at the position of a sample in the stream.
func at(g philox.Generator, sample int, stride uint64) *philox.Generator {
	g.Skip(uint64(sample) * stride)
	return &g
}

// pair reads numbers in pairs and returns the second one first, as TensorFlow's loops do.
type pair struct {
	vals [2]float64
	left int
}

// uniform returns the next uniform number.
func (p *pair) uniform(g *philox.Generator) float64 {
	if p.left == 0 {
		x := g.Next()
		p.vals = [2]float64{philox.Unit64(x[0], x[1]), philox.Unit64(x[2], x[3])}
		p.left = 2
	}
	p.left--
	return p.vals[p.left]
}

// normal returns the next normal number.
func (p *pair) normal(g *philox.Generator) float64 {
	if p.left == 0 {
		x := g.Next()
		p.vals[0], p.vals[1] = philox.Normal64(x[0], x[1], x[2], x[3])
		p.left = 2
	}
	p.left--
	return p.vals[p.left]
}

// appendedShape is the shape function of operations whose output shape is the value of input 0
// followed by the shape of input 1.
func appendedShape(c *opdef.ShapeContext) error {
	s, err := shapefn.Input(c, 0)
	c.SetAll(shapefn.Concat(s, c.In[1]))
	return err
}

// allocateFor creates output 0 for parameters of the given shape. A seeded operation appends that
// shape to its shape input. For other operations, the shape input must end with it.
func (o *origin) allocateFor(ctx *kernel.Context, params tensor.Shape) (out *tensor.Tensor, perParam int, err error) {
	shape, err := o.outputShape(ctx)
	if err != nil {
		return nil, 0, err
	}
	if o.args == 1 {
		shape = slices.Concat(shape, params)
	}
	if !slices.Contains(shape, 0) {
		if err := checkEnd(shape, params); err != nil {
			return nil, 0, err
		}
	}
	if out, err = ctx.Allocate(0, shape); err != nil || out.NumElements() == 0 {
		return out, 0, err
	}
	return out, out.NumElements() / int(params.NumElements()), nil
}

// checkEnd checks that a shape ends with the shape of the parameters.
func checkEnd(shape, params tensor.Shape) error {
	if len(shape) < len(params) || !shape[len(shape)-len(params):].Equal(params) {
		return status.InvalidArgumentf("Shape passed in must end with broadcasted shape.")
	}
	return nil
}

// sampledShape returns the value of shape input i, which must end with the shape of the parameters.
func sampledShape(ctx *kernel.Context, i int, params tensor.Shape) (tensor.Shape, error) {
	if in := ctx.Input(i); in.Rank() != 1 {
		return nil, status.InvalidArgumentf("Input shape should be a vector, got shape: %v", in.Shape())
	}
	shape, err := shapeInput(ctx, i)
	if err != nil {
		return nil, err
	}
	return shape, checkEnd(shape, params)
}

// numbers returns the elements of a numeric tensor as float64.
func numbers(t *tensor.Tensor) []float64 {
	out := membudget.Make[float64](t.NumElements())
	switch t.DType() {
	case tensor.Float16:
		convert(out, tensor.Values[tensor.Float16Elem](t), func(v tensor.Float16Elem) float64 { return float64(v.Float32()) })
	case tensor.BFloat16:
		convert(out, tensor.Values[tensor.BFloat16Elem](t), func(v tensor.BFloat16Elem) float64 { return float64(v.Float32()) })
	case tensor.Float32:
		convert(out, tensor.Values[float32](t), func(v float32) float64 { return float64(v) })
	case tensor.Float64:
		copy(out, tensor.Values[float64](t))
	default:
		convert(out, intarg.Values(t), func(v int64) float64 { return float64(v) })
	}
	return out
}

func convert[T, R any](dst []R, src []T, f func(T) R) {
	for i, v := range src {
		dst[i] = f(v)
	}
}
