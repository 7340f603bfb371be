package random

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Outputs random values from the Poisson distributions with the given rates. Uses Knuth's algorithm for small rates, and Hörmann's transformed rejection otherwise."
	types := "{float16, float32, float64, int32, int64}"
	for _, op := range []struct {
		name      string
		in, attrs []string
		stateful  bool
		origin    newOrigin
		shape     opdef.ShapeFn
	}{
		{"RandomPoisson", []string{"shape: S", "rate: dtype"}, with(seedAttrs, "S: {int32, int64}", "dtype: {float16, float32, float64}"),
			true, seeded, appendedShape},
		{"RandomPoissonV2", []string{"shape: S", "rate: R"},
			with(seedAttrs, "S: {int32, int64}", "R: "+types+" = float64", "dtype: "+types+" = int64"), true, seeded, appendedShape},
		{"StatelessRandomPoisson", []string{"shape: T", "seed: Tseed", "lam: Rtype"},
			[]string{"Rtype: " + types, "dtype: " + types, "T: {int32, int64}", "Tseed: {int32, int64} = int64"}, false, bySeed, bySeedShape},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: doc, In: op.in, Out: []string{"output: dtype"}, Attrs: op.attrs, Stateful: op.stateful, Shape: op.shape,
			},
			Kernels: kernel.ByType("dtype", kernel.Table{
				tensor.Float16: newPoisson(op.origin, asHalf), tensor.Float32: newPoisson(op.origin, asFloat32),
				tensor.Float64: newPoisson(op.origin, asFloat64), tensor.Int32: newPoisson(op.origin, asInt32),
				tensor.Int64: newPoisson(op.origin, asInt64),
			}),
		})
	}
}

func newPoisson[T tensor.Elem](o newOrigin, as result[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		from := o(c)
		return kernel.Func(func(ctx *kernel.Context) error {
			rate := ctx.Input(from.args)
			out, perParam, err := from.allocateFor(ctx, rate.Shape())
			if err != nil || out.NumElements() == 0 {
				return err
			}
			g, err := from.begin(ctx, out.NumElements())
			if err != nil {
				return err
			}
			rates, z := numbers(rate), tensor.Values[T](out)
			return eachSample(ctx.Context(), len(rates), perParam, func(param, out, sample int) {
				if r := rates[param]; math.IsInf(r, 1) {
					z[out] = as.infinity
				} else {
					z[out] = as.of(poisson(at(g, sample, perSample), r, as.largest))
				}
			})
		}), nil
	}
}

// maxTries bounds the draws of a number that its type can represent.
const maxTries = 10_000

// poisson draws a number of at most largest from the Poisson distribution with the given mean.
func poisson(g *philox.Generator, rate, largest float64) float64 {
	switch {
	case rate != rate:
		return rate
	case rate < 10:
		return smallPoisson(g, rate, largest)
	}
	var uniforms pair
	logRate := math.Log(rate)
	b := 0.931 + 2.53*math.Sqrt(rate)
	a := -0.059 + 0.02483*b
	inverseAlpha := 1.1239 + 1.1328/(b-3.4)
	for try := 0; ; {
		u := uniforms.uniform(g) - 0.5
		v := uniforms.uniform(g)
		shifted := 0.5 - math.Abs(u)
		k := math.Floor((2*a/shifted+b)*u + rate + 0.43)
		switch {
		case k > largest:
			if try++; try > maxTries {
				return largest
			}
			continue
		case shifted >= 0.07 && v <= 0.9277-3.6224/(b-2):
			return k
		case k < 0 || shifted < 0.013 && v > shifted:
			continue
		}
		lgamma, _ := math.Lgamma(k + 1)
		if math.Log(v*inverseAlpha/(a/(shifted*shifted)+b)) <= -rate+k*logRate-lgamma {
			return k
		}
	}
}

// smallPoisson multiplies uniform numbers until their product is small enough.
func smallPoisson(g *philox.Generator, rate, largest float64) float64 {
	var uniforms pair
	limit, product, x := math.Exp(-rate), 1.0, 0.0
	for {
		product *= uniforms.uniform(g)
		if product <= limit && x <= largest {
			return x
		}
		x++
	}
}
