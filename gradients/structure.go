package gradients

import (
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/loopframe"
	"github.com/weft-ml/weft/op"
)

// structure describes the loops and conditions of the differentiated graph.
type structure struct {
	frames *loopframe.Frames
	loops  map[*loopframe.Frame]*loop
	// guards of the values of a node within its frame; for Enter nodes, of their inputs
	guards map[*graph.Node][]guard
	frame  map[*graph.Node]*loopframe.Frame
}

// A guard is a condition under which a value is alive: a branch of a condition must run.
type guard struct {
	pred op.Output
	side int // the output of the Switch nodes of pred that must be alive
}

// loop holds the nodes of a frame that form a loop.
type loop struct {
	frame  *loopframe.Frame
	enters []*graph.Node
	vars   []graph.LoopVar
	guards []guard // guards of the entering values, in the enclosing frame
}

// findStructure analyzes the whole graph.
func findStructure(g *graph.Graph) (*structure, error) {
	frames, err := loopframe.Find(g)
	if err != nil {
		return nil, err
	}
	order, err := g.InOrder()
	if err != nil {
		return nil, err
	}
	st := &structure{
		frames: frames, loops: map[*loopframe.Frame]*loop{}, guards: map[*graph.Node][]guard{}, frame: map[*graph.Node]*loopframe.Frame{},
	}
	for _, n := range order {
		st.frame[n] = frames.RunsIn[n.ID]
		switch {
		case n.IsEnter():
			st.addEnter(n)
		case n.IsExit() && st.frame[n] != nil:
			st.frame[n] = st.frame[n].Parent
		}
	}
	for _, n := range order {
		st.guards[n] = st.findGuards(n)
		if n.IsEnter() {
			l := st.loops[st.frame[n]]
			l.guards = union(l.guards, st.guards[n])
		}
	}
	return st, nil
}

// addEnter adds an Enter node to its loop, and a loop variable if the node starts one.
func (st *structure) addEnter(n *graph.Node) {
	child := st.frames.EnteredBy(n)
	if child == nil {
		return // unused
	}
	st.frame[n] = child
	l := st.loops[child]
	if l == nil {
		l = &loop{frame: child}
		st.loops[child] = l
	}
	l.enters = append(l.enters, n)
	if v, ok := n.LoopVar(); ok {
		l.vars = append(l.vars, v)
	}
}

// findGuards returns the guards of a node, given those of its inputs.
func (st *structure) findGuards(n *graph.Node) []guard {
	switch {
	case n.IsLoopMerge(), n.IsLoopSwitch():
		return nil
	case n.IsExit():
		if l := st.loops[st.frames.RunsIn[n.ID]]; l != nil {
			return l.guards
		}
		return nil
	case n.IsMerge():
		both := st.of(n.Input(0))
		for _, in := range n.Inputs()[1:] {
			other := st.of(in)
			both = slices.DeleteFunc(slices.Clone(both), func(g guard) bool { return !slices.Contains(other, g) })
		}
		return both
	}
	var all []guard
	for _, in := range n.Inputs() {
		all = union(all, st.of(in))
	}
	for _, c := range n.ControlInputs() {
		if !c.IsEnter() {
			all = union(all, st.guards[c])
		}
	}
	return all
}

// of returns the guards of a value within its frame.
func (st *structure) of(o op.Output) []guard {
	switch {
	case o.Node.IsEnter():
		return nil
	case o.Node.IsSwitch() && !o.Node.IsLoopSwitch():
		return union(st.guards[o.Node], []guard{{o.Node.Input(1), o.Index}})
	}
	return st.guards[o.Node]
}

// union returns all guards of a, then those of b that are not in a.
func union(a, b []guard) []guard {
	out := slices.Clip(a)
	for _, g := range b {
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// loopOf returns the loop that an Enter or Exit node belongs to.
func (st *structure) loopOf(n *graph.Node) *loop {
	if n.IsEnter() {
		return st.loops[st.frame[n]]
	}
	return st.loops[st.frames.RunsIn[n.ID]]
}
