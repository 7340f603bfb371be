package collective

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	register(opdef.Def{
		Name: "CollectiveReduce", Doc: "Reduces the tensors of all devices of a group elementwise.",
		In: []string{"input: T"}, Out: []string{"data: T"},
		Attrs: slices.Concat([]string{sums}, first, reducer, []string{"subdiv_offsets: list(int)", "wait_for: list(int) = []"}, hints),
		Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		op := reduction(c, "Reduce", kernel.Reduction)
		op.Offsets = c.Attrs.Ints("subdiv_offsets")
		op.MaxRings = -1
		return op, sameShape, byAttrs(c, op)
	})
	register(opdef.Def{
		Name: "CollectiveReduceV2", Doc: "Reduces the tensors of all devices of a group elementwise.",
		In: slices.Concat([]string{"input: T"}, second, []string{"ordering_token: Nordering_token * resource"}), Out: []string{"data: T"},
		Attrs: slices.Concat([]string{sums}, reducer, hints, tokens, []string{"max_subdivs_per_device: int = -1"}),
		Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		op := reduction(c, "ReduceV2", kernel.Reduction)
		op.MaxRings = c.Attrs.Int("max_subdivs_per_device")
		return op, func(ctx *kernel.Context, op *kernel.Collective) error {
			op.Shape = ctx.Input(0).Shape()
			return byInputs(ctx, op, 1)
		}, nil
	})
	register(opdef.Def{
		Name: "CollectiveReduceV3", Doc: "Reduces the tensors of all devices of a communicator's group elementwise.",
		In: []string{"input: T", "communicator: resource", "group_assignment: int32"}, Out: []string{"data: T"},
		Attrs: []string{sums, "reduction: {'Min', 'Max', 'Mul', 'Add'}", "timeout_seconds: float = 0"},
		Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		merge, text := mergeOf(c.Attrs.String("reduction"))
		op := &kernel.Collective{
			Name: c.Node + ": ReduceV3(" + text + ")", Kind: kernel.Reduction, MaxRings: -1, Merge: merge,
		}
		return op, byCommunicator, nil
	})
	register(opdef.Def{
		Name: "CollectiveReduceScatterV2",
		Doc: "Reduces the tensors of all devices of a group elementwise and scatters the rows " +
			"of the result by rank.",
		In: slices.Concat([]string{"input: T"}, second, []string{"ordering_token: Nordering_token * resource"}), Out: []string{"data: T"},
		Attrs: slices.Concat([]string{sums}, reducer, hints, tokens, []string{"max_subdivs_per_device: int = -1"}),
		Shape: func(c *opdef.ShapeContext) error {
			in, err := opdef.WithRankAtLeast(c.In[0], 1)
			if err != nil || !in.RankKnown() {
				return err
			}
			c.SetAll(shapefn.Replace(in, 0, -1))
			return nil
		},
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		return reduction(c, "ReduceScatterV2", kernel.ReduceScatter), scatterShape, nil
	})
}

// reduction describes a node with the attributes merge_op and final_op.
func reduction(c *kernel.Construction, what string, kind kernel.CollectiveKind) *kernel.Collective {
	merge, text := mergeOf(c.Attrs.String("merge_op"))
	final := c.Attrs.String("final_op")
	op := &kernel.Collective{Name: c.Node + ": " + what + "(" + text + "," + final + ")", Kind: kind, Merge: merge}
	if final == "Div" {
		op.Finish = divide
	}
	return op
}

// scatterShape prepares an operation that leaves each device an equal part of the result, one part
// per device.
func scatterShape(ctx *kernel.Context, op *kernel.Collective) error {
	if err := byInputs(ctx, op, 1); err != nil {
		return err
	}
	in := ctx.Input(0)
	if in.Rank() == 0 || in.Dim(0)%int(op.Group.Size) != 0 {
		return status.InvalidArgumentf("input of shape %v cannot be scattered over %d devices: its first dimension must be a multiple of that",
			in.Shape(), op.Group.Size)
	}
	op.Shape = slices.Clone(in.Shape())
	op.Shape[0] /= int64(op.Group.Size)
	return nil
}
