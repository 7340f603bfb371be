package nn

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, op := range []struct {
		name, doc, out string
		rows32         func(z, x []float32, cols int, largest, sum []float32)
		rows64         func(z, x []float64, cols int, largest, sum []float64)
	}{
		{
			"Softmax", "Computes softmax activations: exp(logits) divided by its sum along the last dimension.", "softmax",
			simd.SoftmaxRows[float32], simd.SoftmaxRows[float64],
		},
		{
			"LogSoftmax", "Computes log softmax activations: logits - log(sum(exp(logits))) along the last dimension.", "logsoftmax",
			simd.LogSoftmaxRows[float32], simd.LogSoftmaxRows[float64],
		},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: op.doc,
				In: []string{"logits: T"}, Out: []string{op.out + ": T"},
				Attrs: []string{"T: " + floatTypes}, Shape: vectorOrMore,
			},
			Kernels: kernel.ByType("T", kernel.Table{
				tensor.Float16:  softmax(rowsVia32[tensor.Float16Elem](op.rows32)),
				tensor.BFloat16: softmax(rowsVia32[tensor.BFloat16Elem](op.rows32)),
				tensor.Float32:  softmax(withScratch(op.rows32)),
				tensor.Float64:  softmax(withScratch(op.rows64)),
			}),
		})
	}
}

// vectorOrMore is the shape function of operations whose output has the shape of the input, which
// must not be a scalar.
func vectorOrMore(c *opdef.ShapeContext) error {
	s, err := opdef.WithRankAtLeast(c.In[0], 1)
	c.SetAll(s)
	return err
}

// expCost is the time per element of softmax, in nanoseconds.
const expCost = 1

// rowGrain returns the number of rows of n elements in a block for one core.
func rowGrain(n int) int { return max(1, elementwise.Grain(expCost)/max(n, 1)) }

// softmax returns a kernel that applies rows to the rows of the last dimension, several rows of
// cols elements at a time.
func softmax[T tensor.Elem](rows func(z, x []T, cols int)) kernel.New {
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
		parallel.For(len(z)/n, rowGrain(n), func(lo, hi int) { rows(z[lo*n:hi*n], x[lo*n:hi*n], n) })
		return nil
	})
}

// scratchRows is the number of rows that share one call and its scratch memory.
const scratchRows = 64

// withScratch provides rows with scratch memory for the largest elements and the sums.
func withScratch[T simd.Float](rows func(z, x []T, cols int, largest, sum []T)) func(z, x []T, cols int) {
	return func(z, x []T, cols int) {
		scratch := membudget.Make[T](2 * scratchRows)
		for lo := 0; lo < len(z); lo += scratchRows * cols {
			hi := min(lo+scratchRows*cols, len(z))
			rows(z[lo:hi], x[lo:hi], cols, scratch[:scratchRows], scratch[scratchRows:])
		}
	}
}

// rowsVia32 computes rows of a 16-bit type in float32.
func rowsVia32[H elementwise.Short](rows func(z, x []float32, cols int, largest, sum []float32)) func(z, x []H, cols int) {
	return func(z, x []H, cols int) {
		var largest, sum [1]float32
		wide := membudget.Make[float32](cols)
		for lo := 0; lo < len(z); lo += cols {
			elementwise.Widen(wide, x[lo:lo+cols])
			rows(wide, wide, cols, largest[:], sum[:])
			elementwise.Narrow(z[lo:lo+cols], wide)
		}
	}
}
