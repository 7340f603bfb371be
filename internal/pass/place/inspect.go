package place

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A call of a function that returns resources is constrained by the body of the function. The
// groups of the body are computed like those of a graph. Arguments and results that share a group
// there make the corresponding inputs and consumers of the call share a group here.

// bodies caches the groups of inspected functions.
type bodies struct {
	seen  map[string]*bodyGroups // by function and attributes
	stack []call                 // calls that lead to the current graph
	// functions that were inspected, and how many times in addition, with other attributes
	first    map[string]bool
	variants int
}

// maxVariants bounds the bodies of functions that are inspected with further attributes. A function
// that calls another one twice, with different attributes that contain its own, doubles the number
// of bodies.
const maxVariants = 10_000

// count adds a body. It returns an error if there are too many, or no memory for it.
func (b *bodies) count(fn string, f *graph.Function) error {
	if b.first[fn] {
		b.variants++
	}
	b.first[fn] = true
	if b.variants > maxVariants {
		return status.ResourceExhaustedf("Functions are called with more than %d combinations of attributes, "+
			"with function {{function_node %s}}.", maxVariants, fn)
	}
	if !membudget.Take(int64(len(f.Def.Nodes)+1) * nodeMemory) {
		return status.ResourceExhaustedf("There is not enough memory to place function {{function_node %s}} (--memory-limit).", fn)
	}
	return nil
}

// nodeMemory is about the memory of a node of a body while it is inspected, in bytes.
const nodeMemory = 1 << 10

type call struct {
	caller   string // function that contains the call; "" for the graph itself
	node     string
	function string
}

// bodyGroups holds the groups of the arguments and results of a function.
type bodyGroups struct {
	args, rets []int // indexes of groups
	groups     []group
}

// needsInspection reports whether a node calls a function that returns resources.
func needsInspection(n *graph.Node) bool {
	if n.Op.Name != "PartitionedCall" && n.Op.Name != "StatefulPartitionedCall" {
		return false
	}
	return slices.Contains(n.OutTypes, tensor.Resource)
}

// ends are the inputs and outputs of inspected calls. Each is represented by a virtual node, so
// calls that pass resources to each other need not be on one device.
type ends struct {
	in  map[*graph.Node][]member
	out map[graph.Edge]member
	all []member
}

// addEnds adds the ends of a call.
func (p *placer) addEnds(n *graph.Node) {
	for i := range n.NumInputs() {
		p.ends.in[n] = append(p.ends.in[n], p.addEnd(n.Input(i).Node, n))
	}
	for _, e := range n.OutEdges() {
		if !e.IsControl() {
			p.ends.out[e] = p.addEnd(n, e.Dst)
		}
	}
}

func (p *placer) addEnd(src, dst *graph.Node) member {
	e := member{id: len(p.groups), src: src, dst: dst, op: "Identity"}
	p.groups = append(p.groups, newGroup(e.id, p.allTypes()))
	p.ends.all = append(p.ends.all, e)
	return e
}

// sides returns the members to join for an edge that cannot cross devices: its nodes, or the ends
// of inspected calls.
func (p *placer) sides(e graph.Edge) (src, dst member) {
	src, dst = memberOf(e.Src), memberOf(e.Dst)
	if out, ok := p.ends.out[e]; ok {
		src = out
	}
	if in, ok := p.ends.in[e.Dst]; ok {
		dst = in[e.DstIn]
	}
	return src, dst
}

// end is an input or output of a call with the group that the function's body requires.
type end struct {
	member
	resource bool // passes a resource to its consumer
}

// applyBody joins and constrains the ends of a call as the body of its function requires.
func (p *placer) applyBody(n *graph.Node) error {
	body, err := p.inspect(n)
	if err != nil {
		return err
	}
	if len(body.args) != n.NumInputs() || len(body.rets) != len(n.OutTypes) {
		return status.Internalf("Cannot apply input/output device constraints to node {{node %s}}: it has %d inputs and %d outputs, and "+
			"its function has %d and %d", n.Name, n.NumInputs(), len(n.OutTypes), len(body.args), len(body.rets))
	}
	groups := make([][]end, len(body.groups))
	for i, e := range p.ends.in[n] {
		at := body.args[i]
		groups[at] = append(groups[at], end{e, false})
	}
	for _, e := range n.OutEdges() {
		if !e.IsControl() {
			at := body.rets[e.SrcOut]
			groups[at] = append(groups[at], end{p.ends.out[e], n.OutTypes[e.SrcOut] == tensor.Resource})
		}
	}
	return p.joinEnds(groups, body.groups)
}

// joinEnds joins the ends whose arguments and results share a group, and applies the constraints of
// that group.
func (p *placer) joinEnds(groups [][]end, limits []group) error {
	for i, members := range groups {
		for _, e := range members {
			join := p.join
			if e.resource {
				join = p.joinEdge
			}
			if err := join(members[0].member, e.member); err != nil {
				return err
			}
		}
		if len(members) == 0 { // results without consumers
			continue
		}
		if err := p.groups[p.root(members[0].id)].limitTo(&limits[i], p.o.Soft); err != nil {
			return err
		}
	}
	return nil
}

// limitTo adds the requests of the group of a function body.
func (g *group) limitTo(b *group, soft bool) error {
	var err error
	if soft {
		g.requested, err = g.requested.MergeSoft(b.requested)
	} else {
		g.requested, err = g.requested.Merge(b.requested)
	}
	if err != nil {
		return err
	}
	if g.resource, err = g.resource.Merge(b.resource); err != nil {
		return err
	}
	if types := intersect(g.types, b.types); len(types) > 0 {
		g.types = types
	}
	return nil
}

// inspect returns the groups of the function that a node calls.
func (p *placer) inspect(n *graph.Node) (*bodyGroups, error) {
	fn := n.Attrs.Func("f")
	if err := p.bodies.checkRecursion(n, fn.Name); err != nil {
		return nil, err
	}
	key := fn.Key()
	if found, ok := p.bodies.seen[key]; ok {
		return found, nil
	}
	if f, ok := p.g.Library.Lookup(fn.Name); ok {
		if err := p.bodies.count(fn.Name, f); err != nil {
			return nil, err
		}
	}
	body, err := p.g.Library.InstantiateBody(fn, p.g.Ops())
	if err != nil {
		return nil, err
	}
	p.bodies.stack = append(p.bodies.stack, call{p.bodies.current(), n.Name, fn.Name})
	defer func() { p.bodies.stack = p.bodies.stack[:len(p.bodies.stack)-1] }()
	inner := newPlacer(body.Graph, p.o, p.devices, p.bodies)
	if err := inner.buildGroups(); err != nil {
		return nil, err
	}
	found := inner.groupsOf(body)
	p.bodies.seen[key] = found
	return found, nil
}

// groupsOf returns the groups of the arguments and results of a body.
func (p *placer) groupsOf(body *graph.Body) *bodyGroups {
	out := &bodyGroups{}
	byRoot := map[int]int{}
	number := func(nodes []*graph.Node) []int {
		indices := make([]int, len(nodes))
		for i, n := range nodes {
			root := p.root(n.ID)
			at, ok := byRoot[root]
			if !ok {
				at = len(out.groups)
				byRoot[root] = at
				out.groups = append(out.groups, p.groups[root])
			}
			indices[i] = at
		}
		return indices
	}
	out.args, out.rets = number(body.Args), number(body.Rets)
	return out
}

// current returns the function whose body is being inspected, or "" for the graph itself.
func (b *bodies) current() string {
	if len(b.stack) == 0 {
		return ""
	}
	return b.stack[len(b.stack)-1].function
}

func (b *bodies) checkRecursion(n *graph.Node, function string) error {
	for _, c := range b.stack {
		if c.function == function {
			return status.Unimplementedf("Recursive function calls are not supported. Node {{node %s}} inside the body of {{function_node %s}} "+
				"calls function {{function_node %s}} which is already present in the call stack:\n  %s",
				n.Name, b.current(), function, b.describe())
		}
	}
	return nil
}

func (b *bodies) describe() string {
	var lines []string
	for _, c := range b.stack {
		where := "Graph"
		if c.caller != "" {
			where = "Function {{function_node " + c.caller + "}}"
		}
		lines = append(lines, where+" contains node {{node "+c.node+"}}", "Node {{node "+c.node+"}} calls function {{function_node "+c.function+"}}")
	}
	return strings.Join(lines, "\n  ")
}
