package collective

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "CollectiveAssignGroupV2", Doc: "Returns the size and the key of a device's group. Each row of group_assignment " +
			"lists the devices of one group.",
		In:  []string{"group_assignment: int32", "device_index: int32", "base_key: int32"},
		Out: []string{"group_size: int32", "group_key: int32"}, Shape: opdef.ScalarShape, Stateful: true, Distributed: true,
	}, assignGroup)
}

func assignGroup(ctx *kernel.Context) error {
	groups, device, base := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	switch {
	case device.Rank() != 0:
		return status.InvalidArgumentf("device_index must be a scalar, but received tensor of shape: %v", device.Shape())
	case groups.Rank() != 2:
		return status.InvalidArgumentf("group_assignment must be a 2-d Tensor, but received tensor of shape: %v", groups.Shape())
	case base.Rank() != 0:
		return status.InvalidArgumentf("base_key must be a scalar, but received tensor of shape: %v", base.Shape())
	}
	index, size := tensor.Value[int32](device), groups.Dim(1)
	members := tensor.Values[int32](groups)
	for row := range groups.Dim(0) {
		key := tensor.Value[int32](base) + int32(row)
		if key == 0 {
			return status.InvalidArgumentf("Using the reserved group_key = 0 is not allowed: group_id = %d, base_key = %d",
				row, tensor.Value[int32](base))
		}
		for _, member := range members[row*size : (row+1)*size] {
			if member < 0 || int(member) >= len(members) {
				return status.InvalidArgumentf("Not all items in group_assignment %v is within [0, number of devices)", groups)
			}
			if member == index {
				ctx.SetOutput(0, tensor.Scalar(int32(size)))
				ctx.SetOutput(1, tensor.Scalar(key))
				return nil
			}
		}
	}
	return status.InvalidArgumentf("device_index %d is not found in group_assignment %v", index, groups)
}
