// Package partition splits a placed graph into parts that run apart from each other.
//
// Every edge between two parts becomes a _Send node in the one and a _Recv node in the other, which
// agree on a key; a control edge sends an empty tensor. What several nodes of a part need of one
// output is sent once. Loops that span parts get a small loop of their own in every part, driven by
// the condition of the original, so that each part knows how often to receive.
//
// Names and attributes of the nodes are those that TensorFlow makes, so that a part can be given to
// a worker of either kind. See Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning",
// EuroSys 2018.
package partition

import (
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// Options are what a split needs beside the graph.
type Options struct {
	// Location returns the part that a node belongs to: the device it is assigned to, or the task
	// of that.
	Location func(*graph.Node) string
	// NewName returns a name that begins with prefix and that no node of any part has.
	NewName func(prefix string) string
	// Incarnation returns the number of the life that a device is in.
	Incarnation func(device string) uint64
	// ControlFlow makes loops work whose nodes are on several devices. It must be set for the first
	// split of a graph, and not for another split of one of its parts.
	ControlFlow bool
	// BFloat16 makes floats cross in half as many bytes, rounded towards zero.
	BFloat16 bool
}

// Split returns the parts of g by location. Every node of g must be assigned to a device; g itself
// is not changed.
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
	for _, part := range s.parts {
		if err := pruneLibrary(part); err != nil {
			return nil, err
		}
		s.completeIncarnations(part)
	}
	return s.parts, nil
}

type splitter struct {
	o         *Options
	parts     map[string]*graph.Graph
	location  []string                 // of the nodes of the whole graph, by ID
	copies    []*graph.Node            // of the same, in their parts
	received  map[transfer]*graph.Node // where a transfer arrives
	transfers int
}

// transfer is an output, or the end of a node for index Control, that a part needs.
type transfer struct {
	src   *graph.Node
	index int
	to    string
}

// copyParts makes the parts, with the edges inside of them.
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

// partOf returns the part that a node of the whole graph is in, and its copy there.
func (s *splitter) partOf(n *graph.Node) (*graph.Graph, *graph.Node) {
	return s.parts[s.location[n.ID]], s.copies[n.ID]
}

// connect makes the edges to a node that come from other parts.
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
	c.finish()
	return nil
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

// consumer is a node that is being connected.
type consumer struct {
	s    *splitter
	n    *graph.Node
	part *graph.Graph
	dst  *graph.Node // the copy of n in part
	// in the whole graph, the Merge that drives the receives of n in a loop; nil outside of loops
	loop *graph.Node

	refs    []*graph.Node // receives of references: n reads the variable when they run
	others  []*graph.Node // in part, what the other inputs come from
	driven  bool          // loop drives receives that were made for n
	waiting bool          // an edge from another device is left for a later split
}

// receive returns the node from which n takes an edge that comes from another part; nil for an edge
// within its part.
func (c *consumer) receive(e graph.Edge) (*graph.Node, error) {
	isRef := !e.IsControl() && e.Src.OutTypes[e.SrcOut].IsRef()
	if c.s.location[e.Src.ID] == c.s.location[c.n.ID] {
		if !isRef && e.Src != c.loop {
			c.others = append(c.others, c.s.copies[e.Src.ID])
		}
		c.waiting = c.waiting || e.Src.Assigned != c.n.Assigned
		return nil, nil
	}
	key := transfer{e.Src, e.SrcOut, c.s.location[c.n.ID]}
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

// finish adds what depends on all inputs of the node. A reference is read when all other inputs are
// there, as it would be if the edge did not cross parts. The edge that drives receives in a loop
// has gone to them; it stays with the node as long as edges are left that a later split makes
// receives of.
func (c *consumer) finish() {
	for _, recv := range c.refs {
		for _, src := range c.others {
			c.part.ConnectControl(src, recv)
		}
	}
	if c.driven && !c.waiting {
		c.part.DisconnectControl(c.s.copies[c.loop.ID], c.dst)
	}
}

// loopPrefix begins the names of the nodes that drive the receives of loops.
const loopPrefix = "_cloop"

// loopOf returns the Merge among the control inputs of a node that drives its receives.
func loopOf(n *graph.Node) *graph.Node {
	for _, src := range n.ControlInputs() {
		if src.IsMerge() && strings.HasPrefix(src.Name, loopPrefix) {
			return src
		}
	}
	return nil
}
