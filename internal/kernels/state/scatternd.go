package state

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// vectorScatters lists the updates of slices selected by index vectors, each registered for both
// kinds of variable.
var vectorScatters = []struct {
	name    string
	op      elementwise.Op
	doc     string
	types   string // dtypes of T in the reference form
	locking string // default of use_locking in the reference form
}{
	{"Update", elementwise.Assign, "Replaces slices of a variable", "type", "true"},
	{"Add", elementwise.Add, "Adds to slices of a variable", "numbertype", "false"},
	{"Sub", elementwise.Sub, "Subtracts from slices of a variable", "numbertype", "false"},
	{"Max", elementwise.Max, "Updates slices of a variable to the maximum", "numbertype", "false"},
	{"Min", elementwise.Min, "Updates slices of a variable to the minimum", "numbertype", "false"},
}

func init() {
	for _, s := range vectorScatters {
		attrs := func(types, locking string) []string {
			return []string{"T: " + types, "Tindices: {int32, int64}", "use_locking: bool = " + locking, "bad_indices_policy: string = ''"}
		}
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: "ScatterNd" + s.name, Doc: s.doc + " and returns the reference.",
				In:    []string{"ref: Ref(T)", "indices: Tindices", "updates: T"},
				Out:   []string{"output_ref: Ref(T)"},
				Attrs: attrs(s.types, s.locking),
				Shape: scatterNdShape,
			},
			Kernels: kernel.ForTypes("T", newScatterNd(s.op), scatterTypes(s.op)...),
		})
		resourceTypes := scatterTypes(s.op)
		if s.op == elementwise.Add || s.op == elementwise.Sub {
			resourceTypes = append([]tensor.DType{tensor.Bool}, resourceTypes...)
		}
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: "ResourceScatterNd" + s.name, Doc: s.doc + ".",
				In:       []string{"ref: resource", "indices: Tindices", "updates: T"},
				Attrs:    attrs("type", "true"),
				Stateful: true,
				Shape:    scatterNdShape,
			},
			Kernels: kernel.ForTypes("T", newScatterNd(s.op), resourceTypes...),
		})
	}
}

func scatterNdShape(c *opdef.ShapeContext) error {
	variable, err := inputShape(c, 0, "T")
	if err != nil {
		return err
	}
	indices, err := opdef.WithRankAtLeast(c.In[1], 1)
	if err != nil {
		return err
	}
	if len(c.Out) > 0 {
		c.Out[0] = variable
	}
	return shapefn.CheckScatterNd(indices, c.In[2], variable)
}

func newScatterNd(op elementwise.Op) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		skip, err := gatherscatter.SkipsBad(c.Attrs)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			updates := ctx.Input(2)
			indices, err := gatherscatter.Column(ctx.Input(1))
			if err != nil {
				return err
			}
			return change(ctx, func(t *tensor.Tensor) error {
				if t.DType() != updates.DType() {
					return status.InvalidArgumentf("DType of scatter resource and updates does not match.")
				}
				if err := gatherscatter.CheckUpdates(indices, updates, t.Shape()); err != nil {
					return err
				}
				own, err := ctx.Writable(t)
				if err != nil {
					return err
				}
				return gatherscatter.ScatterVectors(op, own, indices, updates, skip)
			})
		}), nil
	}
}
