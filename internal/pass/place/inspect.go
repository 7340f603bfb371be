package place

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A call of a function that returns resources says through the function's body where its arguments
// and results have to be. The body's groups are found as those of a graph are; arguments and
// results that are in one group there join the inputs and consumers of the call here.

// bodies are the functions that were looked into.
type bodies struct {
	seen  map[string]*bodyGroups // by the function with its attributes
	stack []call                 // the calls that lead to the graph at hand
}

type call struct {
	caller   string // function that the call is in; "" for the graph itself
	node     string
	function string
}

// bodyGroups are the groups that the arguments and results of a function are in.
type bodyGroups struct {
	args, rets []int // index in groups
	groups     []group
}

// needsInspection reports whether a node calls a function that returns resources.
func needsInspection(n *graph.Node) bool {
	if n.Op.Name != "PartitionedCall" && n.Op.Name != "StatefulPartitionedCall" {
		return false
	}
	return slices.Contains(n.OutTypes, tensor.Resource)
}

// ends are the inputs and outputs of the calls that are looked into. Each stands for a node of its
// own, so that calls which pass resources to each other need not be on one device themselves.
type ends struct {
	in  map[*graph.Node][]member
	out map[graph.Edge]member
	all []member
}

// addEnds makes the ends of a call.
func (p *placer) addEnds(n *graph.Node) {
	for i := range n.NumInputs() {
		name := n.Name
		if src := n.Input(i).Node; src != nil {
			name = src.Name + "_" + name
		}
		p.ends.in[n] = append(p.ends.in[n], p.addEnd(name))
	}
	for _, e := range n.OutEdges() {
		if !e.IsControl() {
			p.ends.out[e] = p.addEnd(n.Name + "_" + e.Dst.Name)
		}
	}
}

func (p *placer) addEnd(name string) member {
	e := member{id: len(p.groups), name: name, op: "Identity"}
	p.groups = append(p.groups, newGroup(e.id, p.allTypes()))
	p.ends.all = append(p.ends.all, e)
	return e
}

// sides returns what is joined where an edge cannot cross devices: its nodes, or the ends of those
// that are looked into.
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

// end is an input or output of a call in the group that the function's body demands.
type end struct {
	member
	resource bool // gives a resource to its consumer
}

// applyBody joins and limits the ends of a call as the body of its function demands.
func (p *placer) applyBody(n *graph.Node) error {
	body, err := p.lookInto(n)
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

// joinEnds makes a group of the ends whose arguments and results are in one group, and limits it to
// what that one can have.
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
		if len(members) == 0 { // results that nothing consumes
			continue
		}
		if err := p.groups[p.root(members[0].id)].limitTo(&limits[i], p.o.Soft); err != nil {
			return err
		}
	}
	return nil
}

// limitTo adds what the group of a function's body asks for.
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

// lookInto returns the groups of the function that a node calls.
func (p *placer) lookInto(n *graph.Node) (*bodyGroups, error) {
	fn := n.Attrs.Func("f")
	if err := p.bodies.checkRecursion(n, fn.Name); err != nil {
		return nil, err
	}
	key := opdef.FormatAttr(fn)
	if found, ok := p.bodies.seen[key]; ok {
		return found, nil
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

// groupsOf numbers the groups of arguments and results.
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

// current returns the function whose body is being looked into; "" at the outermost.
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
