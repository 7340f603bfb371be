package lower

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
)

// noInline is the attribute of functions and calls that must not be inlined.
const noInline = "_noinline"

// lowerCall replaces a call by the body of its function, if that is allowed.
func (l *lowerer) lowerCall(n *graph.Node) {
	fn, direct := n.Attrs.Func("f"), false
	if _, ok := l.g.Library.Lookup(n.Op.Name); ok {
		fn, direct = opdef.Func{Name: n.Op.Name, Attrs: n.Attrs}, true
	}
	if !l.known(fn) || l.refused(n, fn.Name) {
		return
	}
	body := l.bodyOf(fn)
	if body == nil || !fits(n, body) {
		return
	}
	uncertain := l.uncertain[n] && len(n.ControlInputs()) == 0
	in := &inliner{
		lowerer: l, site: l.detach(n), body: body, single: direct, copies: make([]*graph.Node, body.Graph.NumIDs()),
		downstream: downstream(body.Graph),
	}
	l.from = l.from.inlined(fn.Name)
	in.addInputs(uncertain)
	in.copyNodes()
	in.copyEdges()
	l.from = l.from.from
	in.finish()
	l.markUncertain(body.Graph, func(n *graph.Node) *graph.Node { return in.copies[n.ID] })
}

// refused reports whether a call or its function has the attribute against inlining, or the call
// names an executor, which its kernel checks.
func (l *lowerer) refused(n *graph.Node, function string) bool {
	if n.Attrs.String("executor_type") != "" {
		return true
	}
	f, _ := l.g.Library.Lookup(function)
	return !l.o.Marked && (f.Def.Attrs.Bool(noInline) || n.Attrs.Bool(noInline))
}

// fits reports whether a call and a body agree in the types of arguments and results.
func fits(n *graph.Node, body *graph.Body) bool {
	if len(body.Args) != n.NumInputs() || len(body.Rets) != len(n.OutTypes) {
		return false
	}
	for i, arg := range body.Args {
		if n.Input(i).Node == nil || arg.OutTypes[0].Base() != n.InTypes[i].Base() {
			return false
		}
	}
	for i, ret := range body.Rets {
		if ret.InTypes[0].Base() != n.OutTypes[i].Base() {
			return false
		}
	}
	return true
}

// inliner replaces one call by a body.
type inliner struct {
	*lowerer
	*site
	body   *graph.Body
	single bool          // the whole body is on the device of the call
	strict bool          // results wait for effects
	copies []*graph.Node // of the nodes of the body, by ID; for an argument, its replacement
	entry  *graph.Node   // runs before the body; nil if the body needs no delay
	// whether each node of the body, by ID, is in a loop, on a branch, or after one
	downstream []bool
	devices    map[string]string // of copies, by the requested device of the node
	frames     map[string]string // new names of frames, by the old ones
}

// addInputs adds a node per argument, and the entry node that delays the body: until the control
// inputs of the call have run, or, for a call that may never run and has no control inputs, until
// its arguments have arrived.
func (in *inliner) addInputs(uncertain bool) {
	if len(in.controls) > 0 {
		in.entry = in.add(in.name+"/input_control_node", "NoOp", in.device, nil)
		for _, src := range in.controls {
			in.order(src, in.entry)
		}
	}
	for i, arg := range in.body.Args {
		src := in.in[i]
		id := in.identity(arg.Name, src.Node.Device, src)
		in.copies[arg.ID] = id
		in.order(in.entry, id)
	}
	if uncertain && in.entry == nil && len(in.body.Args) > 0 {
		in.enterAfterArguments()
	}
}

// enterAfterArguments makes the body start after the arguments of the call. Loop-invariant
// arguments wait for the others: nodes that depend on them only would otherwise run in iterations
// that never start.
func (in *inliner) enterAfterArguments() {
	in.entry = in.add(in.name+"/input_control_node", "NoOp", in.device, nil)
	invariant := func(o graph.Output) bool { return o.Node.Attrs.Bool("is_constant") }
	allInvariant := !slices.ContainsFunc(in.in, func(o graph.Output) bool { return !invariant(o) })
	for i, arg := range in.body.Args {
		if id := in.copies[arg.ID]; invariant(in.in[i]) && !allInvariant {
			in.order(in.entry, id)
		} else {
			in.order(id, in.entry)
		}
	}
}

// identity adds the node of an argument or result. It is placed with the source of the value, for
// which device is a hint, or on the device of the call.
func (in *inliner) identity(name, device string, from graph.Output) *graph.Node {
	if in.single {
		device = in.device
	}
	n := in.add(in.name+"/"+name, "Identity", device, opdef.Attrs{"T": base(from)}, from)
	if !in.single {
		in.follow(n)
	}
	return n
}

// copyNodes copies the nodes of the body. Names, frames and colocation groups are prefixed with the
// name of the call.
func (in *inliner) copyNodes() {
	for n := range in.body.Graph.Nodes() {
		if in.err != nil {
			return
		}
		if n.Op.Name == "_Arg" || n.Op.Name == "_Retval" {
			continue
		}
		c := in.add(in.name+"/"+n.Name, n.Op.Name, in.deviceOf(n), in.attrsOf(n))
		in.copies[n.ID] = c
		alone := n.NumInputs() == 0 && len(n.ControlInputs()) == 0
		if alone || isCall(in.lowerer, n) && len(n.ControlInputs()) == 0 && !in.downstream[n.ID] {
			in.order(in.entry, c)
		}
	}
}

// deviceOf returns the requested device of a copy. Components that the node leaves open are those
// of the call.
func (in *inliner) deviceOf(n *graph.Node) string {
	if in.single || n.Device == "" {
		return in.device
	}
	if device, ok := in.devices[n.Device]; ok {
		return device
	}
	if in.devices == nil {
		in.devices = map[string]string{}
	}
	device := combined(in.device, n.Device)
	in.takeText(len(device))
	in.devices[n.Device] = device
	return device
}

// combined returns the device of a node of a body that requests own, for a call on caller.
func combined(caller, own string) string {
	spec, err := device.Parse(own)
	if err != nil {
		return own // place reports the error
	}
	around, err := device.Parse(caller)
	if err != nil {
		return own
	}
	return around.With(spec).String()
}

// attrsOf returns the attributes of a copy.
func (in *inliner) attrsOf(n *graph.Node) opdef.Attrs {
	frame, inFrame := n.Attrs["frame_name"].(string)
	class, grouped := n.Attrs["_class"].([]string)
	if !inFrame && !grouped {
		return n.Attrs
	}
	in.takeAttrs(len(n.Attrs))
	attrs := n.Attrs.Clone()
	if inFrame {
		attrs["frame_name"] = in.frame(frame)
	}
	if grouped {
		attrs["_class"] = in.translate(class)
	}
	return attrs
}

// frame returns the name of the copy of a frame. The nodes of a frame share it.
func (in *inliner) frame(name string) string {
	if copied, ok := in.frames[name]; ok {
		return copied
	}
	if in.frames == nil {
		in.frames = map[string]string{}
	}
	in.takeText(len(in.name) + len(name))
	copied := in.name + "/" + name
	in.frames[name] = copied
	return copied
}

// translate returns colocation groups with the new names of nodes of the body.
func (in *inliner) translate(class []string) []string {
	out := slices.Clone(class)
	for i, c := range out {
		name, ok := strings.CutPrefix(c, "loc:@")
		n := in.body.Graph.Node(name)
		if !ok || n == nil {
			continue
		}
		prefix := in.name + "/"
		if n.Op.Name == "_Arg" {
			prefix, name = "", in.copies[n.ID].Name
		}
		if in.takeText(len(prefix) + len(name)); in.err != nil {
			break
		}
		out[i] = "loc:@" + prefix + name
	}
	return out
}

// copyEdges connects the copies like the originals.
func (in *inliner) copyEdges() {
	for n := range in.body.Graph.Nodes() {
		c := in.copies[n.ID]
		if c == nil || n.Op.Name == "_Arg" || in.err != nil {
			continue
		}
		for i, src := range n.Inputs() {
			in.connect(graph.Output{Node: in.copies[src.Node.ID], Index: src.Index}, c, i)
		}
		for _, src := range n.ControlInputs() {
			in.order(in.copies[src.ID], c)
		}
	}
}

// finish adds a node per result, and the node that runs when the call would have finished.
func (in *inliner) finish() {
	if in.err != nil {
		return
	}
	done := in.add(in.name+"/output_control_node", "NoOp", in.device, nil)
	effects := in.effects()
	for _, n := range effects {
		in.order(n, done)
	}
	values := make([]graph.Output, len(in.body.Rets))
	for i, ret := range in.body.Rets {
		src := ret.Input(0)
		from := graph.Output{Node: in.copies[src.Node.ID], Index: src.Index}
		id := in.identity(ret.Name, "", from)
		if id == nil {
			return
		}
		for _, src := range ret.ControlInputs() {
			in.order(in.copies[src.ID], id)
		}
		values[i] = id.Out(0)
		if len(effects) > 0 && in.strict {
			in.order(done, id)
		}
	}
	if len(effects) == 0 {
		in.anchor(done, values)
	}
	in.replace(in.site, values, done)
}

// effects returns the nodes that the end of a call waits for, even if no result depends on them. It
// omits nodes on a branch, which may be dead, and nodes in a loop, which are in another frame: a
// node outside could not wait for them.
func (in *inliner) effects() []*graph.Node {
	controls := make(map[*graph.Node]bool, len(in.body.Controls))
	for _, n := range in.body.Controls {
		controls[n] = true
	}
	var out []*graph.Node
	for n := range in.body.Graph.Nodes() {
		stateful := n.Op.Stateful && n.Op.Name != "_Arg" && n.Op.Name != "_Retval" && !in.downstream[n.ID]
		if stateful || controls[n] {
			out = append(out, in.copies[n.ID])
		}
	}
	return out
}

// anchor ties the end of a call without effects to the iteration or branch of the call.
func (in *inliner) anchor(done *graph.Node, values []graph.Output) {
	switch {
	case in.entry != nil:
		in.order(in.entry, done)
	case len(values) > 0:
		for _, v := range values {
			in.order(v.Node, done)
		}
	default:
		for _, arg := range in.body.Args {
			in.order(in.copies[arg.ID], done)
		}
	}
}
