package state

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// scatters lists the updates of rows, each registered for both kinds of variable.
var scatters = []struct {
	name    string
	op      elementwise.Op
	doc     string
	types   string // dtypes of T in the reference form
	locking string // default of use_locking
}{
	{"Update", elementwise.Assign, "Replaces rows of a variable", "type", "true"},
	{"Add", elementwise.Add, "Adds to rows of a variable", "numbertype", "false"},
	{"Sub", elementwise.Sub, "Subtracts from rows of a variable", "numbertype", "false"},
	{"Mul", elementwise.Mul, "Multiplies rows of a variable", "numbertype", "false"},
	{"Div", elementwise.Div, "Divides rows of a variable", "numbertype", "false"},
	{"Min", elementwise.Min, "Updates rows of a variable to the minimum", "{float16, bfloat16, float32, float64, int32, int64}", "false"},
	{"Max", elementwise.Max, "Updates rows of a variable to the maximum", "{float16, bfloat16, float32, float64, int32, int64}", "false"},
}

// scatterTypes returns the dtypes that a scatter supports.
func scatterTypes(op elementwise.Op) []tensor.DType {
	switch op {
	case elementwise.Assign:
		return typeset.All
	case elementwise.Min, elementwise.Max:
		return typeset.Real
	default:
		return typeset.Numbers
	}
}

func init() {
	for _, s := range scatters {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: "Scatter" + s.name, Doc: s.doc + " and returns the reference.",
				In:    []string{"ref: Ref(T)", "indices: Tindices", "updates: T"},
				Out:   []string{"output_ref: Ref(T)"},
				Attrs: []string{"T: " + s.types, "Tindices: {int32, int64}", "use_locking: bool = " + s.locking},
				Shape: func(c *opdef.ShapeContext) error { return scatterShape(c, "T") },
			},
			Kernels: kernel.ForTypes("T", newScatter(s.op), scatterTypes(s.op)...),
		})
		types := "numbertype"
		if s.op == elementwise.Assign {
			types = "type"
		}
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: "ResourceScatter" + s.name, Doc: s.doc + ".",
				In:       []string{"resource: resource", "indices: Tindices", "updates: dtype"},
				Attrs:    []string{"dtype: " + types, "Tindices: {int32, int64}"},
				Stateful: true,
				Shape:    func(c *opdef.ShapeContext) error { return scatterShape(c, "dtype") },
			},
			Kernels: kernel.ForTypes("dtype", newScatter(s.op), scatterTypes(s.op)...),
		})
	}
}

func scatterShape(c *opdef.ShapeContext, attr string) error {
	variable, err := inputShape(c, 0, attr)
	if err != nil {
		return err
	}
	if len(c.Out) > 0 {
		c.Out[0] = variable
	}
	if c.In[2].Rank() == 0 {
		return nil
	}
	_, err = opdef.MergeShapes(c.In[2], shapefn.Concat(c.In[1], shapefn.From(variable, 1)))
	return err
}

func newScatter(op elementwise.Op) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		indices, updates, byRef := ctx.Input(1), ctx.Input(2), ctx.InputRef(0) != nil
		return change(ctx, func(t *tensor.Tensor) error {
			if err := checkScatter(t, indices, updates, byRef); err != nil {
				return err
			}
			if op == elementwise.Div && (updates.DType().IsInteger() || !byRef) && !updates.OnDevice() && elementwise.HasZero(updates) {
				if !byRef {
					return status.InvalidArgumentf("updates must not contain 0")
				}
				return status.InvalidArgumentf("Integer division by zero")
			}
			list, bad, err := gatherscatter.Read(indices, t.Dim(0))
			defer list.Release()
			if err != nil {
				return err
			}
			if bad >= 0 {
				return status.InvalidArgumentf("indices%s = %d is not in [0, %d)",
					intarg.Position(indices.Shape(), bad), list.Rows[bad], t.Dim(0))
			}
			own, err := ctx.Writable(t)
			if err != nil {
				return err
			}
			width := int(t.Shape()[1:].NumElements())
			if updates.Rank() == 0 && !own.OnDevice() {
				return scatterScalar(ctx.Context(), op, own, updates, list.Rows, width)
			}
			gatherscatter.Scatter(op, own, updates, list, width)
			return nil
		})
	})
}

// scatterScalar combines the listed rows with one number, until ctx ends. A few indices of a row
// that is large take long, because no update has the size of the row.
func scatterScalar(ctx context.Context, op elementwise.Op, own, update *tensor.Tensor, rows []int64, width int) error {
	const piece = 1 << 22 // elements between two looks at ctx
	for step := max(1, piece/max(1, width)); len(rows) > 0; rows = rows[min(step, len(rows)):] {
		gatherscatter.Scatter(op, own, update, gatherscatter.List{Rows: rows[:min(step, len(rows))]}, width)
		if len(rows) > step && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func checkScatter(t, indices, updates *tensor.Tensor, byRef bool) error {
	if t.DType() != updates.DType() {
		return status.InvalidArgumentf("DType of scatter resource and updates does not match.")
	}
	if t.Rank() < 1 {
		return status.InvalidArgumentf("params must be at least 1-D, got shape %v", t.Shape())
	}
	if updates.Rank() == 0 {
		return nil
	}
	prefix := indices.Rank()
	fits := updates.Rank() >= prefix && updates.Shape()[:prefix].Equal(indices.Shape())
	if n := indices.NumElements(); !byRef && n > 0 && updates.NumElements()%n != 0 {
		return status.InvalidArgumentf("The shape of indices (%v) must be a prefix of the shape of updates (%v)",
			indices.Shape(), updates.Shape())
	}
	if !fits || !updates.Shape()[prefix:].Equal(t.Shape()[1:]) {
		return status.InvalidArgumentf("Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "+
			"updates.shape %v, indices.shape %v, params.shape %v", updates.Shape(), indices.Shape(), t.Shape())
	}
	return nil
}
