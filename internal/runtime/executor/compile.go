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

// node is a compiled node. Slots and counts are indexes into the state of an iteration of the
// node's frame. The fields that every execution reads are here, in two cache lines. The others are
// in details.
type node struct {
	kind     kind
	transfer bool   // runs when dead, and may have outputs without value
	refs     bool   // an input is or comes from a reference
	waits    bool   // kern is a [kernel.Async]
	gpu      bool   // the device is a GPU
	numIn    int32  // number of inputs
	in       int32  // slot of the first input
	count    int32  // index of the count
	numOut   int32  // number of outputs
	edges    []edge // by output; control edges last
	kern     kernel.Kernel
	cost     atomic.Int64 // average time of a call, ns; 0 before the first call, see addCost
	outTypes []tensor.DType
	name     string
	*details
	region *region // the region that the node represents, or nil
}

// details are the fields of a node that few executions read.
type details struct {
	pos      int32        // index in the nodes of the compiled graph
	frame    int32        // index of the frame that the node runs in
	exit     int32        // index among the Exit nodes of the frame
	fusible  bool         // may be part of a region
	takesRef bool         // the first input may be a reference, although its type is a value
	async    kernel.Async // kern, if it is one
	op       string
	inTypes  []tensor.DType
	unused   []bool   // outputs without consumers
	sources  []string // what each input is connected to, if refs is set

	value        tensor.Tensor   // of a constant
	indexes      []tensor.Tensor // of a Merge: its second output for the first maxIndexes inputs
	index        int             // of an argument or a result
	child        int             // index of the frame that an Enter node enters
	invariant    bool            // the value of an Enter node goes to all iterations
	allowsUninit bool            // a reference may be to a variable without a value
	distributed  bool            // communicates with other tasks
	onHost       bool            // an argument or result of a GPU in the memory of the host
}

// edge is an outgoing edge of a node.
type edge struct {
	dst   *node
	count int32 // of dst
	slot  int32 // input slot of dst; control for a control edge
	out   int32 // output of the source; control for a control edge
	last  bool  // no later edge has this output
	merge bool  // dst is a Merge
}

const control = -1

// count counts the inputs of a node that have not arrived (pending) and those that have arrived
// dead. For a Merge, pending is twice the number of control inputs that have not arrived, plus one
// until a live input has arrived.
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
	reads := variableReads{}
	for gn := range g.Nodes() {
		if err := byID[gn.ID].compile(gn, reads, newKernel); err != nil {
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
		case n.waits: // started first, so that it waits while the rest runs
			p.roots = append(p.roots, n)
		default:
			roots = append(roots, n)
		}
	}
	p.roots = append(p.roots, roots...)
	return nil
}

func (n *node) compile(gn *graph.Node, reads variableReads, newKernel func(*graph.Node) (kernel.Kernel, error)) error {
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
		if in.DType().IsRef() || reads.of(in.Node) {
			n.refs = true
		}
	}
	n.takesRef = reads.of(gn) || n.op == "_Send" || n.op == "_HostSend"
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

// variableReads tells nodes through which programs read a variable behind a reference: an Identity,
// or an Enter or Switch that takes such a value into a loop or branch. The node forwards the
// reference, and each consumer reads the value when it runs. In TensorFlow the output shares the
// memory of the variable, so programs such as synchronous training rely on seeing an update that
// was made in between.
//
// It has only nodes of these operations. They can be as many in a row as a graph has nodes, so each
// is looked at once.
type variableReads map[*graph.Node]bool

// of reports whether a node is such a node.
func (r variableReads) of(n *graph.Node) bool {
	var row []*graph.Node
	reads, known := false, false
	for forwards(n) {
		if reads, known = r[n]; known {
			break
		}
		row = append(row, n)
		in := n.Input(0)
		if in.Node == nil || in.DType().IsRef() {
			reads = in.Node != nil
			break
		}
		n = in.Node
	}
	for _, of := range row {
		r[of] = reads
	}
	return reads
}

// forwards reports whether a node forwards its first input, which may be a reference.
func forwards(n *graph.Node) bool {
	return n.Op.Name == "Identity" || n.Op.Name == "Enter" || n.Op.Name == "Switch"
}

// maxIndexes bounds the tensors that a Merge keeps for its second output. A Merge has few inputs,
// but a client may send one with as many as a request holds.
const maxIndexes = 16

// compileKnown reads the attributes of an operation that has no kernel.
func (n *node) compileKnown(attrs opdef.Attrs) error {
	switch n.kind {
	case constant:
		value := attrs.Tensor("value")
		if value == nil || value.DType() != attrs.Type("dtype") {
			return status.InvalidArgumentf("Const value and dtype of '%s' do not match", n.name)
		}
		n.value = value.Retain()
	case merge:
		for i := range min(n.numIn, maxIndexes) {
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

// slabs are the arrays that the edges, types and marks of all nodes are cut from. Data of
// consecutive nodes is adjacent in memory.
type slabs struct {
	edges  []edge
	types  []tensor.DType
	unused []bool
}

// connect sets the edges of the node, sorted by output, and marks the outputs without consumers.
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
