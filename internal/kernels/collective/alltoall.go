package collective

import (
	"slices"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	register(opdef.Def{
		Name: "CollectiveAllToAllV2", Doc: "Sends row i to device i of a group and returns the rows received from all devices.",
		In: slices.Concat([]string{"input: T"}, second, []string{"ordering_token: Nordering_token * resource"}), Out: []string{"data: T"},
		Attrs: slices.Concat([]string{sums}, hints, tokens), Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		op := &kernel.Collective{Name: c.Node + ": AllToAllV2", Kind: kernel.AllToAll}
		return op, func(ctx *kernel.Context, op *kernel.Collective) error {
			op.Shape = ctx.Input(0).Shape()
			return byInputs(ctx, op, 1)
		}, nil
	})
	register(opdef.Def{
		Name: "CollectiveAllToAllV3", Doc: "Sends row i to device i of a communicator's group and returns the rows received " +
			"from all devices.",
		In: []string{"input: T", "communicator: resource", "group_assignment: int32"}, Out: []string{"data: T"},
		Attrs: []string{sums, "timeout_seconds: float = 0"}, Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		return &kernel.Collective{Name: c.Node + ": AllToAllV3", Kind: kernel.AllToAll}, byCommunicator, nil
	})
}
