package executor

import (
	"time"

	"github.com/weft-ml/weft/tensor"
)

// Collector receives the statistics of a run, one node at a time. It may keep them. Runs of
// functions that nodes call use the same collector, so Collect must be safe for concurrent use.
type Collector interface {
	Collect(stats *NodeStats)
}

// NodeStats describes one execution of a node.
type NodeStats struct {
	Node, Op  string
	Depth     int       // number of function calls that the node is nested in
	Waits     bool      // the kernel is asynchronous
	Scheduled time.Time // when it became ready
	Start     time.Time // when its kernel was called
	End       time.Time // when its kernel was done
	Outputs   []OutputStats
}

// OutputStats describes an output of a node. There are none for outputs that are dead or
// references.
type OutputStats struct {
	Slot  int
	DType tensor.DType
	Shape tensor.Shape
	Bytes int64 // size of the elements

	OnDevice bool // the elements are in the memory of a GPU
}

// newStats returns the statistics of a node that has become ready.
func (r *run) newStats(n *node) *NodeStats {
	return &NodeStats{Node: n.name, Op: n.op, Depth: r.opts.Depth, Waits: n.waits, Scheduled: time.Now()}
}

func (s *NodeStats) start() { s.Start = time.Now() }

func (s *NodeStats) end() { s.End = time.Now() }

// addOutputs adds the outputs of a task.
func (s *NodeStats) addOutputs(t *task) {
	for i := range t.outs {
		if v := &t.outs[i].Tensor; v.Initialized() {
			s.Outputs = append(s.Outputs, OutputStats{Slot: i, DType: v.DType(), Shape: v.Shape(), Bytes: v.ByteSize(), OnDevice: v.OnDevice()})
		}
	}
}
