package random

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Outputs random values from the gamma distributions with shape parameters alpha and scale 1 (Marsaglia and Tsang, 2000)."
	for _, op := range []struct {
		name      string
		in, attrs []string
		dtype     string
		stateful  bool
		origin    newOrigin
		shape     opdef.ShapeFn
	}{
		{"RandomGamma", []string{"shape: S", "alpha: T"}, with(seedAttrs, "S: {int32, int64}", "T: {float16, float32, float64}"),
			"T", true, seeded, appendedShape},
		{"StatelessRandomGammaV2", []string{"shape: T", "seed: Tseed", "alpha: dtype"},
			[]string{"dtype: {float16, float32, float64}", "T: {int32, int64}", "Tseed: {int32, int64} = int64"},
			"dtype", false, bySeed, bySeedShape},
		{"StatelessRandomGammaV3", []string{"shape: shape_dtype", "key: uint64", "counter: uint64", "alg: int32", "alpha: dtype"},
			[]string{"dtype: {float16, float32, float64}", "shape_dtype: {int32, int64} = int32"}, "dtype", false, byKey, byKeyShape},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: doc, In: op.in, Out: []string{"output: " + op.dtype}, Attrs: op.attrs, Stateful: op.stateful, Shape: op.shape,
			},
			Kernels: kernel.ByType(op.dtype, kernel.Table{
				tensor.Float16: newGamma(op.origin, asHalf), tensor.BFloat16: newGamma(op.origin, asBFloat),
				tensor.Float32: newGamma(op.origin, asFloat32), tensor.Float64: newGamma(op.origin, asFloat64),
			}),
		})
	}
}

func newGamma[T tensor.Elem](o newOrigin, as result[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		from := o(c)
		return kernel.Func(func(ctx *kernel.Context) error {
			alpha := ctx.Input(from.args)
			if in := ctx.Input(0); from.args == 1 && in.Rank() != 1 {
				return status.InvalidArgumentf("shape must be a vector of {int32,int64}, got shape: %v", in)
			}
			out, perParam, err := from.allocateFor(ctx, alpha.Shape())
			if err != nil || out.NumElements() == 0 {
				return err
			}
			g, err := from.begin(ctx, out.NumElements())
			if err != nil {
				return err
			}
			alphas, z := numbers(alpha), tensor.Values[T](out)
			return eachSample(ctx.Context(), len(alphas), perParam, func(param, out, sample int) {
				z[out] = as.of(gamma(at(g, sample, perSample), alphas[param]))
			})
		}), nil
	}
}

// gamma draws from the gamma distribution of the given shape and scale 1.
func gamma(g *philox.Generator, alpha float64) float64 {
	var uniforms, normals pair
	if alpha == 1 {
		return -math.Log1p(-uniforms.uniform(g))
	}
	d := alpha - 1.0/3
	if alpha < 1 {
		d = alpha + 2.0/3 // for alpha+1, corrected by a power of a uniform number
	}
	if !(d > 0) {
		return math.NaN()
	}
	c := 1.0 / 3 / math.Sqrt(d)
	for {
		x := normals.normal(g)
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := uniforms.uniform(g)
		if u < 1-0.0331*(x*x)*(x*x) || math.Log(u) < 0.5*x*x+d*(1-v+math.Log(v)) {
			if alpha < 1 {
				return d * v * math.Pow(uniforms.uniform(g), 1/alpha)
			}
			return d * v
		}
	}
}
