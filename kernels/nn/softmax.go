package nn

import (
	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, op := range []struct {
		name, doc, out string
		row32          func(z, x []float32)
		row64          func(z, x []float64)
	}{
		{"Softmax", "Computes exp(logits) divided by its sum, over the last dimension.", "softmax", simd.Softmax[float32], simd.Softmax[float64]},
		{"LogSoftmax", "Computes logits minus the logarithm of the sum of exp(logits), over the last dimension.", "logsoftmax", simd.LogSoftmax[float32], simd.LogSoftmax[float64]},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: op.doc,
				In: []string{"logits: T"}, Out: []string{op.out + ": T"},
				Attrs: []string{"T: " + floatTypes}, Shape: vectorOrMore,
			},
			Kernels: kernel.ByType("T", kernel.Table{
				tensor.Float16:  softmax(rowVia32[tensor.Half](op.row32)),
				tensor.BFloat16: softmax(rowVia32[tensor.BFloat](op.row32)),
				tensor.Float32:  softmax(op.row32),
				tensor.Float64:  softmax(op.row64),
			}),
		})
	}
}

// vectorOrMore is the rule of operations whose output has the shape of the input, which is no scalar.
func vectorOrMore(c *opdef.ShapeContext) error {
	s, err := opdef.WithRankAtLeast(c.In[0], 1)
	c.SetAll(s)
	return err
}

// expCost is the time in nanoseconds that softmax takes per element.
const expCost = 1

// rowGrain returns how many rows of n elements make a block for one core.
func rowGrain(n int) int { return max(1, elementwise.Grain(expCost)/max(n, 1)) }

// softmax returns the kernel that maps each row of the last dimension.
func softmax[T tensor.Elem](row func(z, x []T)) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.Rank() == 0 {
			return status.InvalidArgumentf("logits must have >= 1 dimension, got %v", in.Shape())
		}
		x, n := tensor.Values[T](in), in.Dim(in.Rank()-1)
		out, err := ctx.Forward(0, 0)
		if err != nil || len(x) == 0 {
			return err
		}
		z := tensor.Values[T](out)
		parallel.For(len(z)/n, rowGrain(n), func(lo, hi int) {
			for i := lo * n; i < hi*n; i += n {
				row(z[i:i+n], x[i:i+n])
			}
		})
		return nil
	})
}

// rowVia32 returns the function of a row of a 16-bit type that computes with one of float32.
func rowVia32[H elementwise.Short](row func(z, x []float32)) func(z, x []H) {
	return func(z, x []H) {
		wide := make([]float32, len(z))
		elementwise.Widen(wide, x)
		row(wide, wide)
		elementwise.Narrow(z, wide)
	}
}
