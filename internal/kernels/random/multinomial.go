package random

import (
	"math"
	"sort"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Draws classes from categorical distributions. The logits are unnormalized log probabilities of the classes, one row per distribution."
	floats := []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Multinomial", Doc: doc,
			In: []string{"logits: T", "num_samples: int32"}, Out: []string{"output: output_dtype"},
			Attrs: with(seedAttrs, "T: realnumbertype", "output_dtype: {int32, int64} = int64"), Stateful: true, Shape: multinomialShape,
		},
		Kernels: kernel.ForTypes("T", newMultinomial(seeded), floats...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "StatelessMultinomial", Doc: doc + originDoc[false],
			In: []string{"logits: T", "num_samples: int32", "seed: Tseed"}, Out: []string{"output: output_dtype"},
			Attrs: []string{"T: realnumbertype", "Tseed: {int32, int64} = int64", "output_dtype: {int32, int64} = int64"},
			Shape: func(c *opdef.ShapeContext) error {
				if err := seedShape(c, 2); err != nil {
					return err
				}
				return multinomialShape(c)
			},
		},
		Kernels: kernel.ForTypes("T", newMultinomial(bySeedLast), floats...),
	})
}

func multinomialShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 2, 0); err != nil {
		return err
	}
	n, err := shapefn.Dim(c, 1)
	c.SetAll(tensor.MakePartial(c.In[0].Dim(0), n))
	return err
}

// bySeedLast is like bySeed, for operations whose seed is input 2.
func bySeedLast(*kernel.Construction) origin {
	return origin{check: func(ctx *kernel.Context) error { return checkSeed(ctx.Input(2)) },
		begin: func(ctx *kernel.Context, _ int) (philox.Generator, error) { return fromSeed(ctx.Input(2)) }}
}

func newMultinomial(o newOrigin) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		from := o(c)
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := from.check(ctx); err != nil {
				return err
			}
			logits, samples := ctx.Input(0), ctx.Input(1)
			if logits.Rank() != 2 {
				return status.InvalidArgumentf("logits should be a matrix, got shape %v", logits.Shape())
			}
			if samples.Rank() != 0 {
				return status.InvalidArgumentf("num_samples should be a scalar, got shape %v", samples.Shape())
			}
			n := intarg.Scalar(samples)
			if n < 0 {
				return status.InvalidArgumentf("num_samples should be non-negative, got %d", n)
			}
			if logits.Dim(1) == 0 {
				return status.InvalidArgumentf("num_classes should be positive, got 0")
			}
			out, err := ctx.Allocate(0, tensor.Shape{logits.Shape()[0], n})
			if err != nil || out.NumElements() == 0 {
				return err
			}
			g, err := from.begin(ctx, logits.Dim(0)*int((n+3)/4*4*2))
			if err != nil {
				return err
			}
			intarg.Set(out, multinomial(philox.NewWords(g), numbers(logits), logits.Dim(1), int(n)))
			return nil
		}), nil
	}
}

// multinomial draws n classes for each row of logits, row by row.
func multinomial(words *philox.Words, logits []float64, classes, n int) []int64 {
	var out []int64
	cumulated := membudget.Make[float64](classes)
	for ; len(logits) > 0; logits = logits[classes:] {
		total := cumulate(cumulated, logits[:classes])
		for range n {
			limit := words.Unit64() * total
			out = membudget.Append(out, int64(sort.Search(classes, func(i int) bool { return cumulated[i] > limit })))
		}
	}
	return out
}

// cumulate sets sums to the cumulative probabilities of the classes, scaled by a constant, and
// returns their total. Classes with non-finite logits have probability 0.
func cumulate(sums, logits []float64) float64 {
	largest := math.Inf(-1)
	for _, v := range logits {
		if !math.IsInf(v, 0) && v > largest {
			largest = v
		}
	}
	total := 0.0
	for i, v := range logits {
		if !math.IsInf(v, 0) && v == v {
			total += math.Exp(v - largest)
		}
		sums[i] = total
	}
	return total
}
