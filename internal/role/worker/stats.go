package worker

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/role/recorder"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/sys/membudget"
)

// stats collects what a master asks to know about a run, and what is recorded of the task. A nil
// *stats collects nothing.
type stats struct {
	wanted          bool // the master asks for executions
	timeline, costs bool
	recording       *recorder.Recording // nil if the task is not being recorded
	begun           time.Time
	units           []*unitStats
	gpus            []gpuTrace // of the GPUs of the task, if a timeline is wanted
}

// unitStats collects the executions of one executor and of the functions that it calls. It
// implements executor.Collector.
type unitStats struct {
	unit *unit
	// recorded receives the executions, too; nil if the task is not being recorded
	recorded executor.Collector

	// Guarded by mu while the step runs:
	mu    sync.Mutex
	nodes []*executor.NodeStats
	lost  int // executions that were left out
	quota *quota.Quota
	meter membudget.Meter
}

const (
	// tracedSize is about the memory of an execution in bytes, here and in the response.
	tracedSize = 1 << 10
)

// Collect adds one execution of a node. A trace that is too large for the quota, or for the memory
// that is left, has the first executions only. TensorFlow's timeline is useless with more than a
// million. It ignores nodes that move tensors between devices, as TensorFlow does: transfers are
// recorded separately.
func (u *unitStats) Collect(n *executor.NodeStats) {
	if u.recorded != nil {
		u.recorded.Collect(n)
	}
	switch n.Op {
	case "_Send", "_HostSend", "Send", "_Recv", "_HostRecv", "Recv":
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.lost > 0:
		u.lost++
		return
	case len(u.nodes) >= u.quota.Most(quota.TraceRecords):
		u.quota.Hit(quota.TraceRecords)
		u.lost++
		return
	case !u.meter.Take(tracedSize):
		u.lost++
		return
	}
	u.nodes = append(u.nodes, n)
}

// node returns the executed node, nil if it is in a function.
func (u *unitStats) node(n *executor.NodeStats) *graph.Node {
	if n.Depth > 0 {
		return nil
	}
	return u.unit.graph.Node(n.Node)
}

// newStats returns the collector for a run, nil if its options ask for nothing and the task is not
// being recorded.
func newStats(opts *pb.ExecutorOpts, r *run) *stats {
	recording := r.worker.Recorder.Current()
	wanted := opts.GetRecordTimeline() || opts.GetRecordCosts() || opts.GetReportTensorAllocationsUponOom()
	if !wanted && recording == nil {
		return nil
	}
	s := &stats{wanted: wanted, timeline: opts.GetRecordTimeline(), costs: opts.GetRecordCosts(), recording: recording, begun: time.Now()}
	if s.timeline {
		s.gpus = traceGPUs(r.session.devices, r.worker.Quota)
	}
	for i := range r.graph.units {
		u := &r.graph.units[i]
		s.units = append(s.units, &unitStats{
			unit: u, recorded: recording.Collector(r.step.id, u.device.Name, u.graph), quota: r.worker.Quota,
		})
	}
	return s
}

// options returns the options for the run of unit i.
func (s *stats) options(i int) executor.RunOptions {
	switch {
	case s == nil:
		return executor.RunOptions{}
	case !s.wanted:
		return executor.RunOptions{Stats: s.units[i].recorded}
	}
	return executor.RunOptions{Stats: s.units[i]}
}

// report adds the collected data to a response. It waits for the work that traced GPUs have.
func (s *stats) report(resp *message.RunGraphResponse) {
	if s == nil {
		return
	}
	if s.timeline {
		resp.StepStats = &pb.StepStats{}
		for _, g := range s.gpus {
			resp.StepStats.DevStats = append(resp.StepStats.DevStats, g.stop()...)
		}
		for _, u := range s.units {
			resp.StepStats.DevStats = append(resp.StepStats.DevStats, u.timeline(s.begun))
		}
	}
	if s.costs {
		resp.CostGraph = &pb.CostGraphDef{}
		for _, u := range s.units {
			resp.CostGraph.Node = append(resp.CostGraph.Node, u.costs(len(resp.CostGraph.Node))...)
		}
	}
}

// timeline returns the statistics for TensorFlow's timeline. As in TensorFlow, the first entry is
// the source of the graph.
func (u *unitStats) timeline(begun time.Time) *pb.DeviceStepStats {
	out := &pb.DeviceStepStats{Device: u.unit.device.Name}
	source := &executor.NodeStats{Node: "_SOURCE", Op: "NoOp", Scheduled: begun, Start: begun, End: begun}
	out.NodeStats = append(out.NodeStats, u.nodeStats(source, nil))
	for _, n := range u.nodes {
		out.NodeStats = append(out.NodeStats, u.nodeStats(n, u.node(n)))
	}
	if u.lost > 0 {
		end := begun
		if len(u.nodes) > 0 {
			end = u.nodes[len(u.nodes)-1].End
		}
		note := u.nodeStats(&executor.NodeStats{Node: "_TRUNCATED", Op: "NoOp", Scheduled: end, Start: end, End: end}, nil)
		note.TimelineLabel = fmt.Sprintf("the rest of the trace is left out: %d executions", u.lost)
		out.NodeStats = append(out.NodeStats, note)
	}
	return out
}

// nodeStats describes one execution. Microseconds are rounded down.
func (u *unitStats) nodeStats(n *executor.NodeStats, node *graph.Node) *pb.NodeExecStats {
	took := n.End.Sub(n.Start)
	out := &pb.NodeExecStats{
		NodeName: n.Node, TimelineLabel: label(n, node),
		ScheduledMicros: n.Scheduled.UnixMicro(), ScheduledNanos: n.Scheduled.UnixNano(),
		AllStartMicros: n.Start.UnixMicro(), AllStartNanos: n.Start.UnixNano(),
		OpEndRelMicros: took.Microseconds(), OpEndRelNanos: took.Nanoseconds(),
		AllEndRelMicros: took.Microseconds(), AllEndRelNanos: took.Nanoseconds(),
		MemoryStats: &pb.MemoryStats{},
	}
	for _, o := range n.Outputs {
		allocator := "cpu"
		if gpu := u.unit.device.GPU; gpu != nil && o.OnDevice {
			allocator = gpu.Allocator()
		}
		out.Output = append(out.Output, &pb.NodeOutput{Slot: int32(o.Slot), TensorDescription: &pb.TensorDescription{
			Dtype: pb.DataType(o.DType), Shape: pbconv.ShapeToProto(o.Shape),
			AllocationDescription: &pb.AllocationDescription{RequestedBytes: o.Bytes, AllocatedBytes: o.Bytes, AllocatorName: allocator},
		}})
		out.Memory = append(out.Memory, &pb.AllocatorMemoryUsed{
			AllocatorName: allocator, TotalBytes: o.Bytes, PeakBytes: o.Bytes, LiveBytes: o.Bytes,
		})
	}
	return out
}

// label describes an execution for the timeline.
func label(n *executor.NodeStats, node *graph.Node) string {
	if node == nil {
		return n.Node + " = " + n.Op + "()"
	}
	return n.Node + " = " + n.Op + "(" + strings.Join(node.Def().Inputs, ", ") + ")"
}

// costs returns the costs of all executed nodes, numbered from first on.
func (u *unitStats) costs(first int) []*pb.CostGraphDef_Node {
	ids := map[string]int32{}
	for i, n := range u.nodes {
		ids[n.Node] = int32(first + i)
	}
	var out []*pb.CostGraphDef_Node
	for _, n := range u.nodes {
		cost := &pb.CostGraphDef_Node{
			Name: n.Node, Device: u.unit.device.Name, Id: ids[n.Node], ComputeCost: n.End.Sub(n.Start).Microseconds(),
		}
		if node := u.node(n); node != nil {
			u.addInputs(cost, node, ids)
		}
		for _, o := range n.Outputs {
			cost.OutputInfo = append(cost.OutputInfo, &pb.CostGraphDef_Node_OutputInfo{
				Size: o.Bytes, AliasInputPort: -1, Dtype: pb.DataType(o.DType), Shape: pbconv.ShapeToProto(o.Shape),
			})
		}
		out = append(out, cost)
	}
	return out
}

func (u *unitStats) addInputs(cost *pb.CostGraphDef_Node, node *graph.Node, ids map[string]int32) {
	for _, in := range node.Inputs() {
		if id, ok := ids[in.Node.Name]; ok {
			cost.InputInfo = append(cost.InputInfo, &pb.CostGraphDef_Node_InputInfo{PrecedingNode: id, PrecedingPort: int32(in.Index)})
		}
	}
	for _, src := range node.ControlInputs() {
		if id, ok := ids[src.Name]; ok {
			cost.ControlInput = append(cost.ControlInput, id)
		}
	}
}
