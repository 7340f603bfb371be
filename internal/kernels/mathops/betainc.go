package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/special"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Betainc", Doc: "Computes the regularized incomplete beta function I_x(a, b). Scalars are broadcast.",
			In:    []string{"a: T", "b: T", "x: T"},
			Out:   []string{"z: T"},
			Attrs: []string{"T: {float32, float64}"},
			Shape: betaincShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Float32: kernel.Stateless(betainc[float32]), tensor.Float64: kernel.Stateless(betainc[float64]),
		}),
	})
}

func betaincShape(c *opdef.ShapeContext) error {
	out, other, scalars := tensor.PartialShape{}, tensor.PartialShape{}, 0
	for _, in := range c.In {
		var err error
		switch {
		case !in.RankKnown():
			other = in
		case in.Rank() == 0:
			scalars++
		default:
			if out, err = opdef.MergeShapes(out, in); err != nil {
				return err
			}
			other = out
		}
	}
	switch scalars {
	case 2:
		out = other
	case 3:
		out = c.In[0]
	}
	c.Out[0] = out
	return nil
}

func betainc[T elementwise.Float](ctx *kernel.Context) error {
	a, b, x := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	shape := a.Shape()
	for _, p := range []struct {
		s, t  *tensor.Tensor
		names string
	}{{a, b, "a and b"}, {a, x, "a and x"}, {b, x, "b and x"}} {
		if p.s.Rank() > 0 && p.t.Rank() > 0 && !p.s.Shape().Equal(p.t.Shape()) {
			return status.InvalidArgumentf("Shapes of %s are inconsistent: %v vs. %v", p.names, p.s.Shape(), p.t.Shape())
		}
		if p.t.Rank() > 0 {
			shape = p.t.Shape()
		}
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	z, as, bs, xs := tensor.Values[T](out), at[T](a), at[T](b), at[T](x)
	parallel.For(len(z), elementwise.Grain(20*costly), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			z[i] = T(special.Betainc(float64(as(i)), float64(bs(i)), float64(xs(i))))
		}
	})
	return nil
}

// at returns a function that reads element i of a tensor. For a scalar it returns the same element
// for all i.
func at[T tensor.Elem](t *tensor.Tensor) func(i int) T {
	v := tensor.Values[T](t)
	if t.Rank() == 0 {
		return func(int) T { return v[0] }
	}
	return func(i int) T { return v[i] }
}
