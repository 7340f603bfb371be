package array

import (
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Roll",
		Doc: "Rolls elements by shift along axis. Elements that pass the last position reappear at the " +
			"first.",
		In:    []string{"input: T", "shift: Tshift", "axis: Taxis"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"},
		Shape: rollShape,
	}, roll)
}

func rollShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRankAtLeast(c.In[0], 1); err != nil {
		return err
	}
	for _, in := range c.In[1:] {
		if _, err := opdef.WithRankAtMost(in, 1); err != nil {
			return err
		}
	}
	c.Out[0] = c.In[0]
	_, err := opdef.MergeShapes(c.In[1], c.In[2])
	return err
}

func roll(ctx *kernel.Context) error {
	in, shift, axis := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	switch {
	case in.Rank() < 1:
		return status.InvalidArgumentf("input must be 1-D or higher")
	case shift.Rank() > 1:
		return status.InvalidArgumentf("shift must be a scalar or a 1-D vector. Found: %v", shift.Shape())
	case axis.Rank() > 1:
		return status.InvalidArgumentf("axis must be a scalar or a 1-D vector. Found: %v", axis.Shape())
	case !shift.Shape().Equal(axis.Shape()):
		return status.InvalidArgumentf("shift and axis must have the same size")
	}
	by := membudget.Make[int](in.Rank())
	shifts := intarg.Values(shift)
	for i, a := range intarg.Values(axis) {
		at, ok := intarg.Axis(a, in.Rank())
		if !ok {
			return status.InvalidArgumentf("axis %d is out of range", at)
		}
		n := int64(max(in.Dim(at), 1))
		by[at] = int((((int64(by[at])+shifts[i])%n + n) % n))
	}
	out, err := ctx.AllocateLike(0, in)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	whole := strided.Of(in.Shape())
	rollFrom(out, whole, in, whole.Clone(), by, 0)
	return nil
}

// rollFrom copies src to dst. From axis on, it splits each rolled axis into two pieces.
func rollFrom(dst *tensor.Tensor, dv strided.View, src *tensor.Tensor, sv strided.View, by []int, axis int) {
	for axis < len(by) && by[axis] == 0 {
		axis++
	}
	if axis == len(by) {
		strided.Copy(dst, dv, src, sv)
		return
	}
	n, k := dv.Dims[axis], by[axis]
	for _, piece := range [][3]int{{k, 0, n - k}, {0, n - k, k}} {
		d, s := dv.Clone(), sv.Clone()
		d.Slice(axis, piece[0], piece[2], 1)
		s.Slice(axis, piece[1], piece[2], 1)
		rollFrom(dst, d, src, s, by, axis+1)
	}
}
