package nn

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	floatTypes = "{float16, bfloat16, float32, float64}"
	realTypes  = "realnumbertype"
)

// registerActivation registers the element-wise operation name and its gradient, name+"Grad". by is
// the name of the gradient's second input.
func registerActivation(name, doc, types, by string, attrs []string, forward, backward kernel.Table) {
	attrs = append(attrs, "T: "+types)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc,
			In: []string{"features: T"}, Out: []string{"activations: T"},
			Attrs: attrs, Shape: opdef.SameShape,
		},
		Kernels: kernel.ByType("T", forward),
	})
	for dtype, n := range backward {
		backward[dtype] = sameShapes(n)
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name + "Grad", Doc: "Computes the gradient of " + name + " from the gradient of its output and its " + by + ".",
			In: []string{"gradients: T", by + ": T"}, Out: []string{"backprops: T"},
			Attrs: gradientAttrs(attrs), Shape: opdef.MergedShape,
		},
		Kernels: kernel.ByType("T", backward),
	})
}

// gradientAttrs returns the attributes of a gradient, which has no kernels for quantized types.
func gradientAttrs(attrs []string) []string {
	out := append([]string{}, attrs...)
	if last := &out[len(out)-1]; *last == "T: "+reluTypes {
		*last = "T: " + realTypes
	}
	return out
}

// sameShapes wraps a kernel so that it rejects inputs of different shapes.
func sameShapes(n kernel.New) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		k, err := n(c)
		if err != nil {
			return nil, err
		}
		op := c.Op.Name
		return kernel.Func(func(ctx *kernel.Context) error {
			if a, b := ctx.Input(0).Shape(), ctx.Input(1).Shape(); !a.Equal(b) {
				return status.InvalidArgumentf("Inputs to operation %s of type %s must have the same size and shape.  Input 0: %v != input 1: %v",
					ctx.Node, op, a, b)
			}
			return k.Compute(ctx)
		}), nil
	}
}

// scratchLen is the number of elements of an intermediate result that are computed at a time.
const scratchLen = 1024

// viaScratch returns a loop that works in blocks: prepare computes an intermediate result of each
// block without changing the source, and finish computes the final result from both.
func viaScratch[T elementwise.Float](prepare func(tmp, x []T), finish func(z, tmp, x []T)) func(z, x []T) {
	return func(z, x []T) {
		tmp := membudget.Make[T](min(len(z), scratchLen))
		for lo := 0; lo < len(z); lo += scratchLen {
			n := min(scratchLen, len(z)-lo)
			prepare(tmp[:n], x[lo:lo+n])
			finish(z[lo:lo+n], tmp[:n], x[lo:lo+n])
		}
	}
}

// viaScratch2 is viaScratch for two inputs.
func viaScratch2[T elementwise.Float](prepare func(tmp, x, y []T), finish func(z, tmp, x, y []T)) func(z, x, y []T) {
	return func(z, x, y []T) {
		tmp := membudget.Make[T](min(len(z), scratchLen))
		for lo := 0; lo < len(z); lo += scratchLen {
			n := min(scratchLen, len(z)-lo)
			prepare(tmp[:n], x[lo:lo+n], y[lo:lo+n])
			finish(z[lo:lo+n], tmp[:n], x[lo:lo+n], y[lo:lo+n])
		}
	}
}

// real1 returns the kernels for all real types: loops for the floating-point types and a table of
// kernels for the integer types.
func real1(cost float64, loop32 func(z, x []float32), loop64 func(z, x []float64), ints kernel.Table) kernel.Table {
	return elementwise.Union(elementwise.FloatLoops(cost, loop32, loop64), ints)
}

// real2 is real1 for two inputs.
func real2(cost float64, loop32 func(z, x, y []float32), loop64 func(z, x, y []float64), ints kernel.Table) kernel.Table {
	return elementwise.Union(elementwise.FloatLoops2(cost, loop32, loop64), ints)
}

func binaryKernel[T tensor.Elem](loop func(z, x, y []T)) kernel.New {
	return elementwise.Loops[T, T]{Each: loop, Cost: 0.5}.Kernel()
}
