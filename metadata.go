package weft

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
)

// Metadata holds what was recorded while a step ran: see [Session.RunTraced].
type Metadata struct {
	pb *pb.RunMetadata
}

// NodeStats is one execution of a node, or one transfer of a tensor.
type NodeStats struct {
	Device string        // full name
	Node   string        // name of the node
	Label  string        // description, such as "y = MatMul(a, b)"
	Start  time.Time     // by the clock of the task
	Took   time.Duration // until the node was done, with microsecond resolution
}

// Nodes returns the executed nodes and the transfers, grouped by device.
func (m *Metadata) Nodes() []NodeStats {
	var out []NodeStats
	for _, dev := range m.pb.GetStepStats().GetDevStats() {
		for _, n := range dev.GetNodeStats() {
			out = append(out, NodeStats{
				Device: dev.GetDevice(), Node: n.GetNodeName(), Label: n.GetTimelineLabel(),
				Start: time.UnixMicro(n.GetAllStartMicros()), Took: time.Duration(n.GetAllEndRelMicros()) * time.Microsecond,
			})
		}
	}
	return out
}

// PartitionGraphs returns the graphs that ran on each device. There are none unless the step ran
// with [WithPartitionGraphs].
func (m *Metadata) PartitionGraphs() ([]*graph.Def, error) {
	var out []*graph.Def
	for _, p := range m.pb.GetPartitionGraphs() {
		def, err := pbconv.GraphFromProto(p)
		if err != nil {
			return nil, err
		}
		out = append(out, def)
	}
	return out, nil
}

// Marshal returns a serialized tensorflow.RunMetadata, for TensorFlow's tools.
func (m *Metadata) Marshal() ([]byte, error) { return proto.Marshal(m.pb) }
