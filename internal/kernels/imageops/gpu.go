package imageops

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	gpusource "github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/tensor"
)

// gpuAxis is the structure Axis of the kernels of devices.
type gpuAxis struct {
	In, Out int32
	Scale   float32
	Centers int32
}

func (a axis) arg() driver.Struct {
	g := gpuAxis{In: int32(a.in), Out: int32(a.out), Scale: a.scale}
	if a.centers {
		g.Centers = 1
	}
	return driver.StructOf(g)
}

// bilinearOnDevice queues ResizeBilinear.
func (r *resizing) bilinearOnDevice(d *device.Device, out, in *tensor.Tensor) error {
	n := int64(out.NumElements())
	return d.LaunchLine("bilinear_"+gpusource.TypeName(in.DType()), n, out, in, n, int32(r.channels), r.y.arg(), r.x.arg())
}

// bilinearGradOnDevice queues the gradient of ResizeBilinear.
func (r *resizing) bilinearGradOnDevice(d *device.Device, out, grads *tensor.Tensor) error {
	n := int64(out.NumElements())
	return d.LaunchLine("bilinear_"+gpusource.TypeName(out.DType())+"_grad", n, out, grads, n, int32(r.channels), r.y.arg(), r.x.arg())
}

// nearestOnDevice queues ResizeNearestNeighbor or its gradient: kernel is the name of the kernel.
func (r *resizing) nearestOnDevice(d *device.Device, kernel string, out, in *tensor.Tensor, a alignment) error {
	n, corners := int64(out.NumElements()), int32(0)
	if a.corners {
		corners = 1
	}
	return d.LaunchLine(kernel, n, out, in, n, int32(r.channels), corners, r.y.arg(), r.x.arg())
}
