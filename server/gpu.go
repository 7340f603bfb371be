package server

import (
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/gpu/devices"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// WithGPU says which GPU devices the task has: "auto", the default, for those of the first driver
// that finds any, "off" for none, "require" to fail without one, or the name of a driver, which
// must find one. Only programs that import package gpu have drivers. The options of the GPUs are
// those of the default configuration of sessions.
func WithGPU(mode string) Option { return func(o *options) { o.gpu = mode } }

// WithGPUMemoryFraction bounds the memory of each GPU that the task uses to a part between 0 and 1.
// With 0, the default, the configuration of sessions says how much the task uses.
func WithGPUMemoryFraction(f float64) Option { return func(o *options) { o.gpuFraction = f } }

// gpuConfig returns the configuration that describes the GPU devices of the task.
func (o *options) gpuConfig(defaults *pb.ConfigProto) *pb.ConfigProto {
	if o.gpuFraction == 0 {
		return defaults
	}
	config := proto.CloneOf(defaults)
	if config.GpuOptions == nil {
		config.GpuOptions = &pb.GPUOptions{}
	}
	config.GpuOptions.PerProcessGpuMemoryFraction = o.gpuFraction
	return config
}

// findGPUs returns the GPUs for a mode of [WithGPU]; nil for none.
func findGPUs(mode string, log *slog.Logger) (*devices.Set, error) {
	switch mode {
	case "off":
		return nil, nil //nolint:nilnil // no GPUs
	case "", "auto":
		set, err := devices.Find("")
		if err != nil {
			log.Debug("the task has CPU devices only", "reason", err)
			return nil, nil //nolint:nilnil // no GPUs
		}
		return set, nil
	case "require":
		mode = ""
	}
	set, err := devices.Find(mode)
	if err != nil {
		return nil, status.FailedPreconditionf("%w", err)
	}
	return set, nil
}

// GPUs describes the GPU devices of the task.
func (s *Server) GPUs() []string {
	var out []string
	for _, d := range s.task.Devices {
		if d.GPU != nil {
			out = append(out, fmt.Sprintf("%s (%d MiB)", d.GPU.Info().Name, d.MemoryLimit>>20))
		}
	}
	return out
}

// gpuInfos returns the state of the GPU devices of the task.
func (s *Server) gpuInfos() []*pb.GpuInfo {
	var out []*pb.GpuInfo
	for _, d := range s.task.Devices {
		if d.GPU == nil {
			continue
		}
		g := d.GPU.Stats()
		out = append(out, &pb.GpuInfo{
			Device: d.Name, Description: d.GPU.Description(), InUseBytes: g.InUse, PeakBytes: g.Peak, ReservedBytes: g.Reserved, LimitBytes: g.Limit,
			Kernels: g.Launches, KernelSeconds: g.KernelTime.Seconds(), Copies: g.ToDevice + g.ToHost + g.Peer,
			CopiedBytes: g.ToDeviceBytes + g.ToHostBytes + g.PeerBytes,
		})
	}
	return out
}
