package optimize

import (
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
)

// Boundary defines how tensors enter and leave a pruned graph. It is implemented by [Session] and
// [Function].
type Boundary interface {
	// feed and fetch return the node for feed or fetch i, which the client calls by name.
	feed(i int, name string, of graph.Output) terminal
	fetch(i int, name string, of graph.Output) terminal
}

// Session transfers feeds and fetches between the client and a device of the master's task. Its
// nodes are _Recv and _Send nodes with client_terminated set. The tensor name is the client's name.
type Session struct {
	Device      string
	Incarnation uint64 // of the device
}

func (s Session) feed(_ int, name string, of graph.Output) terminal {
	attrs := s.attrs(name)
	attrs["tensor_type"] = of.DType().Base()
	return terminal{name: "_recv_" + endpointName(of), op: "_Recv", attrs: attrs, device: s.Device}
}

func (s Session) fetch(_ int, name string, of graph.Output) terminal {
	attrs := s.attrs(name)
	attrs["T"] = of.DType().Base()
	return terminal{name: "_send_" + endpointName(of), op: "_Send", attrs: attrs, device: s.Device, once: name}
}

func (s Session) attrs(name string) opdef.Attrs {
	return opdef.Attrs{
		"tensor_name": name, "send_device": s.Device, "recv_device": s.Device,
		"send_device_incarnation": int64(s.Incarnation), "client_terminated": true,
	}
}

// Function passes feeds and fetches as the arguments and results of a function: _Arg and _Retval
// nodes with an index.
type Function struct {
	Device string
}

func (f Function) feed(i int, _ string, of graph.Output) terminal {
	return f.terminal("_arg_", "_Arg", i, of)
}

func (f Function) fetch(i int, _ string, of graph.Output) terminal {
	return f.terminal("_retval_", "_Retval", i, of)
}

func (f Function) terminal(prefix, op string, i int, of graph.Output) terminal {
	return terminal{
		name: prefix + endpointName(of) + "_" + strconv.Itoa(i), op: op, device: f.Device,
		attrs: opdef.Attrs{"T": of.DType().Base(), "index": int64(i)},
	}
}

func endpointName(of graph.Output) string { return of.Node.Name + "_" + strconv.Itoa(of.Index) }

// terminal describes a node that a boundary adds.
type terminal struct {
	name, op, device string
	attrs            opdef.Attrs
	// key of a node that several feeds or fetches share; "" for a separate node
	once string
}

// addTo adds the node. Two spellings of one endpoint lead to the same name; the second node gets a
// numeric suffix.
func (t terminal) addTo(g *graph.Graph) (*graph.Node, error) {
	n, err := g.Add(unusedName(g, t.name), t.op, t.attrs)
	if err == nil {
		n.Assigned = t.device
	}
	return n, err
}

// unusedName returns name, with the first numeric suffix that makes it unique in g if it is taken.
func unusedName(g *graph.Graph, name string) string {
	unused := name
	for i := 1; g.Node(unused) != nil; i++ {
		unused = name + "_" + strconv.Itoa(i)
	}
	return unused
}
