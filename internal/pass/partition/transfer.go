package partition

import (
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// emptyTensor is the value that control edges send.
var emptyTensor = tensor.Vector[float32]()

// transfer adds the nodes that carry an edge from one part to another. It returns the node that
// receives, and the node from which consumers take the output or wait for the control edge.
func (s *splitter) transfer(e graph.Edge) (recv, out *graph.Node, err error) {
	from, src := s.partOf(e.Src)
	to := s.parts[s.location[e.Dst.ID]]
	value := src.Out(max(e.SrcOut, 0))
	dtype := tensor.Float32
	if e.IsControl() {
		if value, err = s.addEmptyTensor(from, src); err != nil {
			return nil, nil, err
		}
	} else {
		dtype = e.Dst.InTypes[e.DstIn].Base()
	}
	key := opdef.Attrs{
		"tensor_name": "edge_" + strconv.Itoa(s.transfers) + "_" + e.Src.Name,
		"send_device": e.Src.Assigned, "send_device_incarnation": int64(s.o.Incarnation(e.Src.Assigned)),
		"recv_device": e.Dst.Assigned, "client_terminated": false,
	}
	s.transfers++
	narrow := s.o.BFloat16 && !e.IsControl() && dtype == tensor.Float32
	if narrow {
		dtype = tensor.BFloat16
		if value, err = s.cast(from, e.Src.Name, e.Src.Assigned, value, tensor.Float32, dtype); err != nil {
			return nil, nil, err
		}
	}
	send, err := s.add(from, e.Src.Name, s.sendOp(e), e.Src.Assigned, with(key, "T", dtype))
	if err != nil {
		return nil, nil, err
	}
	if err := from.Connect(value, send, 0); err != nil {
		return nil, nil, err
	}
	recv, err = s.add(to, e.Src.Name, s.recvOp(e), e.Dst.Assigned, with(key, "tensor_type", dtype))
	switch {
	case err != nil:
		return nil, nil, err
	case narrow:
		wide, err := s.cast(to, e.Src.Name, e.Dst.Assigned, recv.Out(0), dtype, tensor.Float32)
		return recv, wide.Node, err
	case !e.IsControl():
		return recv, recv, nil
	}
	out, err = s.add(to, e.Src.Name, "Identity", e.Dst.Assigned, opdef.Attrs{"T": dtype})
	if err != nil {
		return nil, nil, err
	}
	return recv, out, to.Connect(recv.Out(0), out, 0)
}

// fromHost reports whether the source of an edge is in the memory of the host of a GPU.
func (s *splitter) fromHost(e graph.Edge) bool {
	return s.o.OnHost != nil && !e.IsControl() && s.o.OnHost(e.Src, true, e.SrcOut)
}

// toHost reports whether the destination of an edge is in the memory of the host of a GPU.
func (s *splitter) toHost(e graph.Edge) bool {
	return s.o.OnHost != nil && !e.IsControl() && s.o.OnHost(e.Dst, false, e.DstIn)
}

func (s *splitter) sendOp(e graph.Edge) string {
	if s.fromHost(e) {
		return "_HostSend"
	}
	return "_Send"
}

func (s *splitter) recvOp(e graph.Edge) string {
	if s.toHost(e) {
		return "_HostRecv"
	}
	return "_Recv"
}

// cast converts a value to another type.
func (s *splitter) cast(part *graph.Graph, name, device string, value graph.Output, from, to tensor.DType) (graph.Output, error) {
	n, err := s.add(part, name, "Cast", device, opdef.Attrs{"SrcT": from, "DstT": to, "Truncate": to == tensor.BFloat16})
	if err != nil {
		return graph.Output{}, err
	}
	return n.Out(0), part.Connect(value, n, 0)
}

// addEmptyTensor returns an empty tensor that is available after src has run.
func (s *splitter) addEmptyTensor(part *graph.Graph, src *graph.Node) (graph.Output, error) {
	n, err := s.add(part, src.Name+"/ctrl", "Const", src.Assigned, opdef.Attrs{"dtype": tensor.Float32, "value": emptyTensor})
	if err != nil {
		return graph.Output{}, err
	}
	part.ConnectControl(src, n)
	return n.Out(0), nil
}

// add adds a node under a new name.
func (s *splitter) add(part *graph.Graph, prefix, op, device string, attrs opdef.Attrs) (*graph.Node, error) {
	if err := takeNode(prefix); err != nil {
		return nil, err
	}
	n, err := part.Add(s.o.NewName(prefix), op, attrs)
	if err == nil {
		n.Assigned = device
	}
	return n, err
}

func with(attrs opdef.Attrs, name string, v any) opdef.Attrs {
	out := attrs.Clone()
	out[name] = v
	return out
}

// completeIncarnations sets the incarnation of transfers that were in the graph before the split
// and have none.
func (s *splitter) completeIncarnations(part *graph.Graph) {
	for n := range part.Nodes() {
		switch n.Op.Name {
		case "_Send", "_Recv", "_HostSend", "_HostRecv":
		default:
			continue
		}
		device := n.Attrs.String("send_device")
		if device != "" && n.Attrs.Int("send_device_incarnation") == 0 {
			n.SetAttr("send_device_incarnation", int64(s.o.Incarnation(device)))
		}
	}
}
