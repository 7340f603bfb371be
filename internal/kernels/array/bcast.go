package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "BroadcastArgs", Doc: "Returns the shape that tensors of shapes s0 and s1 are broadcast to.",
		In:    []string{"s0: T", "s1: T"},
		Out:   []string{"r0: T"},
		Attrs: []string{"T: {int32, int64} = int32"},
		Shape: broadcastArgsShape,
	}, broadcastArgs)
	kernel.RegisterFunc(opdef.Def{
		Name: "BroadcastGradientArgs",
		Doc: "Returns, for each of two shapes, the dimensions in which a tensor of that shape is " +
			"broadcast. The gradient is summed over these dimensions.",
		In:    []string{"s0: T", "s1: T"},
		Out:   []string{"r0: T", "r1: T"},
		Attrs: []string{"T: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error {
			c.SetAll(shapefn.Of(shapefn.Unknown))
			return shapefn.CheckRanks(c, 0, 1, 1)
		},
	}, broadcastGradientArgs)
}

func broadcastArgsShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 1, 1); err != nil {
		return err
	}
	a, b := c.In[0].Dim(0), c.In[1].Dim(0)
	c.Out[0] = shapefn.Of(shapefn.Unknown)
	if a >= 0 && b >= 0 {
		c.Out[0] = shapefn.Of(max(a, b))
	}
	return nil
}

// shapePair reads two shapes and extends the shorter one with leading ones.
func shapePair(ctx *kernel.Context) (pair [2][]int64, err error) {
	for i := range pair {
		t := ctx.Input(i)
		if t.Rank() != 1 {
			return pair, status.InvalidArgumentf("In[%d] must be a vector.%v", i, t.Shape())
		}
		pair[i] = intarg.Values(t)
	}
	given := pair
	rank := max(len(pair[0]), len(pair[1]))
	for i, s := range pair {
		pair[i] = membudget.Make[int64](rank) // the inputs are vectors of any length
		lead := rank - len(s)
		for k := range lead {
			pair[i][k] = 1
		}
		copy(pair[i][lead:], s)
	}
	for k := range rank {
		if a, b := pair[0][k], pair[1][k]; a != b && a != 1 && b != 1 {
			return pair, status.InvalidArgumentf("Incompatible shapes: [%s] vs. [%s]", join(given[0]), join(given[1]))
		}
	}
	return pair, nil
}

func broadcastArgs(ctx *kernel.Context) error {
	pair, err := shapePair(ctx)
	if err != nil {
		return err
	}
	shape := membudget.Make[int64](len(pair[0]))
	for k := range shape {
		shape[k] = pair[0][k]
		if shape[k] == 1 {
			shape[k] = pair[1][k]
		}
	}
	return setVector(ctx, 0, shape)
}

func setVector(ctx *kernel.Context, i int, vals []int64) error {
	out, err := ctx.Allocate(i, tensor.Shape{int64(len(vals))})
	if err == nil {
		intarg.Set(out, vals)
	}
	return err
}

func broadcastGradientArgs(ctx *kernel.Context) error {
	pair, err := shapePair(ctx)
	if err != nil {
		return err
	}
	var reduced [2][]int64
	if slices.Equal(intarg.Values(ctx.Input(0)), intarg.Values(ctx.Input(1))) {
		pair[0] = nil // no dimension is broadcast
	}
	for k := range pair[0] {
		a, b := pair[0][k], pair[1][k]
		// A dimension of size 1 on both sides is reduced for both. The sum over it changes no value
		// and removes added dimensions.
		if a == 1 {
			reduced[0] = membudget.Append(reduced[0], int64(k))
		}
		if b == 1 {
			reduced[1] = membudget.Append(reduced[1], int64(k))
		}
	}
	for i := range reduced {
		if err := setVector(ctx, i, reduced[i]); err != nil {
			return err
		}
	}
	return nil
}
