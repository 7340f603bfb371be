package weft

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
)

// Device is a device that a session can use.
type Device struct {
	Name        string // "/job:worker/replica:0/task:0/device:CPU:0"
	Type        string // "CPU"
	MemoryLimit int64  // bytes; what the task says of itself
	Incarnation uint64 // new in every life of the task
}

// ListDevices returns the devices that the session can use.
func (s *Session) ListDevices(ctx context.Context) ([]Device, error) {
	k, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.during(ctx, s.settings.timeout())
	defer cancel()
	return listDevices(ctx, k.master, k.handle)
}

// ListDevices returns the devices of the cluster that a target is part of.
func ListDevices(ctx context.Context, target string, opts ...Option) ([]Device, error) {
	master, done, err := connectOnce(target, opts)
	if err != nil {
		return nil, err
	}
	defer done(ctx)
	return listDevices(ctx, master, "")
}

func listDevices(ctx context.Context, master rpc.Master, session string) ([]Device, error) {
	resp, err := master.ListDevices(ctx, &pb.ListDevicesRequest{SessionHandle: session})
	if err != nil {
		return nil, err
	}
	var out []Device
	for _, list := range [][]*pb.DeviceAttributes{resp.GetLocalDevice(), resp.GetRemoteDevice()} {
		for _, d := range list {
			out = append(out, Device{d.GetName(), d.GetDeviceType(), d.GetMemoryLimit(), d.GetIncarnation()})
		}
	}
	return out, nil
}

// Reset drops the resources in the given containers, or in the default one without any, on the
// tasks that match one of the device filters, or on all. All sessions of the target end.
func Reset(ctx context.Context, target string, containers, deviceFilters []string, opts ...Option) error {
	master, done, err := connectOnce(target, opts)
	if err != nil {
		return err
	}
	defer done(ctx)
	_, err = master.Reset(ctx, &pb.ResetRequest{Container: containers, DeviceFilters: deviceFilters})
	return err
}

// connectOnce is connect for a call without a session.
func connectOnce(target string, opts []Option) (rpc.Master, func(context.Context), error) {
	set, err := newSettings(opts)
	if err != nil {
		return nil, nil, err
	}
	return connect(target, set)
}
