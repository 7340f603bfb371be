package random

import (
	"context"
	"math"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Outputs random values from normal distributions with the given means and standard deviations, truncated to [minvals, maxvals]."
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "ParameterizedTruncatedNormal", Doc: doc,
			In: []string{"shape: T", "means: dtype", "stdevs: dtype", "minvals: dtype", "maxvals: dtype"}, Out: []string{"output: dtype"},
			Attrs: with(seedAttrs, "dtype: "+floatTypes, "T: {int32, int64}"), Stateful: true, Shape: cutNormalShape,
		},
		Kernels: kernel.ByType("dtype", kernel.Table{
			tensor.Float16: newCutNormal(halfSteps), tensor.Float32: newCutNormal(float32Steps), tensor.Float64: newCutNormal(float64Steps),
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "StatelessParameterizedTruncatedNormal", Doc: doc + originDoc[false],
			In:  []string{"shape: S", "seed: Tseed", "means: dtype", "stddevs: dtype", "minvals: dtype", "maxvals: dtype"},
			Out: []string{"output: dtype"}, Attrs: []string{"S: {int32, int64}", "Tseed: {int32, int64} = int64", "dtype: {float16, float32, float64}"},
			Shape: statelessCutNormalShape,
		},
		Kernels: kernel.ByType("dtype", kernel.Table{
			tensor.Float16: newStatelessCutNormal(halfSteps), tensor.Float32: newStatelessCutNormal(float32Steps),
			tensor.Float64: newStatelessCutNormal(float64Steps),
		}),
	})
}

func cutNormalShape(c *opdef.ShapeContext) error {
	for _, in := range c.In[1:] {
		if _, err := opdef.WithRankAtMost(in, 1); err != nil {
			return err
		}
	}
	return shapeOfInput(0)(c)
}

func statelessCutNormalShape(c *opdef.ShapeContext) error {
	if err := seedShape(c, 1); err != nil {
		return err
	}
	params := c.In[2]
	for i, in := range c.In[3:] {
		var err error
		if i == 0 {
			params, err = opdef.BroadcastShapes(params, in)
		} else {
			params, err = opdef.BroadcastShapes(in, params)
		}
		if err != nil {
			return err
		}
	}
	return shapeOfInput(0)(c)
}

// steps holds the operations of a type, computed in float64. Each of them rounds its result.
type steps[T tensor.Elem] struct {
	round           func(float64) float64
	log             func(float64) float64 // of a number in [0, 1)
	uniform, normal *philox.Distribution[T]
	as              result[T]
	toFloat         func(T) float64
}

var (
	halfSteps = &steps[tensor.Float16Elem]{
		rounding(tensor.Float16), func(v float64) float64 { return rounding(tensor.Float16)(float64(philox.Log32(float32(v)))) },
		philox.UniformHalf, philox.NormalHalf, asHalf, func(v tensor.Float16Elem) float64 { return float64(v.Float32()) },
	}
	float32Steps = &steps[float32]{
		rounding(tensor.Float32), func(v float64) float64 { return float64(philox.Log32(float32(v))) },
		philox.Uniform32, philox.NormalFloat32, asFloat32, func(v float32) float64 { return float64(v) },
	}
	float64Steps = &steps[float64]{
		rounding(tensor.Float64), math.Log,
		philox.Uniform64, philox.NormalFloat64, asFloat64, func(v float64) float64 { return v },
	}
)

// batchOfCutNormal is the number of samples that ParameterizedTruncatedNormal draws together if all
// have one distribution.
const batchOfCutNormal = 100

func newCutNormal[T tensor.Elem](st *steps[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		source := sourceOf(c.Attrs)
		return kernel.Func(func(ctx *kernel.Context) error {
			out, err := allocateCutNormal(ctx)
			if err != nil {
				return err
			}
			batches, samples := out.Dim(0), 1
			if batches > 0 {
				samples = out.NumElements() / batches
			}
			if oneDistribution(ctx) {
				batches, samples = (out.NumElements()+batchOfCutNormal-1)/batchOfCutNormal, batchOfCutNormal
			} else if err := checkParams(ctx, batches); err != nil {
				return err
			}
			// TensorFlow computes with 32 bits here.
			reserved := int32(batches) * 2 * maxRejected * int32(samples+3) / 4
			g, z := source.Take(uint64(reserved)), tensor.Values[T](out)
			var params [4][]float64
			for i := range params {
				params[i] = numbers(ctx.Input(1 + i))
			}
			// samples have any first dimension, and a check of all parameters is enough
			if len(z) == 0 {
				batches = min(batches, max(len(params[0]), len(params[1]), len(params[2]), len(params[3])))
			}
			for b := range batches {
				var p [4]float64
				for i, vals := range params {
					p[i] = vals[b%len(vals)]
				}
				lo := b * samples
				if err := st.cutNormal(ctx.Context(), &g, p, z, lo, 1, min(samples, len(z)-lo)); err != nil {
					return err
				}
			}
			return nil
		}), nil
	}
}

// allocateCutNormal creates the output of ParameterizedTruncatedNormal.
func allocateCutNormal(ctx *kernel.Context) (*tensor.Tensor, error) {
	in := ctx.Input(0)
	if in.Rank() != 1 {
		return nil, status.InvalidArgumentf("Input shape should be a vector, got shape: %v", in.Shape())
	}
	if in.NumElements() == 0 {
		return nil, status.InvalidArgumentf("Shape tensor must not be empty, got %v", in)
	}
	shape, err := intarg.Shape(intarg.Values(in))
	if err != nil {
		return nil, err
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return nil, err
	}
	for i, name := range paramNames {
		if s := ctx.Input(1 + i).Shape(); len(s) > 1 {
			return nil, status.InvalidArgumentf("Input %s should be a scalar or vector, got shape: %v", name, s)
		}
	}
	return out, nil
}

var paramNames = [...]string{"means", "stddevs", "minvals", "maxvals"}

// oneDistribution reports whether TensorFlow considers all samples to have one distribution.
func oneDistribution(ctx *kernel.Context) bool {
	one := func(i int) bool { return ctx.Input(i).NumElements() == 1 }
	return one(1) && one(2) && ctx.Input(3).Rank() == 0 && ctx.Input(4).Rank() == 0
}

func checkParams(ctx *kernel.Context, batches int) error {
	for i, name := range paramNames {
		if in := ctx.Input(1 + i); in.NumElements() != 1 && in.NumElements() != batches {
			return status.InvalidArgumentf("Input %s should have length 1 or shape[0], got shape: %v", name, in.Shape())
		}
	}
	return nil
}

func newStatelessCutNormal[T tensor.Elem](st *steps[T]) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		if err := checkSeed(ctx.Input(1)); err != nil {
			return err
		}
		params, err := broadcastParams(ctx)
		if err != nil {
			return err
		}
		shape, err := sampledShape(ctx, 0, params)
		if err != nil {
			return err
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		g, err := fromSeed(ctx.Input(1))
		if err != nil {
			return err
		}
		var vals [4][]float64
		for i := range vals {
			if vals[i], err = broadcastNumbers(ctx.Input(2+i), params); err != nil {
				return err
			}
		}
		z, batches := tensor.Values[T](out), len(vals[0])
		for b := range batches {
			p := [4]float64{vals[0][b], vals[1][b], vals[2][b], vals[3][b]}
			if err := st.cutNormal(ctx.Context(), &g, p, z, b, batches, len(z)/batches); err != nil {
				return err
			}
		}
		return nil
	})
}

// broadcastParams returns the broadcast shape of inputs 2 to 5.
func broadcastParams(ctx *kernel.Context) (tensor.Shape, error) {
	shape := ctx.Input(2).Shape()
	for i := 3; i < 6; i++ {
		var err error
		if shape, err = elementwise.Broadcast(shape, ctx.Input(i).Shape()); err != nil {
			return nil, status.InvalidArgumentf("means, stddevs, minvals, maxvals must have compatible batch dimensions: %v vs. %v vs. %v vs. %v",
				ctx.Input(2).Shape(), ctx.Input(3).Shape(), ctx.Input(4).Shape(), ctx.Input(5).Shape())
		}
	}
	return shape, nil
}

// proposal draws candidates for rejection sampling.
type proposal struct {
	name string
	// draw returns n candidates and whether each is accepted.
	draw        func(g *philox.Generator) (vals [4]float64, accepted [4]bool, n int)
	maxRejected int // consecutive rejections
}

// maxRejected bounds the number of consecutive rejections.
const maxRejected = 1000

// cutNormal sets n elements of z, from position lo on with distance step, to samples of the
// distribution. params are its mean, standard deviation, minimum and maximum.
// Many draws may be rejected, so it looks at ctx.
func (st *steps[T]) cutNormal(ctx context.Context, g *philox.Generator, params [4]float64, z []T, lo, step, n int) error {
	finite := func(v float64) bool { return !math.IsInf(v, 0) && v == v }
	mean, deviation, lower, upper := params[0], params[1], params[2], params[3]
	if !(deviation > 0 && lower < upper && (finite(lower) || finite(upper))) {
		return status.InvalidArgumentf("Invalid parameters")
	}
	if math.IsInf(lower, -1) || upper < mean {
		lower, upper, deviation = upper, lower, -deviation
	}
	r := st.round
	p := st.proposal(r(r(lower-mean)/deviation), r(r(upper-mean)/deviation))
	for i, rejected, draws := 0, 0, 0; i < n; {
		const checkEvery = 1 << 10
		if draws++; draws%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		vals, accepted, count := p.draw(g)
		for k := 0; k < count && i < n; k++ {
			if !accepted[k] {
				if rejected++; rejected > p.maxRejected {
					return status.Internalf("TruncatedNormal %s", p.name)
				}
				continue
			}
			z[lo+i*step] = st.as.of(r(r(vals[k]*deviation) + mean))
			i, rejected = i+1, 0
		}
	}
	return nil
}

// proposal selects the algorithm for the standard normal distribution truncated to [lower, upper]
// (Robert, "Simulation of truncated normal variables", 1995).
func (st *steps[T]) proposal(lower, upper float64) proposal {
	// standard deviations that the interval must extend to one side for plain rejection to be
	// efficient
	const inside = 1.3
	r := st.round
	root := r(math.Sqrt(r(r(lower*lower) + 4)))
	longest := r(r(2*r(math.Exp(r(0.5+r(r(lower*r(lower-root))/4))))) / r(lower+root))
	switch {
	case lower < -r(inside) && upper >= 0, upper > r(inside) && lower <= 0:
		return proposal{"randn rejection sampler failed to accept a sample.", st.proposeNormal(lower, upper), maxRejected}
	case r(upper-lower) < longest:
		return proposal{"uniform rejection sampler failed to  accept a sample.", st.proposeUniform(lower, r(upper-lower)), maxRejected - 1}
	}
	return proposal{
		"exponential distribution rejection sampler failed to accept a sample.",
		st.proposeExponential(lower, upper, r(r(lower+root)/2)), maxRejected - 1,
	}
}

// group returns the samples of the generator's next output.
func (st *steps[T]) group(g *philox.Generator, d *philox.Distribution[T]) (vals [4]float64) {
	var out [4]T
	d.Fill(*g, out[:d.Group])
	g.Skip(d.Stride)
	for i, v := range out[:d.Group] {
		vals[i] = st.toFloat(v)
	}
	return vals
}

type drawFunc = func(g *philox.Generator) ([4]float64, [4]bool, int)

func (st *steps[T]) proposeNormal(lower, upper float64) drawFunc {
	return func(g *philox.Generator) (vals [4]float64, accepted [4]bool, n int) {
		vals = st.group(g, st.normal)
		for i, v := range vals {
			accepted[i] = lower <= v && v <= upper
		}
		return vals, accepted, st.normal.Group
	}
}

func (st *steps[T]) proposeUniform(lower, length float64) drawFunc {
	r := st.round
	square := 0.0 // of the number closest to the mean
	if lower >= 0 {
		square = r(lower * lower)
	}
	return func(g *philox.Generator) (vals [4]float64, accepted [4]bool, n int) {
		vals = st.group(g, st.uniform)
		for i, u := range st.group(g, st.uniform) {
			v := r(r(vals[i]*length) + lower)
			vals[i], accepted[i] = v, u <= r(math.Exp(r(r(square-r(v*v))/2)))
		}
		return vals, accepted, st.uniform.Group
	}
}

func (st *steps[T]) proposeExponential(lower, upper, alpha float64) drawFunc {
	r := st.round
	return func(g *philox.Generator) (vals [4]float64, accepted [4]bool, n int) {
		drawn := st.group(g, st.uniform)
		for n = 0; n < st.uniform.Group/2; n++ {
			v := r(r(-st.log(drawn[2*n])/alpha) + lower)
			x := r(lower - alpha)
			if lower < alpha {
				x = r(alpha - v)
			}
			vals[n], accepted[n] = v, drawn[2*n+1] <= r(math.Exp(r(r(-x*x)/2))) && v < upper
		}
		return vals, accepted, n
	}
}
