package mathops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "NextAfter", Doc: "Returns the next representable value of x1 in the direction of x2, with broadcasting.",
			In:    []string{"x1: T", "x2: T"},
			Out:   []string{"output: T"},
			Attrs: []string{"T: {float64, float32} = float32"},
			Shape: opdef.BroadcastShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Float32: elementwise.Loops[float32, float32]{Each: elementwise.Map2(math.Nextafter32), Cost: costly}.Kernel(),
			tensor.Float64: elementwise.Loops[float64, float64]{Each: elementwise.Map2(math.Nextafter), Cost: costly}.Kernel(),
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "ApproximateEqual", Doc: "Returns whether |x-y| is at most tolerance, element by element, for tensors of one shape.",
			In:          []string{"x: T", "y: T"},
			Out:         []string{"z: bool"},
			Attrs:       []string{"T: numbertype", "tolerance: float = 9.999999747378752e-06"},
			Commutative: true,
			Shape:       opdef.MergedShape,
		},
		Kernels: byT(kernel.Table{tensor.Float32: approximately[float32], tensor.Float64: approximately[float64]}),
	})
	table := kernel.Table{
		tensor.Float16:  kernel.Stateless(crossShort[tensor.Float16Elem]),
		tensor.BFloat16: kernel.Stateless(crossShort[tensor.BFloat16Elem]),
	}
	crossOf[float32](table)
	crossOf[float64](table)
	crossOf[int8](table)
	crossOf[int16](table)
	crossOf[int32](table)
	crossOf[int64](table)
	crossOf[uint8](table)
	crossOf[uint16](table)
	crossOf[uint32](table)
	crossOf[uint64](table)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Cross", Doc: "Computes the cross product of the vectors in the last dimension of a and b, which has size 3.",
			In:    []string{"a: T", "b: T"},
			Out:   []string{"product: T"},
			Attrs: []string{"T: realnumbertype"},
			Shape: crossShape,
		},
		Kernels: byT(table),
	})
}

func approximately[T elementwise.Float](c *kernel.Construction) (kernel.Kernel, error) {
	tolerance := T(c.Attrs.Float("tolerance"))
	loops := elementwise.Loops[T, bool]{
		Each: elementwise.Map2(func(x, y T) bool { return max(x-y, y-x) <= tolerance }), Cost: medium,
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		x, y := ctx.Input(0), ctx.Input(1)
		if !x.Shape().Equal(y.Shape()) {
			return status.InvalidArgumentf("x and y must be of the same shape. x shape: %v. y shape: %v", x.Shape(), y.Shape())
		}
		return loops.Compute(ctx)
	}), nil
}

func crossShape(c *opdef.ShapeContext) error {
	for _, in := range c.In {
		if _, err := opdef.WithRankAtLeast(in, 1); err != nil {
			return err
		}
	}
	s, err := opdef.MergeShapes(c.In[0], c.In[1])
	if err != nil {
		return err
	}
	c.Out[0] = s
	if d := s.Dim(-1); s.RankKnown() && d >= 0 && d != 3 {
		return status.InvalidArgumentf("Dimension must be 3 but is %d", d)
	}
	return nil
}

// crossInputs checks the inputs of a cross product and allocates its output.
func crossInputs(ctx *kernel.Context) (*tensor.Tensor, error) {
	a, b := ctx.Input(0), ctx.Input(1)
	if !a.Shape().Equal(b.Shape()) {
		return nil, status.InvalidArgumentf("Both inputs must be of same shape: %v vs. %v", a.Shape(), b.Shape())
	}
	if a.Rank() < 1 {
		return nil, status.InvalidArgumentf("Input must be at least 1D%v", a.Shape())
	}
	if n := a.Dim(a.Rank() - 1); n != 3 {
		return nil, status.FailedPreconditionf("Cross-products are only defined for 3-element vectors.")
	}
	return ctx.Allocate(0, a.Shape())
}

func crossOf[T elementwise.Real](t kernel.Table) {
	t[tensor.DTypeOf[T]()] = kernel.Stateless(func(ctx *kernel.Context) error {
		out, err := crossInputs(ctx)
		if err == nil {
			cross(tensor.Values[T](out), tensor.Values[T](ctx.Input(0)), tensor.Values[T](ctx.Input(1)))
		}
		return err
	})
}

func crossShort[H elementwise.Short](ctx *kernel.Context) error {
	out, err := crossInputs(ctx)
	if err == nil {
		elementwise.Via32Binary[H](cross[float32])(tensor.Values[H](out), tensor.Values[H](ctx.Input(0)), tensor.Values[H](ctx.Input(1)))
	}
	return err
}

func cross[T elementwise.Real](z, x, y []T) {
	parallel.For(len(z)/3, elementwise.Grain(medium), func(lo, hi int) {
		for i := 3 * lo; i < 3*hi; i += 3 {
			a, b := x[i:i+3], y[i:i+3]
			z[i], z[i+1], z[i+2] = a[1]*b[2]-a[2]*b[1], a[2]*b[0]-a[0]*b[2], a[0]*b[1]-a[1]*b[0]
		}
	})
}
