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
	MemoryLimit int64  // in bytes, as reported by the task
	Incarnation uint64 // a random number that changes when the task is restarted
}

// ListDevices returns the devices that the session can use.
func (s *Session) ListDevices(ctx context.Context) ([]Device, error) {
	r, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.during(ctx, s.settings.timeout())
	defer cancel()
	return listDevices(ctx, r.master, r.handle)
}

// ListDevices returns the devices of all tasks of the cluster that the target is part of. It fails
// with Unavailable if the target cannot be reached.
func ListDevices(ctx context.Context, target string, opts ...TargetOption) ([]Device, error) {
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

// Reset removes the resources, such as variables, in the given containers; nil means the
// default container. It does so on the tasks that match one of the device filters, or on all tasks
// if there are none. All sessions of the target are closed.
func Reset(ctx context.Context, target string, containers, deviceFilters []string, opts ...TargetOption) error {
	master, done, err := connectOnce(target, opts)
	if err != nil {
		return err
	}
	defer done(ctx)
	_, err = master.Reset(ctx, &pb.ResetRequest{Container: containers, DeviceFilters: deviceFilters})
	return err
}

// connectOnce connects to the master of a target for one call without a session.
func connectOnce(target string, opts []TargetOption) (rpc.Master, func(context.Context), error) {
	set := newSettings()
	for _, opt := range opts {
		if err := opt.applyTarget(set); err != nil {
			return nil, nil, err
		}
	}
	return connect(target, set)
}
