package task

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/gpu/devices"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/kernel"
)

// gpuDevices returns the GPU devices of a task, with new incarnations.
func gpuDevices(cfg *Config) ([]*kernel.Device, error) {
	if cfg.GPUs == nil {
		return nil, nil
	}
	options := gpuOptions(cmp.Or(cfg.GPUOptions, cfg.SessionDefaults))
	options.Task = cfg.Task.String()
	gpus, err := cfg.GPUs.Devices(options)
	if err != nil {
		return nil, err
	}
	out := make([]*kernel.Device, len(gpus))
	for i, g := range gpus {
		out[i] = &kernel.Device{
			Name: fmt.Sprintf("%v/device:%s:%d", cfg.Task, kernel.GPU, i), Type: kernel.GPU, Incarnation: rand.Uint64() | 1,
			MemoryLimit: g.Limit(), Resources: kernel.NewResources(cfg.Task.Job), Files: cfg.Files, Policy: cfg.Policy, Observer: cfg.Observer,
			GPU: g,
		}
	}
	return out, nil
}

// gpuOptions returns the options of a session's configuration.
func gpuOptions(config *pb.ConfigProto) *devices.Options {
	o := config.GetGpuOptions()
	out := &devices.Options{
		Count: -1, Visible: o.GetVisibleDeviceList(), Fraction: o.GetPerProcessGpuMemoryFraction(), Growth: o.GetAllowGrowth(),
		NoRetry: o.GetExperimental().GetDisallowRetryOnAllocationFailure(),
	}
	if n, ok := config.GetDeviceCount()[kernel.GPU]; ok {
		out.Count = int(n)
	}
	for _, v := range o.GetExperimental().GetVirtualDevices() {
		out.Virtual = append(out.Virtual, v.GetMemoryLimitMb())
	}
	return out
}
