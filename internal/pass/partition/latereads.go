package partition

import "github.com/weft-ml/weft/graph"

// What is followed to find out what an operand depends on is bounded. Many updates may depend on
// one node with very many inputs.
const (
	lateSliceLimit = 256  // nodes
	lateEdgeLimit  = 1024 // inputs of these nodes
)

// lateRead is a read of a variable that must wait for an input of the node that uses it.
type lateRead struct {
	read, update *graph.Node
	operand      int // the input of update
}

// lateReads returns the reads that are part of an update such as v = v * decay, where decay comes
// from another part.
//
// A read has no other inputs, so it runs when the step begins. The assignment runs when the operand
// has arrived. What another step writes to the variable in between is lost: with an optimizer such
// as Adam, a lost update of the second moment divides by a value near zero. The read therefore
// waits for the operand, and only the multiplication lies between the read and the assignment.
//
// A read is left alone if the operand depends on it, if the operand may be dead or is in a loop, or
// if what the operand depends on is too large to tell.
func lateReads(g *graph.Graph, location []string) []lateRead {
	f := lateReadFinder{location: location, waits: map[*graph.Node][]*graph.Node{}}
	var late []lateRead
	for n := range g.Nodes() {
		if n.Op.Name != "AssignVariableOp" || n.NumInputs() < 2 {
			continue
		}
		update := n.Input(1).Node
		if update == nil || update.Op.Stateful || location[update.ID] != location[n.ID] {
			continue
		}
		read := readOf(n.Input(0), update)
		if read == nil || location[read.ID] != location[n.ID] {
			continue
		}
		for i, in := range update.Inputs() {
			if in.Node != nil && in.Node != read && f.arrivesLater(in.Node, read) {
				f.waits[read] = append(f.waits[read], in.Node)
				late = append(late, lateRead{read: read, update: update, operand: i})
			}
		}
	}
	return late
}

type lateReadFinder struct {
	location []string                      // of the nodes, by ID
	waits    map[*graph.Node][]*graph.Node // operands that late reads wait for, by read
}

// readOf returns the input of update that reads the variable of a handle, if update alone uses the
// value; else nil.
func readOf(handle graph.Output, update *graph.Node) *graph.Node {
	for _, in := range update.Inputs() {
		if in.Node == nil || in.Node.Op.Name != "ReadVariableOp" || in.Node.Input(0) != handle {
			continue
		}
		for _, e := range in.Node.OutEdges() {
			if !e.IsControl() && e.Dst != update {
				return nil
			}
		}
		return in.Node
	}
	return nil
}

// arrivesLater reports whether operand depends on another part and can run before read. The edges
// of the reads that were found count, so that two of them never wait for each other.
func (f *lateReadFinder) arrivesLater(operand, read *graph.Node) bool {
	remote, edges := false, 0
	seen := map[*graph.Node]bool{operand: true}
	next := []*graph.Node{operand}
	visit := func(n *graph.Node) {
		if n != nil && !seen[n] {
			seen[n] = true
			next = append(next, n)
		}
	}
	for len(next) > 0 {
		n := next[len(next)-1]
		next = next[:len(next)-1]
		edges += n.NumInputs() + len(n.ControlInputs()) + len(f.waits[n])
		if n == read || n.IsSwitch() || n.IsMerge() || n.IsEnter() || len(seen) > lateSliceLimit || edges > lateEdgeLimit {
			return false
		}
		remote = remote || f.location[n.ID] != f.location[read.ID]
		for _, in := range n.Inputs() {
			visit(in.Node)
		}
		for _, src := range n.ControlInputs() {
			visit(src)
		}
		for _, src := range f.waits[n] {
			visit(src)
		}
	}
	return remote
}

// delayReads adds the control edges of the found reads to their parts.
func (s *splitter) delayReads(reads []lateRead) {
	for _, r := range reads {
		part, read := s.partOf(r.read)
		part.ConnectControl(s.copies[r.update.ID].Input(r.operand).Node, read)
	}
}
