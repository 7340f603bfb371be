package worker

import (
	"fmt"

	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/kernel"
)

// gpuTrace is the trace of a GPU device during a step. It has the work of all steps that use the
// device meanwhile, as TensorFlow's has.
type gpuTrace struct {
	number int
	trace  *gpu.Trace
	quota  *quota.Quota
}

// traceGPUs begins the traces of the GPUs among the devices. The quota limits the kernels and
// copies of each.
func traceGPUs(devices []*kernel.Device, q *quota.Quota) []gpuTrace {
	var out []gpuTrace
	for _, d := range devices {
		if d.GPU != nil {
			out = append(out, gpuTrace{d.GPU.Number(), d.GPU.StartTrace(q.Most(quota.TraceRecords)), q})
		}
	}
	return out
}

// stop ends a trace. The result has the devices under which TensorFlow's timelines show the work of
// a GPU: "/device:GPU:0/stream:1" with the kernels of a stream, "/device:GPU:0/stream:all" with
// those of all streams, "/device:GPU:0/stream:2<MemcpyH2D>" with the copies of a stream, and
// "/device:GPU:0/memcpy" with all copies. A GPU that has failed has none.
func (g gpuTrace) stop() []*pb.DeviceStepStats {
	ops, lost, err := g.trace.Stop()
	if err != nil {
		return nil
	}
	var out []*pb.DeviceStepStats
	byName := map[string]*pb.DeviceStepStats{}
	add := func(suffix string, stats *pb.NodeExecStats) {
		device := byName[suffix]
		if device == nil {
			device = &pb.DeviceStepStats{Device: fmt.Sprintf("/device:GPU:%d/%s", g.number, suffix)}
			byName[suffix] = device
			out = append(out, device)
		}
		device.NodeStats = append(device.NodeStats, stats)
	}
	for i := range ops {
		op := &ops[i]
		stats := operationStats(op)
		if op.Copy {
			add(fmt.Sprintf("stream:%d<%s>", op.Stream, op.Name), stats)
			add("memcpy", stats)
			continue
		}
		add(fmt.Sprintf("stream:%d", op.Stream), stats)
		add("stream:all", stats)
	}
	if lost > 0 {
		g.quota.Hit(quota.TraceRecords)
	}
	if n := len(ops); lost > 0 && n > 0 {
		add("stream:all", &pb.NodeExecStats{
			NodeName: "_TRUNCATED", TimelineLabel: fmt.Sprintf("the rest of the trace is left out: %d kernels and copies", lost),
			AllStartMicros: ops[n-1].Start.Add(ops[n-1].Took).UnixMicro(),
		})
	}
	return out
}

// operationStats describes a kernel or a copy. Microseconds are rounded down.
func operationStats(op *gpu.Operation) *pb.NodeExecStats {
	name := op.Node
	if name == "" {
		name = op.Name
	}
	return &pb.NodeExecStats{
		NodeName: name, TimelineLabel: op.Name + " " + op.Detail,
		ScheduledMicros: op.Queued.UnixMicro(), ScheduledNanos: op.Queued.UnixNano(),
		AllStartMicros: op.Start.UnixMicro(), AllStartNanos: op.Start.UnixNano(),
		OpEndRelMicros: op.Took.Microseconds(), OpEndRelNanos: op.Took.Nanoseconds(),
		AllEndRelMicros: op.Took.Microseconds(), AllEndRelNanos: op.Took.Nanoseconds(),
	}
}
