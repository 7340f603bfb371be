package collective

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// communicator is the resource for a group that has been joined. It numbers the group's operations,
// which all members must start in the same order.
type communicator struct {
	group   kernel.CollectiveGroup
	timeout time.Duration
	next    atomic.Int32
}

// TypeName names the resource as TensorFlow does.
func (*communicator) TypeName() string {
	return "N10tensorflow12_GLOBAL__N_123CollectiveGroupResourceE"
}

// container is the name of the container for a device's communicators.
const container = "collective_op_group"

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "CollectiveInitializeCommunicator", Doc: "Joins a group at the given rank and returns a handle to its communicator.",
		In: []string{"group_key: int32", "rank: int32", "group_size: int32"}, Out: []string{"communicator: resource"},
		Attrs: hints, Shape: opdef.ScalarShape, Stateful: true, Distributed: true,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		timeout := seconds(c.Attrs.Float("timeout_seconds"))
		return waiting(func(ctx *kernel.Context) error { return join(ctx, timeout) }), nil
	})
}

// join creates a communicator.
func join(ctx *kernel.Context, timeout time.Duration) error {
	var vals [3]int32
	for i, name := range [...]string{"group_key", "rank", "group_size"} {
		t := ctx.Input(i)
		if t.Rank() > 0 {
			return status.InvalidArgumentf("Unexpected dimensions on input %s. It shoulbe a scalar, got tensor with shape %v", name, t.Shape())
		}
		vals[i] = tensor.Value[int32](t)
	}
	key, rank, size := vals[0], vals[1], vals[2]
	switch {
	case size <= 0:
		return checkSize(size)
	case rank < 0:
		return status.InvalidArgumentf("rank must be non-negative integer but got %d", rank)
	case rank >= size:
		return status.InvalidArgumentf("rank must be less than group size but got %d >= %d", rank, size)
	}
	all, err := collectives(ctx)
	if err != nil {
		return err
	}
	c := &communicator{group: kernel.CollectiveGroup{Key: key, Size: size, Rank: rank}, timeout: timeout}
	place := resource.Place{Container: container, Name: fmt.Sprintf("%d:r%04d", key, rank)}
	if err := kernel.CreateResource(ctx.Device.Resources, place.Container, place.Name, c); err != nil {
		return err
	}
	ctx.SetOutput(0, tensor.Scalar(place.Handle(ctx.Device, c.TypeName())))
	return all.Join(ctx, c.group, timeout)
}

// byCommunicator prepares an operation of the third form, whose inputs are the tensor, the
// communicator and the group assignment.
func byCommunicator(ctx *kernel.Context, op *kernel.Collective) error {
	c, err := resource.Find[*communicator](ctx, 1)
	if err != nil {
		return err
	}
	if ctx.Input(2).NumElements() > 0 {
		return status.Unimplementedf("Group assignments are not supported yet.")
	}
	op.Group, op.Joined = c.group, true
	op.Instance = c.next.Add(1) - 1
	op.Shape = ctx.Input(0).Shape()
	if op.Timeout > 0 {
		op.Timeout = c.timeout
	}
	return nil
}
