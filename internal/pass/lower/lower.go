// Package lower replaces functional control flow in a graph by the nodes that it stands for.
//
// A call of a function becomes the function's body, If and Case become Switch and Merge nodes
// around the bodies of their branches, and While becomes a frame of Enter, Merge, Switch,
// NextIteration and Exit nodes. What was one node is then placed, split and run like the rest of
// the graph: the nodes of a body can be on several devices and tasks, a branch starts as soon as
// its inputs are there, and iterations of a loop overlap.
//
// If, Case and While are lowered if their attribute _lower_using_switch_merge says so, as it does
// where clients build them for sessions. A node that cannot be lowered stays, and its kernel calls
// the functions: where one may not be inlined, calls itself, or would make the graph too large. The
// rules and the shape of the results are those of TensorFlow's lowering.
package lower

import (
	"cmp"
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxAdded is the default of Options.Limit.
const maxAdded = 1 << 16

// lowerAttr is the attribute of If, Case and While nodes that are to be lowered.
const lowerAttr = "_lower_using_switch_merge"

// Options say what is lowered and what remains of it.
type Options struct {
	// Fetchable leaves a node with the same outputs under the name of each node that is lowered,
	// for steps to fetch. Otherwise what is left under the name can only be waited for.
	Fetchable bool
	// Direct inlines nodes whose operation is itself a function too. Their bodies run on the device
	// of the node.
	Direct bool
	// Marked inlines functions too that are marked as not to be inlined.
	Marked bool
	// CallsOnly leaves If, Case and While as they are.
	CallsOnly bool
	// Limit bounds the nodes that are added, about: functions that call others twice each would
	// grow exponentially. 0 is for 1<<16.
	Limit int
}

// Needed reports whether a graph has nodes that [Lower] would look at.
func Needed(g *graph.Graph, o Options) bool {
	l := newLowerer(g, o)
	for n := range g.Nodes() {
		if l.rewrite(n) != nil {
			return true
		}
	}
	return false
}

// Lower rewrites g in place. Nodes are not placed yet. After an error the graph is of no use.
func Lower(g *graph.Graph, o Options) error {
	l := newLowerer(g, o)
	l.markUncertain(g, func(n *graph.Node) *graph.Node { return n })
	for id := 0; id < g.NumIDs(); id++ { // new nodes come last
		n := g.NodeByID(id)
		if n == nil || l.added >= l.o.Limit {
			continue
		}
		if rewrite := l.rewrite(n); rewrite != nil {
			l.from = l.origins[n]
			rewrite(n)
		}
		if l.err != nil {
			return status.AtNode(l.err, n.Name)
		}
	}
	l.colocate()
	return nil
}

// lowerer rewrites one graph. After an error its methods do nothing.
type lowerer struct {
	g   *graph.Graph
	o   Options
	err error

	given     int // nodes of the graph as it was have smaller IDs
	added     int
	read      int                     // nodes of bodies that were looked at
	names     map[string]int          // last number after a name that is taken
	origins   map[*graph.Node]*origin // of nodes that come from bodies
	uncertain map[*graph.Node]bool    // calls that may never run, or run several times in a step
	loose     map[*graph.Node]bool    // calls whose results need not wait for their effects
	followers []*graph.Node
	from      *origin // of the node at hand
}

// origin is a function that was inlined, and where its call came from.
type origin struct {
	function string
	from     *origin
}

func newLowerer(g *graph.Graph, o Options) *lowerer {
	o.Limit = cmp.Or(o.Limit, maxAdded)
	return &lowerer{
		g: g, o: o, given: g.NumIDs(), names: map[string]int{}, origins: map[*graph.Node]*origin{}, uncertain: map[*graph.Node]bool{},
		loose: map[*graph.Node]bool{},
	}
}

// rewrite returns what lowers a node, or nil.
func (l *lowerer) rewrite(n *graph.Node) func(*graph.Node) {
	switch n.Op.Name {
	case "PartitionedCall", "StatefulPartitionedCall":
		return l.lowerCall
	}
	if _, ok := l.g.Library.Lookup(n.Op.Name); ok && l.o.Direct {
		return l.lowerCall
	}
	if l.o.CallsOnly || !n.Attrs.Bool(lowerAttr) {
		return nil
	}
	switch n.Op.Name {
	case "If", "StatelessIf":
		return l.lowerIf
	case "Case", "StatelessCase":
		return l.lowerCase
	case "While", "StatelessWhile":
		return l.lowerWhile
	}
	return nil
}

// known reports whether the functions exist and are not being inlined already around the node at
// hand.
func (l *lowerer) known(fns ...opdef.Func) bool {
	for _, fn := range fns {
		if _, ok := l.g.Library.Lookup(fn.Name); !ok {
			return false
		}
		for o := l.from; o != nil; o = o.from {
			if o.function == fn.Name {
				return false
			}
		}
	}
	return true
}

// bodyOf returns the body of a function, nil if it cannot be made: whoever runs the call will be
// told why. It also is nil where the graph would become too large, or so many bodies were made in
// vain that more would take too long.
func (l *lowerer) bodyOf(fn opdef.Func) *graph.Body {
	f, ok := l.g.Library.Lookup(fn.Name)
	if !ok || l.added+len(f.Def.Nodes) > l.o.Limit || l.read > 4*l.o.Limit {
		return nil
	}
	l.read += len(f.Def.Nodes)
	body, err := l.g.Library.InstantiateBody(fn, l.g.Ops())
	if err != nil {
		return nil
	}
	return body
}

// newName returns name, or name with a number if it is taken.
func (l *lowerer) newName(name string) string {
	unique := name
	for l.g.Node(unique) != nil {
		l.names[name]++
		unique = name + "_" + strconv.Itoa(l.names[name])
	}
	return unique
}

// add adds a node under a new name, or with an open input where in has no node.
func (l *lowerer) add(name, op, device string, attrs opdef.Attrs, in ...graph.Output) *graph.Node {
	if l.err != nil {
		return nil
	}
	var n *graph.Node
	if n, l.err = l.g.Add(l.newName(name), op, attrs); l.err != nil {
		return nil
	}
	l.added++
	n.Device = device
	if l.from != nil {
		l.origins[n] = l.from
	}
	for i, src := range in {
		l.connect(src, n, i)
	}
	return n
}

func (l *lowerer) connect(src graph.Output, dst *graph.Node, in int) {
	if l.err == nil && src.Node != nil {
		l.err = l.g.Connect(src, dst, in)
	}
}

// order adds a control edge between nodes that are there.
func (l *lowerer) order(src, dst *graph.Node) {
	if l.err == nil && src != nil && dst != nil {
		l.g.ConnectControl(src, dst)
	}
}

// bool returns the condition that a value stands for.
func (l *lowerer) bool(name, device string, v graph.Output) graph.Output {
	if l.err != nil || v.DType().Base() == tensor.Bool {
		return v
	}
	return l.add(name, "ToBool", device, opdef.Attrs{"T": v.DType().Base()}, v).Out(0)
}

// follow makes a node stay with what its first input comes from when all is lowered.
func (l *lowerer) follow(n *graph.Node) {
	if n != nil {
		l.followers = append(l.followers, n)
	}
}

// colocate asks for the devices of nodes that follow their input.
func (l *lowerer) colocate() {
	for _, n := range l.followers {
		n.SetAttr("_class", []string{"loc:@" + n.Input(0).Node.Name})
	}
}
