package random

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/tensor"
)

// drawOnDevice queues the drawing of samples in groups of the given size.
func drawOnDevice(d *device.Device, out *tensor.Tensor, g philox.Generator, group int, name string, more []any) error {
	low, high := g.Counter()
	n := int64(out.NumElements())
	args := append([]any{out, g.Key(), low, high, n}, more...)
	return d.LaunchLine(name+"_"+source.TypeName(out.DType()), (n+int64(group)-1)/int64(group), args...)
}

// onHost returns the elements of a small tensor that may be in the memory of a device.
func onHost(t *tensor.Tensor) ([]uint64, error) {
	if d := device.Of(t); d != nil {
		host, err := d.Host(t)
		if err != nil {
			return nil, err
		}
		return tensor.Values[uint64](&host), nil
	}
	return tensor.Values[uint64](t), nil
}
