package elementwise

import (
	"fmt"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/tensor"
)

// accumulateOnDevice queues an addition or a subtraction. An error of the device is a panic, and so
// an error of the step.
func accumulateOnDevice(d *device.Device, op Op, acc, x *tensor.Tensor) {
	name, ok := map[Op]string{Add: "add_", Sub: "sub_"}[op]
	suffix, known := map[tensor.DType]string{
		tensor.Float16: "f16", tensor.BFloat16: "bf16", tensor.Float32: "f32", tensor.Float64: "f64",
		tensor.Int8: "i8", tensor.Int16: "i16", tensor.Int32: "i32", tensor.Int64: "i64",
		tensor.Uint8: "u8", tensor.Uint16: "u16", tensor.Uint32: "u32", tensor.Uint64: "u64",
		tensor.Complex64: "c64", tensor.Complex128: "c128",
	}[acc.DType()]
	if !ok || !known {
		panic(fmt.Sprintf("elementwise: no operation %d on %v of %s", op, acc.DType(), d.Name()))
	}
	n := int64(acc.NumElements())
	if err := d.LaunchLine(name+suffix, n, acc, acc, x, n, int32(1), int32(1)); err != nil {
		panic(fmt.Errorf("update on %s: %w", d.Name(), err))
	}
}
