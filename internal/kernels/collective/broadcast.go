package collective

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	attrs := slices.Concat([]string{broadcasts}, first, []string{"shape: shape"}, hints)
	register(opdef.Def{
		Name: "CollectiveBcastSend", Doc: "Broadcasts a tensor to all devices of a group.",
		In: []string{"input: T"}, Out: []string{"data: T"}, Attrs: attrs, Shape: opdef.AttrShape,
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		op := broadcast(c, true)
		return op, declaredShape(c), byAttrs(c, op)
	})
	register(opdef.Def{
		Name: "CollectiveBcastRecv", Doc: "Receives the tensor broadcast by one device of a group.",
		Out: []string{"data: T"}, Attrs: attrs, Shape: opdef.AttrShape,
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		op := broadcast(c, false)
		return op, declaredShape(c), byAttrs(c, op)
	})
	register(opdef.Def{
		Name: "CollectiveBcastSendV2", Doc: "Broadcasts a tensor to all devices of a group.",
		In: slices.Concat([]string{"input: T"}, second), Out: []string{"data: T"},
		Attrs: slices.Concat([]string{broadcasts}, hints), Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		return broadcast(c, true), func(ctx *kernel.Context, op *kernel.Collective) error {
			op.Shape = ctx.Input(0).Shape()
			return byInputs(ctx, op, 1)
		}, nil
	})
	register(opdef.Def{
		Name: "CollectiveBcastRecvV2", Doc: "Receives the tensor broadcast by one device of a group.",
		In: slices.Concat(second, []string{"shape: Tshape"}), Out: []string{"data: T"},
		Attrs: slices.Concat([]string{broadcasts, "Tshape: {int32, int64} = DT_INT32"}, hints), Shape: opdef.ValueShape(3),
	}, func(c *kernel.Construction) (*kernel.Collective, prepare, error) {
		return broadcast(c, false), func(ctx *kernel.Context, op *kernel.Collective) (err error) {
			if op.Shape, err = intarg.Shape(intarg.Values(ctx.Input(3))); err != nil {
				return err
			}
			return byInputs(ctx, op, 0)
		}, nil
	})
}

func broadcast(c *kernel.Construction, source bool) *kernel.Collective {
	name := c.Node + ": Broadcast(0)"
	if source {
		name = c.Node + ": Broadcast(1)"
	}
	return &kernel.Collective{Name: name, Kind: kernel.Broadcast, Source: source, Offsets: []int64{0}}
}

// declaredShape prepares an operation whose attributes declare the shape on all devices.
func declaredShape(c *kernel.Construction) prepare {
	want, full := c.Attrs.Shape("shape").Full()
	return func(ctx *kernel.Context, op *kernel.Collective) error {
		switch {
		case !full:
			return status.InvalidArgumentf("the shape of %s must be known, got %v", op.Name, c.Attrs.Shape("shape"))
		case op.Source && !ctx.Input(0).Shape().Equal(want):
			return status.Internalf("Declared shape of op %s does not match shape of input", op.Name)
		}
		op.Shape = want
		return nil
	}
}
