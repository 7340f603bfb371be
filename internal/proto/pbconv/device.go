package pbconv

import (
	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// DeviceToProto returns the description of a device for other tasks. memoryLimit is in bytes.
// incarnation is a random number, never 0, that distinguishes this start of the task from others.
func DeviceToProto(name device.Spec, memoryLimit int64, incarnation uint64) *pb.DeviceAttributes {
	return &pb.DeviceAttributes{
		Name: name.String(), DeviceType: name.Type, MemoryLimit: memoryLimit, Locality: &pb.DeviceLocality{},
		Incarnation: incarnation, XlaGlobalId: -1,
	}
}

// DeviceFromProto validates the description of a device of another task and returns its full name.
func DeviceFromProto(p *pb.DeviceAttributes) (device.Spec, error) {
	spec, err := device.Parse(p.GetName())
	switch {
	case err != nil:
		return spec, err
	case !spec.IsFull():
		return spec, status.InvalidArgumentf("Device name '%s' is not complete", p.GetName())
	case p.GetDeviceType() != spec.Type:
		return spec, status.InvalidArgumentf("Device '%s' is described with the type '%s'", p.GetName(), p.GetDeviceType())
	}
	return spec, nil
}
