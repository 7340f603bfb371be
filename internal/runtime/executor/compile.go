package executor

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// node is a compiled node. Slots and counts are places in the state of an iteration of the node's
// frame. What a run reads of every node is here, in two cache lines; the rest is behind a pointer.
type node struct {
	kind     kind
	transfer bool // runs when dead, and may have outputs without value
	refs     bool // an input is, or comes from, a reference
	waits    bool // kern is an [kernel.Async]
	numIn    int32
	in       int32 // slot of the first input
	count    int32
	numOut   int32
	edges    []edge
	kern     kernel.Kernel
	cost     atomic.Int64 // average time of a call in nanoseconds; 0 before the first, see addCost
	outTypes []tensor.DType
	name     string
	*details
	region *region // that the node stands for, or nil
}

// details are what few executions of a node need.
type details struct {
	pos     int32 // in the nodes of the compiled graph
	frame   int32 // that the node runs in: its place in the frames
	fusible bool  // may be part of a region
	// the output is the reference that the input is, though its type does not say so
	forwardsRef bool
	async       kernel.Async // kern, if it is one
	op          string
	inTypes     []tensor.DType
	unused      []bool   // outputs without consumers
	sources     []string // what each input is connected to, if refs

	value        tensor.Tensor   // of a constant
	indexes      []tensor.Tensor // of a Merge: its second output, for each input
	index        int             // of an argument or result
	child        int             // frame that an Enter node enters: its place in the frames
	invariant    bool            // an Enter node's value goes to all iterations
	allowsUninit bool            // references may be to variables without a value
	distributed  bool            // talks to other tasks
}

// edge is an outgoing edge of a node.
type edge struct {
	dst   *node
	count int32 // of dst
	slot  int32 // of dst's input; control for a control edge
	out   int32 // output of the source
	last  bool  // no later edge has this output
	merge bool  // dst is a Merge
}

const control = -1

// count is how many inputs of a node have not arrived, and how many that have are dead. Of a Merge,
// pending is twice the number of control inputs that have not arrived, plus one until a live input
// has.
type count struct{ pending, dead int32 }

func (p *program) compile(g *graph.Graph, newKernel func(*graph.Node) (kernel.Kernel, error)) error {
	l, err := newLayout(p, g)
	if err != nil {
		return err
	}
	p.nodes = make([]node, g.NumNodes())
	cold := make([]details, len(p.nodes))
	byID := make([]*node, g.NumIDs())
	order := runOrder(g)
	edges, outs := 0, 0
	for i, gn := range order {
		byID[gn.ID] = &p.nodes[i]
		byID[gn.ID].details = &cold[i]
		cold[i].pos = int32(i)
		edges += len(gn.OutEdges())
		outs += len(gn.OutTypes)
	}
	for gn := range g.Nodes() {
		if err := byID[gn.ID].compile(gn, newKernel); err != nil {
			return status.AtNode(err, gn.Name)
		}
	}
	slab := slabs{make([]edge, 0, edges), make([]tensor.DType, 0, outs), make([]bool, outs)}
	for _, gn := range order {
		l.assign(byID[gn.ID], gn)
	}
	for _, gn := range order {
		byID[gn.ID].connect(gn, byID, &slab)
	}
	var roots []*node
	for gn := range g.Nodes() {
		n := byID[gn.ID]
		switch {
		case n.numIn > 0 || len(gn.ControlInputs()) > 0:
		case n.waits: // for others, while the rest runs
			p.roots = append(p.roots, n)
		default:
			roots = append(roots, n)
		}
	}
	p.roots = append(p.roots, roots...)
	return nil
}

func (n *node) compile(gn *graph.Node, newKernel func(*graph.Node) (kernel.Kernel, error)) error {
	n.name, n.op = gn.Name, gn.Op.Name
	n.inTypes = gn.InTypes
	n.numIn, n.numOut = int32(gn.NumInputs()), int32(len(gn.OutTypes))
	n.allowsUninit, n.distributed = gn.Op.AllowsUninitialized, gn.Op.Distributed
	n.transfer = transfers[n.op]
	n.kind = kinds[n.op]
	for i, in := range gn.Inputs() {
		if in.Node == nil {
			return status.InvalidArgumentf("Input %d of node %s is not connected", i, gn.Name)
		}
		if in.DType().IsRef() || readsVariable(in.Node) {
			n.refs = true
		}
	}
	n.forwardsRef = readsVariable(gn)
	if n.refs {
		for _, in := range gn.Inputs() {
			n.sources = append(n.sources, in.String())
		}
	}
	if n.kind != compute {
		n.fusible = !n.refs && (n.kind == constant || n.kind == forward)
		return n.compileKnown(gn.Attrs)
	}
	var err error
	n.kern, err = newKernel(gn)
	n.async, n.waits = n.kern.(kernel.Async)
	n.fusible = !n.refs && !n.waits && !n.transfer && !gn.Op.Stateful && !gn.Op.Distributed &&
		!slices.ContainsFunc(gn.OutTypes, tensor.DType.IsRef)
	return err
}

// readsVariable reports whether a node is the Identity by which programs read a variable behind a
// reference, or takes its output into a loop or branch. It passes the reference on, and each
// consumer takes the value when it runs: TensorFlow's output shares the variable's memory, and
// programs such as synchronous training count on it to see a step that was counted in between.
func readsVariable(n *graph.Node) bool {
	for {
		switch n.Op.Name {
		case "Identity", "Enter", "Switch":
		default:
			return false
		}
		in := n.Input(0)
		if in.Node == nil {
			return false
		}
		if in.DType().IsRef() {
			return true
		}
		n = in.Node
	}
}

// compileKnown reads the attributes of operations that have no kernel here.
func (n *node) compileKnown(attrs opdef.Attrs) error {
	switch n.kind {
	case constant:
		value := attrs.Tensor("value")
		if value == nil || value.DType() != attrs.Type("dtype") {
			return status.InvalidArgumentf("Const value and dtype of '%s' do not match", n.name)
		}
		n.value = value.Retain()
	case merge:
		for i := range n.numIn {
			n.indexes = append(n.indexes, tensor.Scalar(i))
		}
	case arg, retval:
		n.index = attrs.Int("index")
	case enter:
		n.invariant = attrs.Bool("is_constant")
	default:
	}
	return nil
}

// slabs are what the edges, types and marks of all nodes are cut from, so that those of nodes that
// follow each other lie next to each other.
type slabs struct {
	edges  []edge
	types  []tensor.DType
	unused []bool
}

// connect makes the edges of the node, those of each output together and in order.
func (n *node) connect(gn *graph.Node, byID []*node, slab *slabs) {
	first := len(slab.edges)
	for _, ge := range gn.OutEdges() {
		dst := byID[ge.Dst.ID]
		e := edge{dst: dst, count: dst.count, slot: control, out: control, merge: dst.kind == merge}
		if !ge.IsControl() {
			e.slot, e.out = dst.in+int32(ge.DstIn), int32(ge.SrcOut)
		}
		slab.edges = append(slab.edges, e)
	}
	n.edges = slices.Clip(slab.edges[first:])
	slices.SortStableFunc(n.edges, func(a, b edge) int { return cmp.Compare(uint32(a.out), uint32(b.out)) })
	slab.types = append(slab.types, gn.OutTypes...)
	n.outTypes = slices.Clip(slab.types[len(slab.types)-len(gn.OutTypes):])
	n.unused, slab.unused = slices.Clip(slab.unused[:n.numOut]), slab.unused[n.numOut:]
	for i := range n.unused {
		n.unused[i] = true
	}
	for i := range n.edges {
		e := &n.edges[i]
		if e.out == control {
			break
		}
		n.unused[e.out] = false
		e.last = i+1 == len(n.edges) || n.edges[i+1].out != e.out
	}
}
