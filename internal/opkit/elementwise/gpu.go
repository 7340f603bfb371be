package elementwise

import (
	"fmt"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/tensor"
)

// accumulateOnDevice queues an addition or a subtraction. An error of the device is a panic, and so
// an error of the step.
func accumulateOnDevice(d *device.Device, op Op, acc, x *tensor.Tensor) {
	name, ok := map[Op]string{Add: "add_", Sub: "sub_"}[op]
	suffix := source.TypeName(acc.DType())
	if !ok || suffix == "" {
		panic(fmt.Sprintf("elementwise: no operation %d on %v of %s", op, acc.DType(), d.Name()))
	}
	n := int64(acc.NumElements())
	if err := d.LaunchLine(name+suffix, n, acc, acc, x, n, int32(1), int32(1)); err != nil {
		panic(fmt.Errorf("update on %s: %w", d.Name(), err))
	}
}
