package recorder

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/kernel"
)

// maxKernels bounds the kernels and copies of a GPU in a recording. The driver has two events for
// each of them until the recording ends.
const maxKernels = 200_000

// tracedGPU is the trace of a GPU during a recording.
type tracedGPU struct {
	name  string
	trace *device.Trace
}

// kernelRun is a kernel or a copy of a GPU.
type kernelRun struct {
	device string
	device.Operation
}

func traceGPUs(devices []*kernel.Device) []tracedGPU {
	var out []tracedGPU
	for _, d := range devices {
		if d.GPU != nil {
			out = append(out, tracedGPU{d.Name, d.GPU.StartTrace(maxKernels)})
		}
	}
	return out
}

// addKernels ends the traces and adds what they have. A GPU that has failed has nothing.
func (r *Recording) addKernels() {
	for _, g := range r.gpus {
		ops, lost, err := g.trace.Stop()
		if err != nil {
			continue
		}
		r.mu.Lock()
		r.lost += int64(lost)
		for _, op := range ops {
			if !r.meter.Take(recordSize) {
				r.lost++
				continue
			}
			r.kernels = append(r.kernels, kernelRun{g.name, op})
		}
		r.mu.Unlock()
	}
}
