package op

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// ImportOptions configures [Scope.Import]. The zero value imports the graph unchanged.
type ImportOptions struct {
	// Inputs maps names of outputs of the imported graph ("x" or "x:0", "y:1") to outputs of the
	// graph of the scope. Inputs of imported nodes that refer to the former are connected to the
	// latter. The replaced nodes are imported too.
	Inputs map[string]Output
	// ClearDevices drops the devices of the imported nodes; those of the scope still apply.
	ClearDevices bool
}

// Import adds the nodes and functions of a graph definition. Their names get the prefix of the
// scope, and its devices and control dependencies apply. Import returns the nodes by their original
// names. If there is a build error, it returns nil and has added nothing. A name that is already in
// use is an error; import into a [Scope.SubScope] to avoid it.
func (s *Scope) Import(def *graph.Def, opts ImportOptions) map[string]*graph.Node {
	renamed := *def
	renamed.Nodes = make([]graph.NodeDef, len(def.Nodes))
	used := map[string]bool{}
	for i := range def.Nodes {
		n, err := s.rename(&def.Nodes[i], opts, used)
		if err != nil {
			s.Fail(err)
			return nil
		}
		renamed.Nodes[i] = n
	}
	for name := range opts.Inputs {
		if !used[canonical(name)] {
			s.Fail(status.InvalidArgumentf("the imported graph does not use %s, which was to be replaced", name))
			return nil
		}
	}
	if err := s.b.g.Extend(&renamed); err != nil {
		s.Fail(err)
		return nil
	}
	nodes := make(map[string]*graph.Node, len(def.Nodes))
	for i := range def.Nodes {
		n := s.b.g.Node(renamed.Nodes[i].Name)
		s.b.reserve(n.Name)
		s.place(n)
		nodes[def.Nodes[i].Name] = n
	}
	s.inferImported()
	return nodes
}

// rename returns a copy of d with the prefix of the scope in all names, and with replaced inputs.
// It adds the names of the replaced inputs to used.
func (s *Scope) rename(d *graph.NodeDef, opts ImportOptions, used map[string]bool) (graph.NodeDef, error) {
	n := *d
	n.Name = s.prefix + d.Name
	if opts.ClearDevices {
		n.Device = ""
	}
	n.Inputs = make([]string, len(d.Inputs))
	for i, in := range d.Inputs {
		name, isControl := strings.CutPrefix(in, "^")
		if isControl {
			n.Inputs[i] = "^" + s.prefix + name
			continue
		}
		n.Inputs[i] = s.prefix + in
		o, replaced := lookupInput(opts.Inputs, in)
		if !replaced {
			continue
		}
		if err := s.check([]Output{o}); err != nil {
			return n, err
		}
		n.Inputs[i] = o.String()
		used[canonical(in)] = true
	}
	groups, frame := d.Attrs.Strings("_class"), d.Attrs.String("frame_name")
	if s.prefix == "" || len(groups) == 0 && frame == "" {
		return n, nil
	}
	n.Attrs = maps.Clone(d.Attrs)
	if len(groups) > 0 {
		n.Attrs["_class"] = s.renameGroups(groups)
	}
	if frame != "" { // a second import of the same graph needs frames of its own
		n.Attrs["frame_name"] = s.prefix + frame
	}
	return n, nil
}

func (s *Scope) renameGroups(groups []string) []string {
	out := make([]string, len(groups))
	for i, g := range groups {
		if node, ok := strings.CutPrefix(g, "loc:@"); ok {
			g = "loc:@" + s.prefix + node
		}
		out[i] = g
	}
	return out
}

// lookupInput returns the replacement for an output. "x" and "x:0" are the same name.
func lookupInput(inputs map[string]Output, name string) (Output, bool) {
	if o, ok := inputs[name]; ok {
		return o, true
	}
	if o, ok := inputs[canonical(name)]; ok {
		return o, true
	}
	o, ok := inputs[strings.TrimSuffix(name, ":0")]
	return o, ok
}

func canonical(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return name + ":0"
}

// place applies the devices and the control dependencies of the scope to an imported node. Only
// nodes without inputs get control dependencies: the others depend on these, or on replaced inputs.
func (s *Scope) place(n *graph.Node) {
	if n.NumInputs() == 0 && len(n.ControlInputs()) == 0 {
		for _, c := range s.controls {
			s.b.g.ConnectControl(c, n)
		}
	}
	if s.colocate != nil && len(n.Attrs.Strings("_class")) == 0 {
		n.SetAttr("_class", colocationGroups(s.colocate))
		n.Device = s.colocate.Device
	}
	for _, choose := range slices.Backward(s.devices) {
		if d := choose(n); d != "" {
			n.Device = d
		}
	}
}

// inferImported infers the shapes of the whole graph again. It ignores shape errors: the graph
// comes from another program, and the master checks it before it runs.
func (s *Scope) inferImported() {
	if shapes, err := graph.InferShapes(s.b.g); err == nil {
		s.b.shapes = shapes
	}
}
