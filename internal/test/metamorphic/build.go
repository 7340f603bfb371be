package metamorphic

import (
	"fmt"
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Graph is a program as a graph of a client.
type Graph struct {
	Def     *graph.Def
	Init    []string // nodes to run once, before the first step
	Feeds   []string // outputs to feed, in the order of the program's feeds
	Fetches []string // outputs to fetch: the yields of the program, then its variables
}

// Options select how a graph is built.
type Options struct {
	// Devices are the devices for those of the program: device i is Devices[i % len(Devices)]. ""
	// leaves the choice to placement.
	Devices []string
	// GuardCalls makes calls in loops and on branches run after a node of the iteration or branch.
	// TensorFlow needs it: when it inlines a call, constants of the body run even if the call would
	// not have run.
	GuardCalls bool
}

// Build builds the graph of a program that Check has accepted.
func Build(p *Program, o Options) (*Graph, error) {
	types, err := Check(p)
	if err != nil {
		return nil, err
	}
	b := &builder{types: types, vars: map[string]Var{}, devices: o.Devices, guardCalls: o.GuardCalls}
	root := &scope{builder: b, body: &body{}, inside: map[string]ref{}}
	out := &Graph{}
	for _, v := range p.Vars {
		b.vars[v.Name] = v
		out.Init = append(out.Init, root.declare(v))
	}
	for _, f := range p.Feeds {
		t := types[f.Name]
		attrs := opdef.Attrs{"dtype": t.DType, "shape": t.shape().Partial()}
		root.inside[f.Name] = root.body.add("Placeholder", f.Name, "", attrs, nil, nil).out(0)
		out.Feeds = append(out.Feeds, f.Name+":0")
	}
	yields := root.block(&p.Body)
	for i, r := range yields {
		n := root.body.add("Identity", fmt.Sprintf("result%d", i), "", opdef.Attrs{"T": types[p.Body.Yield[i]].DType}, []ref{r}, nil)
		out.Fetches = append(out.Fetches, n.name+":0")
	}
	for _, v := range p.Vars {
		out.Fetches = append(out.Fetches, root.body.input(root.readVariable(v, "final_"+v.Name))+":0")
	}
	out.Def = &graph.Def{
		Nodes: root.body.nodes, Library: b.library,
		Versions: graph.Versions{Producer: graph.ProducerVersion, MinConsumer: graph.MinConsumerVersion},
	}
	return out, nil
}

type builder struct {
	types      map[string]Type
	vars       map[string]Var
	devices    []string
	guardCalls bool
	library    []graph.FunctionDef
}

func (b *builder) device(i int) string { return b.devices[i%len(b.devices)] }

// body holds the nodes of a graph or of one function.
type body struct {
	nodes    []graph.NodeDef
	function bool
	names    int
}

// ref is a value: output flat of a node, which is also output slot of argument arg, or an argument
// of a function.
type ref struct {
	node, arg  string
	slot, flat int
}

// node is a node that was added.
type node struct {
	name, op string
	// number of results that form one list argument; 0 if each is an argument
	number int
}

// out returns output i of a node.
func (n node) out(i int) ref {
	if n.number > 0 {
		return ref{n.name, "output", i, i}
	}
	def, ok := kernel.Default.LookupOp(n.op)
	if !ok {
		panic("no operation " + n.op) // a bug of this package
	}
	return ref{n.name, def.Outputs[i].Name, 0, i}
}

// input formats a value as an input of a node.
func (b *body) input(r ref) string {
	switch {
	case r.arg == "":
		return r.node
	case b.function:
		return r.node + ":" + r.arg + ":" + strconv.Itoa(r.slot)
	case r.flat > 0:
		return r.node + ":" + strconv.Itoa(r.flat)
	default:
		return r.node
	}
}

// name returns an unused node name.
func (b *body) name(prefix string) string {
	b.names++
	return prefix + "_n" + strconv.Itoa(b.names)
}

// add adds a node. If name is "", the node gets an unused name. after are nodes that run before it.
func (b *body) add(op, name, device string, attrs opdef.Attrs, in []ref, after []string) node {
	if name == "" {
		name = b.name(op)
	}
	if b.function {
		device = "" // a function runs on the device of its call
	}
	n := graph.NodeDef{Name: name, Op: op, Device: device, Attrs: attrs}
	if n.Attrs == nil {
		n.Attrs = opdef.Attrs{}
	}
	for _, r := range in {
		n.Inputs = append(n.Inputs, b.input(r))
	}
	for _, c := range after {
		n.Inputs = append(n.Inputs, "^"+c)
	}
	b.nodes = append(b.nodes, n)
	return node{name: name, op: op}
}

// scope is a place in a graph: outside of all control flow, on a branch, in a loop, or in a
// function.
type scope struct {
	*builder
	body   *body
	outer  *scope
	inside map[string]ref // values by their names in the program, and tokens by theirs
	// capture makes a value of the outer scope available. It is not called for a function, whose
	// arguments include all values.
	capture func(name string, outside ref) ref
	// node that constants run after, so that they are dead if the scope is dead; "" for none
	pivot string
}

func (s *scope) within(capture func(string, ref) ref, pivot string) *scope {
	return &scope{builder: s.builder, body: s.body, outer: s, inside: map[string]ref{}, capture: capture, pivot: pivot}
}

// get returns a value by its name.
func (s *scope) get(name string) ref {
	if r, ok := s.inside[name]; ok {
		return r
	}
	if s.outer == nil {
		panic("no value " + name) // Check has accepted the program
	}
	in := s.capture(name, s.outer.get(name))
	s.inside[name] = in
	return in
}

func (s *scope) all(names []string) []ref {
	out := make([]ref, len(names))
	for i, name := range names {
		out[i] = s.get(name)
	}
	return out
}

func (s *scope) constant(v tensor.Tensor) ref {
	var after []string
	if s.pivot != "" {
		after = []string{s.pivot}
	}
	return s.body.add("Const", "", "", opdef.Attrs{"dtype": v.DType(), "value": v}, nil, after).out(0)
}

// op adds the node of a statement.
func (s *scope) op(at *Stmt, name string, attrs opdef.Attrs, in ...ref) ref {
	var after []string
	for _, n := range at.After {
		after = append(after, s.get(n).node)
	}
	return s.body.add(name, "", s.device(at.Device), attrs, in, after).out(0)
}

// block adds the statements of a block and returns its yields.
func (s *scope) block(b *Block) []ref {
	for i := range b.Stmts {
		at := &b.Stmts[i]
		for j, r := range s.stmt(at) {
			s.inside[at.Out[j]] = r
		}
	}
	return s.all(b.Yield)
}

func (s *scope) stmt(at *Stmt) []ref {
	switch at.Kind {
	case kindConst:
		return []ref{s.constant(at.Value)}
	case kindRead:
		return []ref{s.readVariable(s.vars[at.Var], "")}
	case kindAssign, kindAdd, kindSub:
		s.writeVariable(at, s.vars[at.Var])
		return nil
	case kindIf:
		if at.Functional {
			return s.functionalIf(at)
		}
		return s.branches(at)
	case kindRepeat:
		if at.Functional {
			return s.functionalLoop(at)
		}
		return s.loop(at)
	case kindCall:
		return s.call(at)
	}
	in := s.all(at.In)
	types := make([]Type, len(in))
	for i, name := range at.In {
		types[i] = s.types[name]
	}
	o := operations[at.Kind]
	if o.build != nil {
		return []ref{o.build(s, at, in, types)}
	}
	return []ref{s.op(at, o.node, opdef.Attrs{"T": types[0].DType}, in...)}
}
