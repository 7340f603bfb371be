package executor

import (
	"time"

	"github.com/weft-ml/weft/tensor"
)

// Collector is told what a run did, one node at a time. It keeps what it is given. Runs of
// functions that nodes call tell the same collector, at the same time.
type Collector interface {
	Collect(stats *NodeStats)
}

// NodeStats describes one execution of a node.
type NodeStats struct {
	Node, Op  string
	Depth     int       // how many function calls the node is nested in
	Scheduled time.Time // when it became ready
	Start     time.Time // when its kernel was called
	End       time.Time // when its kernel was done
	Outputs   []OutputStats
}

// OutputStats describes an output that a node made. Outputs that are dead or references are left
// out.
type OutputStats struct {
	Slot  int
	DType tensor.DType
	Shape tensor.Shape
	Bytes int64 // of its elements
}

// newStats returns what is known of a node when it becomes ready.
func (r *run) newStats(n *node) *NodeStats {
	return &NodeStats{Node: n.name, Op: n.op, Depth: r.opts.Depth, Scheduled: time.Now()}
}

func (s *NodeStats) start() { s.Start = time.Now() }

func (s *NodeStats) end() { s.End = time.Now() }

// addOutputs describes the outputs of a task.
func (s *NodeStats) addOutputs(t *task) {
	for i := range t.outs {
		if v := &t.outs[i].Tensor; v.Initialized() {
			s.Outputs = append(s.Outputs, OutputStats{Slot: i, DType: v.DType(), Shape: v.Shape(), Bytes: v.ByteSize()})
		}
	}
}
