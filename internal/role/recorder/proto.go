package recorder

import (
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/runtime/executor"
)

// nodeKey identifies a node of a recording. Functions are not identified: nodes of the same name in
// two of them are one.
type nodeKey struct {
	partition partition
	nested    bool // in a function
	name      string
}

// encoder numbers the nodes of a recording.
type encoder struct {
	out       *pb.Recording
	index     map[nodeKey]int32
	described map[int32]bool
}

// proto returns the message for a recording that is over.
func (r *Recording) proto() *pb.Recording {
	e := encoder{
		out:   &pb.Recording{Begin: r.begin.UnixNano(), End: r.stop.UnixNano(), Lost: r.lost},
		index: map[nodeKey]int32{}, described: map[int32]bool{},
	}
	since := func(t time.Time) int64 { return t.Sub(r.begin).Nanoseconds() }
	for i := range r.executions {
		x := &r.executions[i]
		n := x.node
		out := &pb.Execution{
			Node: e.node(x.partition, n), Step: x.step, Depth: int32(n.Depth),
			Ready: since(n.Scheduled), Queued: n.Start.Sub(n.Scheduled).Nanoseconds(), Took: n.End.Sub(n.Start).Nanoseconds(),
		}
		for _, o := range n.Outputs {
			out.Bytes += o.Bytes
		}
		e.out.Executions = append(e.out.Executions, out)
	}
	for i := range r.transfers {
		t := &r.transfers[i]
		e.out.Transfers = append(e.out.Transfers, &pb.RecordedTransfer{
			Step: t.Step, Tensor: t.Tensor, From: t.From, To: t.To, Bytes: t.Bytes, Requested: since(t.Requested), Received: since(t.Received),
			SentMicros: t.SentMicros,
		})
	}
	for i := range r.kernels {
		k := &r.kernels[i]
		e.out.Kernels = append(e.out.Kernels, &pb.RecordedKernel{
			Device: k.device, Name: k.Name, Node: k.Node, Copy: k.Copy, Start: since(k.Start), Took: k.Took.Nanoseconds(),
		})
	}
	for _, p := range r.parts {
		out := &pb.RecordedPart{Step: p.step, Start: since(p.start), Unfinished: p.end.IsZero()}
		if p.end.IsZero() {
			p.end = r.stop
		}
		out.Took = p.end.Sub(p.start).Nanoseconds()
		e.out.Parts = append(e.out.Parts, out)
	}
	for _, s := range r.steps {
		e.out.Steps = append(e.out.Steps, &pb.RecordedStep{
			Step: s.ID, Session: s.Session, Start: since(s.Start), Took: s.End.Sub(s.Start).Nanoseconds(), Code: s.Code,
		})
	}
	return e.out
}

// node returns the index of an executed node, and describes it at its first execution.
func (e *encoder) node(p *partition, n *executor.NodeStats) int32 {
	i := e.number(nodeKey{*p, n.Depth > 0, n.Node}, n.Op)
	if e.described[i] {
		return i
	}
	e.described[i] = true
	out := e.out.Nodes[i]
	out.Waits = n.Waits
	if n.Depth == 0 && p.graph != nil {
		if found := p.graph.Node(n.Node); found != nil {
			e.describe(p, found, out)
		}
	}
	return i
}

// number returns the index of a node.
func (e *encoder) number(key nodeKey, op string) int32 {
	i, ok := e.index[key]
	if !ok {
		i = int32(len(e.out.Nodes))
		e.index[key] = i
		e.out.Nodes = append(e.out.Nodes, &pb.RecordedNode{Name: key.name, Op: op, Device: key.partition.device})
	}
	return i
}

// describe adds what the graph knows about a node.
func (e *encoder) describe(p *partition, n *graph.Node, out *pb.RecordedNode) {
	out.Tensor, _ = n.Attrs["tensor_name"].(string)
	out.From, _ = n.Attrs["send_device"].(string)
	out.To, _ = n.Attrs["recv_device"].(string)
	known := map[int32]bool{} // a node may have a million inputs, so the list is not searched
	source := func(src *graph.Node) {
		if i := e.number(nodeKey{*p, false, src.Name}, src.Op.Name); !known[i] {
			known[i] = true
			out.Inputs = append(out.Inputs, i)
		}
	}
	for _, in := range n.Inputs() {
		source(in.Node)
	}
	for _, src := range n.ControlInputs() {
		source(src)
	}
}
