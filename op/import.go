package op

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// ImportOptions change how [Scope.Import] adds a graph. The zero value adds it as it is.
type ImportOptions struct {
	// Inputs replaces outputs of the imported graph, by name ("x" or "x:0", "y:1"), by outputs of
	// the graph that it becomes part of. The nodes that are replaced are imported too, for those
	// who still want them.
	Inputs map[string]Output
	// ClearDevices leaves out the devices that nodes ask for: those of the scope remain.
	ClearDevices bool
}

// Import adds the nodes and functions of a graph that is written down, with names below those of
// the scope, and with its devices and control dependencies. It returns the nodes by the names that
// they had; nil after a mistake, when nothing was added. Names that the scope has already are a
// mistake: import into a [Scope.SubScope].
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

// rename returns a node with its names changed to those that it and its inputs will have, and notes
// what was replaced.
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
	if frame != "" { // loops of a graph that is imported twice are two
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

// lookupInput returns what replaces an output, whichever way the two spell the first output of a
// node.
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

// place gives an imported node the devices and the control dependencies of the scope. A node within
// the imported graph that has inputs waits for these anyway.
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

// inferImported infers the shapes of the whole graph again. Shapes that do not fit are no mistake
// here: the graph was made elsewhere, by someone who may know better.
func (s *Scope) inferImported() {
	if shapes, err := graph.InferShapes(s.b.g); err == nil {
		s.b.shapes = shapes
	}
}
