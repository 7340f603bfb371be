// Package partition splits a placed graph into parts that run on separate devices or tasks.
//
// Every edge between two parts becomes a _Send node in the source part and a _Recv node in the
// destination part with the same key. A control edge sends an empty tensor. An output that several
// nodes of a part consume is sent once. A loop that spans parts gets a small additional loop in
// every part, driven by the condition of the original loop, so that each part executes the right
// number of receives.
//
// Contract: the parts together compute what the graph computes. Every transfer has one send and one
// receive in the same frame. The original graph is not changed.
//
// Names and attributes of the added nodes are those of TensorFlow, so a part can be sent to a
// worker of either implementation. See Yu et al., "Dynamic Control Flow in Large-Scale Machine
// Learning", EuroSys 2018.
package partition

import (
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// Options hold what a split needs besides the graph.
type Options struct {
	// Location returns the name of the part that a node belongs to: its assigned device, or the
	// task of that device.
	Location func(*graph.Node) string
	// NewName returns a name that starts with prefix and is unique among all parts.
	NewName func(prefix string) string
	// Incarnation returns the incarnation of a device.
	Incarnation func(device string) uint64
	// ControlFlow adds the loops for frames whose nodes are on several devices. It must be set for
	// the first split of a graph, and not for a further split of a part.
	ControlFlow bool
	// OnHost reports whether an output or an input of a node on a GPU is in the memory of the host;
	// nil if no node is on a GPU.
	OnHost func(n *graph.Node, output bool, index int) bool
	// BFloat16 sends float32 tensors as bfloat16, rounded towards zero.
	BFloat16 bool
}

// Split returns the parts of g by the name of their location. Every node must be assigned to a
// device. Split does not change g.
func Split(g *graph.Graph, o Options) (map[string]*graph.Graph, error) {
	if o.ControlFlow && hasControlFlow(g) {
		g = g.Copy()
		if err := spanDevices(g, &o); err != nil {
			return nil, err
		}
	}
	s := &splitter{
		o: &o, parts: map[string]*graph.Graph{}, location: make([]string, g.NumIDs()), copies: make([]*graph.Node, g.NumIDs()),
		received: map[transfer]*graph.Node{},
	}
	s.copyParts(g)
	for n := range g.Nodes() {
		if err := s.connect(n); err != nil {
			return nil, err
		}
	}
	if o.ControlFlow && len(s.parts) > 1 {
		s.delayReads(lateReads(g, s.location))
	}
	for _, part := range s.parts {
		pruneLibrary(part)
		s.completeIncarnations(part)
	}
	return s.parts, nil
}

type splitter struct {
	o         *Options
	parts     map[string]*graph.Graph
	location  []string                 // of the nodes of the whole graph, by ID
	copies    []*graph.Node            // of the nodes of the whole graph in their parts, by ID
	received  map[transfer]*graph.Node // by transfer
	transfers int
}

// transfer identifies an output (or, for index Control, the end) of a node that a part needs.
type transfer struct {
	src   *graph.Node
	index int
	to    string
	host  bool // to the memory of the host of a GPU
}

// copyParts creates the parts with their internal edges.
func (s *splitter) copyParts(g *graph.Graph) {
	var names []string           // of the parts
	members := [][]*graph.Node{} // nodes of the whole graph, by part
	number := map[string]int{}
	for n := range g.Nodes() {
		at := s.o.Location(n)
		s.location[n.ID] = at
		i, ok := number[at]
		if !ok {
			i = len(names)
			number[at], names, members = i, append(names, at), append(members, nil)
		}
		members[i] = append(members[i], n)
	}
	for i, part := range g.CopyParts(len(names), func(n *graph.Node) int { return number[s.location[n.ID]] }) {
		next := 0
		for c := range part.Nodes() { // in the order of the originals
			s.copies[members[i][next].ID] = c
			next++
		}
		s.parts[names[i]] = part
	}
}

// partOf returns the part of a node of the whole graph, and its copy there.
func (s *splitter) partOf(n *graph.Node) (*graph.Graph, *graph.Node) {
	return s.parts[s.location[n.ID]], s.copies[n.ID]
}

// connect adds the transfers for the edges to a node from other parts.
func (s *splitter) connect(n *graph.Node) error {
	if open := openInputs(n); open > 0 {
		return status.InvalidArgumentf("Incomplete graph, missing %d inputs for %s", open, n.Name)
	}
	part, dst := s.partOf(n)
	c := &consumer{s: s, n: n, part: part, dst: dst, loop: loopOf(n)}
	for i, in := range n.Inputs() {
		e := graph.Edge{Src: in.Node, SrcOut: in.Index, Dst: n, DstIn: i}
		recv, err := c.receive(e)
		if err != nil {
			return err
		}
		if recv == nil {
			continue
		}
		if err := part.Connect(recv.Out(0), dst, i); err != nil {
			return err
		}
	}
	for _, src := range n.ControlInputs() {
		recv, err := c.receive(graph.Edge{Src: src, SrcOut: graph.Control, Dst: n, DstIn: graph.Control})
		if err != nil {
			return err
		}
		if recv != nil {
			part.ConnectControl(recv, dst)
		}
	}
	return c.finish()
}

func openInputs(n *graph.Node) int {
	open := 0
	for _, in := range n.Inputs() {
		if in.Node == nil {
			open++
		}
	}
	return open
}

// consumer is a node whose inputs are being connected.
type consumer struct {
	s    *splitter
	n    *graph.Node
	part *graph.Graph
	dst  *graph.Node // the copy of n in part
	// Merge of the whole graph that drives the receives of n; nil outside of loops
	loop *graph.Node

	refs    []*graph.Node // receives of references: they read the variable when they run
	others  []*graph.Node // sources of the other inputs, in part
	driven  bool          // the edge from loop was moved to receives
	waiting bool          // an edge from another device is left for a further split
}

// receive returns the node from which n takes an edge of another part, or nil for an edge within
// its part.
func (c *consumer) receive(e graph.Edge) (*graph.Node, error) {
	isRef := !e.IsControl() && e.Src.OutTypes[e.SrcOut].IsRef()
	if c.s.location[e.Src.ID] == c.s.location[c.n.ID] {
		if !isRef && e.Src != c.loop {
			c.others = append(c.others, c.s.copies[e.Src.ID])
		}
		c.waiting = c.waiting || e.Src.Assigned != c.n.Assigned
		return nil, nil
	}
	key := transfer{e.Src, e.SrcOut, c.s.location[c.n.ID], c.s.toHost(e)}
	if recv, ok := c.s.received[key]; ok {
		c.others = append(c.others, recv)
		c.waiting = c.waiting || recv.Assigned != c.n.Assigned
		return recv, nil
	}
	recv, out, err := c.s.transfer(e)
	if err != nil {
		return nil, err
	}
	if c.loop != nil {
		c.part.ConnectControl(c.s.copies[c.loop.ID], recv)
		c.driven = true
	}
	if isRef {
		c.refs = append(c.refs, recv)
	} else {
		c.s.received[key] = out
		c.others = append(c.others, out)
	}
	return out, nil
}

// finish adds the edges that depend on all inputs of the node. A reference is read after all other
// inputs have arrived, as it would be without the split. The edge from loop has been moved to the
// receives. It also stays at the node if a further split will create more receives.
func (c *consumer) finish() error {
	others := c.others
	if len(c.refs)*len(others) > maxRefEdges {
		all, err := c.s.add(c.part, c.n.Name+"/inputs", "NoOp", c.n.Assigned, nil)
		if err != nil {
			return err
		}
		for _, src := range others {
			c.part.ConnectControl(src, all)
		}
		others = []*graph.Node{all}
	}
	for _, recv := range c.refs {
		for _, src := range others {
			c.part.ConnectControl(src, recv)
		}
	}
	if c.driven && !c.waiting {
		c.part.DisconnectControl(c.s.copies[c.loop.ID], c.dst)
	}
	return nil
}

// maxRefEdges bounds the edges from the other inputs of a node to the receives of its references. A
// node with more of them gets a node between the two.
const maxRefEdges = 1 << 12

// loopPrefix starts the names of the nodes that drive the receives of loops.
const loopPrefix = "_cloop"

// loopOf returns the control input of a node that drives its receives, or nil.
func loopOf(n *graph.Node) *graph.Node {
	for _, src := range n.ControlInputs() {
		if src.IsMerge() && strings.HasPrefix(src.Name, loopPrefix) {
			return src
		}
	}
	return nil
}
