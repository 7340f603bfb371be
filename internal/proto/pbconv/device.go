package pbconv

import (
	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// DeviceToProto returns how a task describes one of its devices to others. memoryLimit is in bytes;
// incarnation is the random number, never 0, that tells this life of the task from others.
func DeviceToProto(name device.Spec, memoryLimit int64, incarnation uint64) *pb.DeviceAttributes {
	return &pb.DeviceAttributes{
		Name: name.String(), DeviceType: name.Type, MemoryLimit: memoryLimit, Locality: &pb.DeviceLocality{},
		Incarnation: incarnation, XlaGlobalId: -1,
	}
}

// DeviceFromProto returns the full name of a device that a task describes, after checking the
// description.
func DeviceFromProto(p *pb.DeviceAttributes) (device.Spec, error) {
	spec, err := device.Parse(p.GetName())
	switch {
	case err != nil:
		return spec, err
	case !spec.IsFull():
		return spec, status.InvalidArgumentf("Device name '%s' is not complete", p.GetName())
	case p.GetDeviceType() != spec.Type:
		return spec, status.InvalidArgumentf("Device '%s' says that its type is '%s'", p.GetName(), p.GetDeviceType())
	}
	return spec, nil
}
