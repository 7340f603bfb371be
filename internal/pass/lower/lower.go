// Package lower replaces functional control flow in a graph by primitive nodes.
//
// A call of a function becomes the body of the function. If and Case become Switch and Merge nodes
// around the bodies of their branches. While becomes a frame of Enter, Merge, Switch, NextIteration
// and Exit nodes. The resulting nodes are placed, split and run like the rest of the graph: the
// nodes of a body can be on several devices and tasks, a branch starts as soon as its inputs are
// available, and iterations of a loop overlap.
//
// Contract: [Lower] runs before placement. Fetches, targets and control edges that name a lowered
// node keep their meaning, because a placeholder keeps its name. A step computes the same values
// and effects as without lowering.
//
// If, Case and While are lowered if they have the attribute _lower_using_switch_merge, which
// clients set for sessions. A node that cannot be lowered stays, and its kernel calls the
// functions. This is the case for a function that must not be inlined, calls itself, is nested too
// deep, or would make the graph too large. The rules and the shape of the results are those of
// TensorFlow's lowering.
package lower

import (
	"cmp"
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxAdded is the default of Options.Limit.
const maxAdded = 1 << 16

// maxNested bounds the calls in calls that are inlined. The name of a node has the names of all
// calls around it, so a chain of functions would take memory with the square of its length.
const maxNested = 256

// nameShare is how many bytes of names the added nodes may have on average.
const nameShare = 512

// maxInputBytes bounds the names of the sources of added edges. The definition of a node, in which
// it is sent to its task, has a copy of the name for each edge.
const maxInputBytes = 1 << 30

// nodeMemory is about the memory of an added node and its edges in bytes, without its name.
const nodeMemory = 1 << 10

// lowerAttr is the attribute of the If, Case and While nodes to lower.
const lowerAttr = "_lower_using_switch_merge"

// Options select what is lowered and what remains of it.
type Options struct {
	// Fetchable keeps a placeholder with the same outputs under the name of each lowered node, so
	// that steps can fetch them. Otherwise the node under that name has no outputs, only control
	// edges.
	Fetchable bool
	// Direct also inlines nodes whose operation is a function. Their bodies run on the device of
	// the node.
	Direct bool
	// Marked also inlines functions that are marked as not to be inlined.
	Marked bool
	// CallsOnly keeps If, Case and While.
	CallsOnly bool
	// Limit is the approximate maximum of added nodes: functions that call others twice each would
	// grow exponentially. 0 selects 1<<16. Their names have at most 512 bytes on average.
	Limit int
}

// Needed reports whether a graph has nodes that [Lower] would try to lower.
func Needed(g *graph.Graph, o Options) bool {
	l := newLowerer(g, o)
	for n := range g.Nodes() {
		if l.rewrite(n) != nil {
			return true
		}
	}
	return false
}

// Lower rewrites g in place. The nodes must not be placed yet. After an error the graph must be
// discarded. It fails with ResourceExhausted if there is no memory for the nodes.
func Lower(g *graph.Graph, o Options) error {
	l := newLowerer(g, o)
	l.markUncertain(g, func(n *graph.Node) *graph.Node { return n })
	for id := 0; id < g.NumIDs(); id++ { // new nodes come last
		n := g.NodeByID(id)
		if n == nil || l.full() {
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

	given      int // node IDs of the original graph are below this
	added      int
	nameBytes  int                     // of the names of added nodes
	inputBytes int                     // of the names of the sources of added edges
	read       int                     // number of nodes of instantiated bodies
	names      map[string]int          // last suffix per taken name
	origins    map[*graph.Node]*origin // of nodes that were copied from bodies
	uncertain  map[*graph.Node]bool    // calls that may never run, or run several times in a step
	loose      map[*graph.Node]bool    // calls whose results need not wait for their effects
	followers  []*graph.Node
	from       *origin // origin of the current node
}

// origin is a function that was inlined, and the origin of its call.
type origin struct {
	function string
	from     *origin
	depth    int // number of functions that were inlined, including this one
}

// inlined returns the origin of the nodes of a function that a node of o calls.
func (o *origin) inlined(function string) *origin { return &origin{function, o, o.nested() + 1} }

// nested returns how many functions were inlined into each other.
func (o *origin) nested() int {
	if o == nil {
		return 0
	}
	return o.depth
}

func newLowerer(g *graph.Graph, o Options) *lowerer {
	o.Limit = cmp.Or(o.Limit, maxAdded)
	return &lowerer{
		g: g, o: o, given: g.NumIDs(), names: map[string]int{}, origins: map[*graph.Node]*origin{}, uncertain: map[*graph.Node]bool{},
		loose: map[*graph.Node]bool{},
	}
}

// rewrite returns the method that lowers a node, or nil.
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

// full reports whether no more nodes may be added.
func (l *lowerer) full() bool {
	return l.added >= l.o.Limit || l.nameBytes/nameShare >= l.o.Limit
}

// known reports whether the functions exist and are not being inlined around the current node
// already, and whether they may be inlined there.
func (l *lowerer) known(fns ...opdef.Func) bool {
	if l.from.nested() >= maxNested {
		return false
	}
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

// bodyOf returns the body of a function. It returns nil if the body is invalid: the kernel of the
// call reports the error. It also returns nil if the graph would become too large, or if too many
// nodes were instantiated in vain.
func (l *lowerer) bodyOf(fn opdef.Func) *graph.Body {
	f, ok := l.g.Library.Lookup(fn.Name)
	if !ok || l.full() || l.added+len(f.Def.Nodes) > l.o.Limit || l.read > 4*l.o.Limit {
		return nil
	}
	l.read += len(f.Def.Nodes)
	body, err := l.g.Library.InstantiateBody(fn, l.g.Ops())
	if err != nil {
		return nil
	}
	return body
}

// newName returns name, with a numeric suffix if it is taken.
func (l *lowerer) newName(name string) string {
	unique := name
	for l.g.Node(unique) != nil {
		l.names[name]++
		unique = name + "_" + strconv.Itoa(l.names[name])
	}
	return unique
}

// add adds a node under a new name. An input without a node stays open.
func (l *lowerer) add(name, op, device string, attrs opdef.Attrs, in ...graph.Output) *graph.Node {
	if l.err != nil {
		return nil
	}
	l.added++
	l.nameBytes += len(name)
	// a follower has its name and one in its colocation
	if !membudget.Take(nodeMemory + 2*int64(len(name))) {
		l.err = errNoMemory
		return nil
	}
	var n *graph.Node
	if n, l.err = l.g.Add(l.newName(name), op, attrs); l.err != nil {
		return nil
	}
	n.Device = device
	if l.from != nil {
		l.origins[n] = l.from
	}
	for i, src := range in {
		l.connect(src, n, i)
	}
	return n
}

// takeText asks for the memory of n bytes of text in an attribute or a device.
func (l *lowerer) takeText(n int) {
	if l.nameBytes += n; l.err == nil && !membudget.Take(int64(n)) {
		l.err = errNoMemory
	}
}

// attrMemory is about the memory of an attribute in a map, in bytes.
const attrMemory = 96

// takeAttrs asks for the memory of a copy of n attributes.
func (l *lowerer) takeAttrs(n int) {
	if l.err == nil && !membudget.Take(attrMemory*int64(n)) {
		l.err = errNoMemory
	}
}

var errNoMemory = status.ResourceExhaustedf("There is not enough memory to inline functions (--memory-limit).")

func (l *lowerer) connect(src graph.Output, dst *graph.Node, in int) {
	if l.err == nil && src.Node != nil {
		l.err = l.g.Connect(src, dst, in)
		l.countInput(src.Node)
	}
}

// countInput adds the name of the source of an edge to those that definitions will have.
func (l *lowerer) countInput(src *graph.Node) {
	if l.inputBytes += len(src.Name); l.inputBytes > maxInputBytes && l.err == nil {
		l.err = status.ResourceExhaustedf("The names of the inputs of inlined nodes have more than %d bytes.", maxInputBytes)
	}
}

// order adds a control edge, if both nodes exist.
func (l *lowerer) order(src, dst *graph.Node) {
	if l.err == nil && src != nil && dst != nil {
		l.g.ConnectControl(src, dst)
		l.countInput(src)
	}
}

// bool converts a value to a boolean.
func (l *lowerer) bool(name, device string, v graph.Output) graph.Output {
	if l.err != nil || v.DType().Base() == tensor.Bool {
		return v
	}
	return l.add(name, "ToBool", device, opdef.Attrs{"T": v.DType().Base()}, v).Out(0)
}

// follow marks a node to be colocated with the source of its first input.
func (l *lowerer) follow(n *graph.Node) {
	if n != nil {
		l.followers = append(l.followers, n)
	}
}

// colocate sets the colocation of the nodes that follow their input.
func (l *lowerer) colocate() {
	for _, n := range l.followers {
		n.SetAttr("_class", []string{"loc:@" + n.Input(0).Node.Name})
	}
}
