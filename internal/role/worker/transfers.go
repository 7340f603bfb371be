package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
)

// maxLoggedSteps bounds the steps whose transfers are kept until a master requests them; it is
// TensorFlow's number.
const maxLoggedSteps = 1 << 10

const (
	// maxLoggedTransfers bounds the transfers of all of these steps. A step with a loop has any
	// number, and a master that has vanished requests none.
	maxLoggedTransfers = 1 << 18
	// transferMemory is about the memory of a transfer in the log, in bytes.
	transferMemory = 1 << 10
)

// transferLog records, while a master asks for it, the tensors that a task receives from others, by
// step.
type transferLog struct {
	mu     sync.Mutex
	wanted int                     // number of masters that have enabled logging; guarded by mu
	steps  map[int64]*pb.StepStats // guarded by mu
	kept   int                     // transfers in steps; guarded by mu
	meter  membudget.Meter         // guarded by mu
}

// transfer is one tensor that was received from another task.
type transfer struct {
	step       int64
	name       string // of the tensor
	from, to   string // devices
	bytes      int64
	start, end time.Time
}

// Logging enables or disables the log of transfers, and returns and forgets the records of the
// given steps.
func (w *Worker) Logging(_ context.Context, req *pb.LoggingRequest) (*pb.LoggingResponse, error) {
	l := &w.transfers
	l.mu.Lock()
	defer l.mu.Unlock()
	if req.GetEnableRpcLogging() {
		l.wanted++
	}
	// Masters of releases without DisableRpcLogging disable it with an empty request.
	if req.GetDisableRpcLogging() || !req.GetEnableRpcLogging() && len(req.GetFetchStepId()) == 0 {
		l.wanted = max(l.wanted-1, 0)
	}
	resp := &pb.LoggingResponse{}
	for _, id := range req.GetFetchStepId() {
		if stats, ok := l.steps[id]; ok {
			resp.Step = append(resp.Step, &pb.LabeledStepStats{StepId: id, StepStats: stats})
			l.removeLocked(id)
		}
	}
	if req.GetClear() {
		l.steps, l.kept = nil, 0
	}
	return resp, nil
}

// removeLocked removes the transfers of a step.
func (l *transferLog) removeLocked(step int64) {
	for _, d := range l.steps[step].GetDevStats() {
		l.kept -= len(d.GetNodeStats())
	}
	delete(l.steps, step)
}

// makeRoomLocked drops all transfers if there are too many, or if there is no memory for another.
// If there are too many, no master has requested them for long, and logging ends: a master that has
// vanished does not disable it. makeRoomLocked then returns false.
func (l *transferLog) makeRoomLocked(t *transfer) bool {
	full := l.steps[t.step] == nil && len(l.steps) >= maxLoggedSteps || l.kept >= maxLoggedTransfers
	if full || !l.meter.Take(transferMemory+len(t.name)+len(t.from)+len(t.to)) {
		l.steps, l.kept = nil, 0
	}
	if full {
		l.wanted = 0
		return false
	}
	if l.steps == nil {
		l.steps = map[int64]*pb.StepStats{}
	}
	l.kept++
	return true
}

// active reports whether transfers are recorded.
func (l *transferLog) active() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted > 0
}

// record adds a transfer under the device that received it.
func (l *transferLog) record(t transfer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted == 0 || !l.makeRoomLocked(&t) {
		return
	}
	stats := l.steps[t.step]
	if stats == nil {
		stats = &pb.StepStats{}
		l.steps[t.step] = stats
	}
	for _, d := range stats.DevStats {
		if d.Device == t.to {
			d.NodeStats = append(d.NodeStats, t.stats())
			return
		}
	}
	stats.DevStats = append(stats.DevStats, &pb.DeviceStepStats{Device: t.to, NodeStats: []*pb.NodeExecStats{t.stats()}})
}

// stats returns the entry in the format of TensorFlow's timeline.
func (t transfer) stats() *pb.NodeExecStats {
	micros := t.end.Sub(t.start).Microseconds()
	return &pb.NodeExecStats{
		NodeName: "RecvTensor", TimelineLabel: t.label(),
		AllStartMicros: t.start.UnixMicro(), OpEndRelMicros: micros, AllEndRelMicros: micros,
		Output: []*pb.NodeOutput{{TensorDescription: &pb.TensorDescription{
			AllocationDescription: &pb.AllocationDescription{RequestedBytes: t.bytes},
		}}},
	}
}

func (t transfer) label() string {
	const mib = 1 << 20
	size := fmt.Sprintf("[%dB]", t.bytes)
	if float64(t.bytes) >= 0.1*mib {
		size = fmt.Sprintf("[%.1fMB]", float64(t.bytes)/mib)
	}
	rate := 8 * float64(t.bytes) / float64(max(t.end.Sub(t.start).Microseconds(), 1)) // in Mb/s
	speed := fmt.Sprintf("[%fMb/s]", rate)
	if rate >= 1000 {
		speed = fmt.Sprintf("[%.1fGb/s]", rate/1000)
	}
	return fmt.Sprintf("%s %s %s from %s to %s", size, speed, t.name, t.from, t.to)
}
