package function

import (
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// maxInlined bounds how many calls are replaced in one graph: functions may call themselves.
const maxInlined = 1000

// inlineCalls replaces the calls of functions in a graph by their bodies, until there are none.
func (r *Runtime) inlineCalls(g *graph.Graph) error {
	for range maxInlined {
		n, fn := r.findCall(g)
		if n == nil {
			return nil
		}
		body, err := r.lib.InstantiateBody(fn, r.kernels)
		if err != nil {
			return err
		}
		if err := inline(g, n, body); err != nil {
			return err
		}
	}
	return status.ResourceExhaustedf("More than %d calls of functions to be replaced by their bodies", maxInlined)
}

// findCall returns the first node that calls a function, and the function.
func (r *Runtime) findCall(g *graph.Graph) (*graph.Node, opdef.Func) {
	for n := range g.Nodes() {
		if n.Op.Name == "PartitionedCall" || n.Op.Name == "StatefulPartitionedCall" {
			return n, n.Attrs.Func("f")
		}
		if _, ok := r.lib.Lookup(n.Op.Name); ok {
			return n, opdef.Func{Name: n.Op.Name, Attrs: n.Attrs}
		}
	}
	return nil, opdef.Func{}
}

// inline replaces a call by a copy of the body. Control edges to the call lead to the nodes of the copy that have no
// inputs; those from it come from all nodes that have effects or make results.
func inline(g *graph.Graph, call *graph.Node, body *graph.Body) error {
	if len(body.Args) != call.NumInputs() || len(body.Rets) != len(call.OutTypes) {
		return status.InvalidArgumentf("Node '%s' calls a function of %d arguments and %d results", call.Name, len(body.Args), len(body.Rets))
	}
	values := map[*graph.Node]graph.Output{} // argument → what it stands for
	for i, arg := range body.Args {
		values[arg] = call.Input(i)
	}
	copies, err := copyNodes(g, call, body, values)
	if err != nil {
		return err
	}
	rets := make([]graph.Output, len(body.Rets))
	for i, ret := range body.Rets {
		rets[i] = translate(ret.Input(0), copies, values)
	}
	var last []*graph.Node
	for n := range body.Graph.Nodes() {
		if c := copies[n]; c != nil && (n.Op.Stateful || len(n.OutEdges()) == 0) {
			last = append(last, c)
		}
	}
	for _, out := range rets {
		last = append(last, out.Node)
	}
	return reconnect(g, call, rets, last)
}

func translate(o graph.Output, copies map[*graph.Node]*graph.Node, values map[*graph.Node]graph.Output) graph.Output {
	if v, ok := values[o.Node]; ok {
		return v
	}
	return graph.Output{Node: copies[o.Node], Index: o.Index}
}

// copyNodes adds copies of the nodes of a body to the graph, all but those for arguments and results.
func copyNodes(g *graph.Graph, call *graph.Node, body *graph.Body, values map[*graph.Node]graph.Output) (map[*graph.Node]*graph.Node, error) {
	copies := map[*graph.Node]*graph.Node{}
	for n := range body.Graph.Nodes() {
		if n.Op.Name == "_Arg" || n.Op.Name == "_Retval" {
			continue
		}
		name := call.Name + "/" + n.Name
		for i := 1; g.Node(name) != nil; i++ {
			name = call.Name + "/" + n.Name + "_" + strconv.Itoa(i)
		}
		c, err := g.Add(name, n.Op.Name, n.Attrs)
		if err != nil {
			return nil, err
		}
		c.Device = n.Device
		copies[n] = c
	}
	for n, c := range copies {
		for i, in := range n.Inputs() {
			if err := g.Connect(translate(in, copies, values), c, i); err != nil {
				return nil, err
			}
		}
		for _, in := range n.ControlInputs() {
			g.ConnectControl(translate(in.Out(0), copies, values).Node, c)
		}
		if n.NumInputs() == 0 && len(n.ControlInputs()) == 0 {
			for _, in := range call.ControlInputs() {
				g.ConnectControl(in, c)
			}
		}
	}
	return copies, nil
}

// reconnect leads the edges from a call to what stands for it, and removes the call.
func reconnect(g *graph.Graph, call *graph.Node, rets []graph.Output, last []*graph.Node) error {
	edges := append([]graph.Edge(nil), call.OutEdges()...)
	for _, e := range edges {
		if e.IsControl() {
			for _, n := range last {
				g.ConnectControl(n, e.Dst)
			}
			continue
		}
		if err := g.Connect(rets[e.SrcOut], e.Dst, e.DstIn); err != nil {
			return err
		}
	}
	g.Remove(call)
	return nil
}
