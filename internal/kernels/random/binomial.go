package random

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Outputs random values from the binomial distributions with parameters counts and probs. Uses inversion if few successes are expected, and Hörmann's BTRS algorithm otherwise."
	types := "{float16, float32, float64, int32, int64}"
	attrs := []string{"T: " + types + " = float64", "dtype: " + types + " = int64"}
	for _, op := range []struct {
		drawn
		origin newOrigin
	}{
		{drawn{"StatelessRandomBinomial", []string{"shape: S", "seed: Tseed", "counts: T", "probs: T"},
			append([]string{"S: {int32, int64}", "Tseed: {int32, int64} = int64"}, attrs...), nil, false, bySeedShape}, bySeed},
		{drawn{"StatefulRandomBinomial", []string{"resource: resource", "algorithm: int64", "shape: S", "counts: T", "probs: T"},
			append([]string{"S: {int32, int64}"}, attrs...), nil, true, shapeOfInput(2)}, byPhiloxVariable},
	} {
		floats := []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64}
		impl := func(dtype tensor.DType, n kernel.New) kernel.Impl {
			return kernel.Impl{Types: []kernel.Constraint{kernel.OfType("T", floats...), kernel.OfType("dtype", dtype)}, New: n}
		}
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: doc, In: op.in, Out: []string{"output: dtype"}, Attrs: op.attrs, Stateful: op.stateful, Shape: op.shape,
			},
			Kernels: []kernel.Impl{
				impl(tensor.Float16, newBinomial(op.origin, asHalf)), impl(tensor.Float32, newBinomial(op.origin, asFloat32)),
				impl(tensor.Float64, newBinomial(op.origin, asFloat64)), impl(tensor.Int32, newBinomial(op.origin, asInt32)),
				impl(tensor.Int64, newBinomial(op.origin, asInt64)),
			},
		})
	}
}

func newBinomial[T tensor.Elem](o newOrigin, as result[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		from := o(c)
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := from.check(ctx); err != nil {
				return err
			}
			counts, probs := ctx.Input(from.args), ctx.Input(from.args+1)
			params, err := elementwise.Broadcast(counts.Shape(), probs.Shape())
			if err != nil {
				return status.InvalidArgumentf("counts and probs must have compatible batch dimensions: %v vs. %v", counts.Shape(), probs.Shape())
			}
			shape, err := sampledShape(ctx, from.shape, params)
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, shape)
			if err != nil || out.NumElements() == 0 {
				return err
			}
			perParam := out.NumElements() / int(params.NumElements())
			g, err := from.begin(ctx, reservedForBinomial(&from, int(params.NumElements()), perParam))
			if err != nil {
				return err
			}
			n, err := broadcastNumbers(counts, params)
			if err != nil {
				return err
			}
			p, err := broadcastNumbers(probs, params)
			if err != nil {
				return err
			}
			z, round := tensor.Values[T](out), rounding(counts.DType())
			return eachSample(ctx.Context(), len(n), perParam, func(param, out, sample int) {
				z[out] = as.of(binomial(g, sample, n[param], p[param], round))
			})
		}), nil
	}
}

// reservedForBinomial returns the number of samples by which a generator variable advances.
func reservedForBinomial(o *origin, params, perParam int) int {
	if o.shape == 0 {
		return params * perParam
	}
	return params * 2 * 100 * (perParam + 3) / 4
}

// broadcastNumbers returns the elements of t, broadcast to a shape.
func broadcastNumbers(t *tensor.Tensor, shape tensor.Shape) ([]float64, error) {
	if t.Shape().Equal(shape) {
		return numbers(t), nil
	}
	wide, err := tensor.Alloc(t.DType(), shape)
	if err != nil {
		return nil, err
	}
	defer wide.Release()
	to := strided.Of(shape)
	strided.Copy(&wide, to, t, strided.Of(t.Shape()).Broadcast(to.Dims))
	return numbers(&wide), nil
}

// rounding returns the function that rounds a result to the precision of a type.
func rounding(dtype tensor.DType) func(float64) float64 {
	switch dtype {
	case tensor.Float16:
		return func(v float64) float64 { return float64(tensor.Float16Of(float32(v)).Float32()) }
	case tensor.Float32:
		return func(v float64) float64 { return float64(float32(v)) }
	default:
		return func(v float64) float64 { return v }
	}
}

// binomial draws the number of successes in n trials with probability p. Products that select the
// algorithm are rounded by round.
func binomial(g philox.Generator, sample int, n, p float64, round func(float64) float64) float64 {
	switch {
	case n <= 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	case p <= 0.5:
		return fewSuccesses(g, sample, n, p, round)
	case p > 0.5:
		return n - fewSuccesses(g, sample, n, round(1-p), round)
	}
	return math.NaN()
}

// fewSuccesses is binomial for p <= 1/2.
func fewSuccesses(g philox.Generator, sample int, n, p float64, round func(float64) float64) float64 {
	if round(n*p) >= 10 {
		return binomialRejection(at(g, sample, perSample), n, p)
	}
	return binomialInversion(at(g, sample, 42), n, p)
}

// binomialInversion draws by inversion: it sums the number of trials up to each success.
func binomialInversion(g *philox.Generator, n, p float64) float64 {
	var uniforms pair
	trials, successes := 0.0, 0.0
	for {
		trials += math.Ceil(math.Log(uniforms.uniform(g)) / math.Log1p(-p))
		if !(trials <= n) {
			return successes
		}
		successes++
	}
}

// binomialRejection draws by the algorithm BTRS (Hörmann, "The generation of binomial random
// variates", 1993).
func binomialRejection(g *philox.Generator, n, p float64) float64 {
	var uniforms pair
	deviation := math.Sqrt(n * p * (1 - p))
	b := 1.15 + 2.53*deviation
	a := -0.0873 + 0.0248*b + 0.01*p
	c := n*p + 0.5
	limit := 0.92 - 4.2/b
	r := p / (1 - p)
	alpha := (2.83 + 5.1/b) * deviation
	m := math.Floor((n + 1) * p)
	for {
		u := uniforms.uniform(g)
		v := uniforms.uniform(g)
		u -= 0.5
		us := 0.5 - math.Abs(u)
		k := math.Floor((2*a/us+b)*u + c)
		if us >= 0.07 && v <= limit {
			return k
		}
		if k < 0 || k > n {
			continue
		}
		bound := (m+0.5)*math.Log((m+1)/(r*(n-m+1))) + (n+1)*math.Log((n-m+1)/(n-k+1)) + (k+0.5)*math.Log(r*(n-k+1)/(k+1)) +
			stirlingTail(m) + stirlingTail(n-m) - stirlingTail(k) - stirlingTail(n-k)
		if math.Log(v*alpha/(a/(us*us)+b)) <= bound {
			return k
		}
	}
}

// stirlingTails holds the differences between ln k! and Stirling's approximation, for k up to 9.
var stirlingTails = [...]float64{
	0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
	0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
}

func stirlingTail(k float64) float64 {
	if k <= 9 {
		return stirlingTails[int(k)]
	}
	square := (k + 1) * (k + 1)
	return (1.0/12 - (1.0/360-1.0/1260/square)/square) / (k + 1)
}
