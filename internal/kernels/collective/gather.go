package collective

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	register(opdef.Def{
		Name: "CollectiveGather", Doc: "Concatenates the tensors of all devices of a group along the first dimension.",
		In: []string{"input: T"}, Out: []string{"data: T"},
		Attrs: slices.Concat([]string{gathers}, first, []string{"shape: shape"}, hints),
		Shape: func(c *opdef.ShapeContext) error {
			in, err := opdef.WithRankAtLeast(c.In[0], 1)
			if err != nil || !in.RankKnown() {
				return err
			}
			c.SetAll(shapefn.Replace(in, 0, shapefn.Times(in.Dim(0), int64(c.Attrs.Int("group_size")))))
			return nil
		},
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		op := &kernel.Collective{Name: c.Node + ": Gather", Kind: kernel.Gather}
		return op, gathered, byAttrs(c, op)
	})
	register(opdef.Def{
		Name: "CollectiveGatherV2", Doc: "Concatenates the tensors of all devices of a group along the first dimension.",
		In: slices.Concat([]string{"input: T"}, second, []string{"ordering_token: Nordering_token * resource"}), Out: []string{"data: T"},
		Attrs: slices.Concat([]string{gathers}, hints, tokens),
		Shape: func(c *opdef.ShapeContext) error {
			in, err := opdef.WithRankAtLeast(c.In[0], 1)
			if err != nil || !in.RankKnown() {
				return err
			}
			c.SetAll(shapefn.Replace(in, 0, -1))
			return nil
		},
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		op := &kernel.Collective{Name: c.Node + ": GatherV2", Kind: kernel.Gather}
		return op, func(ctx *kernel.Context, op *kernel.Collective) error {
			if err := byInputs(ctx, op, 1); err != nil {
				return err
			}
			return gathered(ctx, op)
		}, nil
	})
}

func gathered(ctx *kernel.Context, op *kernel.Collective) (err error) {
	op.Shape, err = scaledShape(ctx.Input(0), op.Group.Size)
	return err
}
