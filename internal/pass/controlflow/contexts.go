// Package controlflow finds the loops and conditional branches that the nodes of a graph belong to.
//
// Contract: [Find] does not change the graph. It returns the outermost contexts in topological
// order, each with its nested contexts and its nodes. A node is listed in its innermost context
// only.
//
// TensorFlow's Python client stores such contexts together with a graph and writes them to
// MetaGraphs. Without them it cannot differentiate an imported graph. This package derives the
// contexts from the graph instead. A loop is a frame with all nodes that run in it. A branch
// consists of the nodes that are live with one output of a condition's Switch nodes, up to the
// Merge nodes that join the branches.
package controlflow

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/loopframe"
)

// Context is a loop or a branch. Exactly one of Loop and Branch is set.
type Context struct {
	Parent *Context // nil for an outermost context
	Nested []*Context
	// Nodes are the nodes in the context that are in no nested context, in topological order. They
	// include the nodes through which values enter, and the Exit nodes of a loop.
	Nodes  []*graph.Node
	Loop   *Loop
	Branch *Branch
}

// Loop describes a frame of the graph.
type Loop struct {
	Frame string
	Cond  *graph.Node // LoopCond
	Vars  []Var       // in the order of the Enter nodes
	// Enter nodes of loop-invariant inputs, whose value is the same in all iterations
	Invariants []*graph.Node
}

// Var is a variable of a loop.
type Var struct {
	graph.LoopVar
	Body graph.Output // value of the variable in the body
}

// Branch is one side of a condition.
type Branch struct {
	Pred  graph.Output
	Pivot *graph.Node // live if the branch is taken
	Side  int         // 1 for the branch taken if Pred is true, otherwise 0
	// Switch nodes of values from outside the branch
	Captures []*graph.Node
}

// Find returns the outermost contexts of a graph in topological order. It returns an error if the
// frames of the graph are inconsistent.
func Find(g *graph.Graph) ([]*Context, error) {
	frames, err := loopframe.Find(g)
	if err != nil {
		return nil, err
	}
	order, err := g.InOrder()
	if err != nil {
		return nil, err
	}
	f := &finder{
		frames: frames, of: map[*graph.Node]*Context{}, loops: map[*loopframe.Frame]*Context{}, enters: map[*loopframe.Frame][]*graph.Node{},
		conds: findConds(order), branches: map[side]*Context{},
	}
	for _, n := range order {
		if n.IsEnter() {
			frame := f.frames.EnteredBy(n)
			f.enters[frame] = append(f.enters[frame], n)
		}
	}
	for _, n := range order {
		if c := f.at(n); c != nil {
			c.take(n)
		}
	}
	return f.top, nil
}

// take adds a node to the context.
func (c *Context) take(n *graph.Node) {
	c.Nodes = append(c.Nodes, n)
	switch {
	case n.IsEnter() && c.Loop != nil:
		if v, ok := variable(n); ok {
			c.Loop.Vars = append(c.Loop.Vars, v)
		} else {
			c.Loop.Invariants = append(c.Loop.Invariants, n)
		}
	case n.IsSwitch() && c.Branch != nil && n.Input(1) == c.Branch.Pred:
		c.Branch.Captures = append(c.Branch.Captures, n)
	}
}

// finder finds the contexts of nodes. The context of a node follows from those of its inputs.
type finder struct {
	frames   *loopframe.Frames
	of       map[*graph.Node]*Context // contexts of the nodes visited so far
	loops    map[*loopframe.Frame]*Context
	enters   map[*loopframe.Frame][]*graph.Node
	conds    conds
	branches map[side]*Context
	top      []*Context
}

// add adds a context to its parent, or to the outermost contexts.
func (f *finder) add(c *Context) *Context {
	if c.Parent == nil {
		f.top = append(f.top, c)
	} else {
		c.Parent.Nested = append(c.Parent.Nested, c)
	}
	return c
}

// at returns the context of a node, or nil for none. If callers ask in topological order, the
// recursion is shallow.
func (f *finder) at(n *graph.Node) *Context {
	c, known := f.of[n]
	if !known {
		c = f.find(n)
		f.of[n] = c
	}
	return c
}

func (f *finder) find(n *graph.Node) *Context {
	switch {
	case n.IsEnter():
		if c := f.loop(f.frames.EnteredBy(n)); c != nil {
			return c
		}
	case n.IsExit(), n.IsLoopMerge(), n.IsLoopSwitch():
		return f.loop(f.frames.RunsIn[n.ID])
	case n.IsMerge():
		all := f.outside(n.Input(0))
		for _, in := range n.Inputs()[1:] {
			all = common(all, f.outside(in))
		}
		return all
	case n.IsSwitch():
		if c := f.capture(n); c != nil {
			return c
		}
	}
	return f.around(n)
}

// around returns the innermost context of the inputs of a node.
func (f *finder) around(n *graph.Node) *Context {
	var c *Context
	for _, in := range n.Inputs() {
		c = inner(c, f.outside(in))
	}
	for _, in := range n.ControlInputs() {
		if in.IsExit() {
			c = inner(c, f.parent(in))
		} else {
			c = inner(c, f.at(in))
		}
	}
	return c
}

// outside returns the context of the consumers of a value.
func (f *finder) outside(o graph.Output) *Context {
	switch {
	case o.Node.IsExit():
		return f.parent(o.Node)
	case o.Node.IsSwitch() && !o.Node.IsLoopSwitch():
		if c := f.branch(f.conds[o.Node], o.Index); c != nil {
			return c
		}
	}
	return f.at(o.Node)
}

// parent returns the parent of the context of a node.
func (f *finder) parent(n *graph.Node) *Context {
	if c := f.at(n); c != nil {
		return c.Parent
	}
	return nil
}

// inner returns the inner of two contexts that are nested in each other.
func inner(a, b *Context) *Context {
	if a == nil || a.depth() < b.depth() {
		return b
	}
	return a
}

func (c *Context) depth() int {
	n := 0
	for ; c != nil; c = c.Parent {
		n++
	}
	return n
}

// common returns the innermost context that contains both.
func common(a, b *Context) *Context {
	for a != b {
		if a.depth() >= b.depth() {
			a = a.Parent
		} else {
			b = b.Parent
		}
	}
	return a
}
