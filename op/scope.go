package op

import (
	"slices"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
)

// Output is one output of a node. Builders return the zero Output if they cannot add their node.
type Output = graph.Output

// DeviceFunc returns the device of a node that is being added: a full or partial name, or "" to
// leave n.Device unchanged. The inputs and attributes of n are complete, and n.Device is the choice
// of the inner scopes.
type DeviceFunc func(n *graph.Node) string

// Scope holds what the nodes that are added through it have in common: prefix of names, devices,
// control dependencies and region. It is immutable; [NewScope] returns the first. Scopes of the
// same graph must not be used concurrently.
type Scope struct {
	b        *builder
	prefix   string // prefix of names; ends in "/" unless empty
	name     string // name of nodes, set by Named
	exact    string // full name of the next node, set by Composite; used once
	devices  []DeviceFunc
	controls []*graph.Node
	colocate *graph.Node
	region   *region // region of new nodes
	anywhere bool    // values of all regions are used without capturing
}

// builder is the state that the scopes of a graph share.
type builder struct {
	g           *graph.Graph
	shapes      *graph.Shapes
	used        map[string]int // next number to try, by lower-case name
	errs        *[]error       // shared with the builders of function bodies
	root        *region
	regions     map[*graph.Node]*region // region of each node that is not in root
	collections map[string][]any
	seed        *int64 // graph-level seed of random operations; nil for none
	seeded      int64  // number of operations that derived their seed from it
}

// NewScope returns the outermost scope of a new graph.
func NewScope() *Scope { return ScopeOf(graph.New(Defs)) }

// ScopeOf returns the outermost scope of an existing graph, for adding nodes to it. Scopes from
// different calls do not share collections, seeds and build errors.
func ScopeOf(g *graph.Graph) *Scope {
	b := newBuilder(g, new([]error), outermost{g})
	for n := range g.Nodes() {
		b.reserve(n.Name)
	}
	if shapes, err := graph.InferShapes(g); err == nil {
		b.shapes = shapes
	}
	return &Scope{b: b, region: b.root}
}

func newBuilder(g *graph.Graph, errs *[]error, root Region) *builder {
	b := &builder{
		g: g, shapes: graph.NewShapes(), used: map[string]int{}, errs: errs, regions: map[*graph.Node]*region{},
		collections: map[string][]any{},
	}
	b.root = &region{b: b, Region: root, seen: map[Output]Output{}}
	return b
}

// Graph returns the graph that the scope adds to, even if there are build errors.
func (s *Scope) Graph() *graph.Graph { return s.b.g }

// Finalize returns the graph, or all build errors, joined by [errors.Join].
func (s *Scope) Finalize() (*graph.Graph, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	return s.b.g, nil
}

func (s *Scope) with(change func(*Scope)) *Scope {
	c := *s
	change(&c)
	return &c
}

// SubScope returns a scope that appends name and "/" to the prefix. A number is appended to name if
// it is in use.
func (s *Scope) SubScope(name string) *Scope {
	return s.with(func(c *Scope) { c.prefix, c.name, c.exact = s.b.unique(s.prefix+name)+"/", "", "" })
}

// InScope returns a scope that appends name and "/" to the prefix, even if name is in use. It is
// for adding nodes to an earlier scope.
func (s *Scope) InScope(name string) *Scope {
	return s.with(func(c *Scope) { c.prefix, c.name, c.exact = s.prefix+name+"/", "", "" })
}

// Absolute returns a scope with an empty prefix.
func (s *Scope) Absolute() *Scope {
	return s.with(func(c *Scope) { c.prefix, c.name, c.exact = "", "", "" })
}

// Named returns a scope whose nodes have the given name instead of the name of their operation. A
// number is appended if the name is in use.
func (s *Scope) Named(name string) *Scope {
	return s.with(func(c *Scope) { c.name, c.exact = name, "" })
}

// Composite returns the scopes for a builder that adds several nodes and returns the last one.
// inner is a [Scope.SubScope] for the other nodes. Its name is that of [Scope.Named], or else the
// given one. The first node that is added through result gets the name of inner itself.
// TensorFlow's composite functions use the same names ("dropout/Mul", "dropout").
func (s *Scope) Composite(name string) (inner, result *Scope) {
	if s.exact != "" {
		return s.Absolute().InScope(s.exact), s
	}
	if s.name != "" {
		name = s.name
	}
	inner = s.SubScope(name)
	return inner, s.with(func(c *Scope) { c.name, c.exact = name, inner.prefix[:len(inner.prefix)-1] })
}

// Prefix returns the prefix of the names of the scope's nodes. It ends in "/" unless it is empty.
func (s *Scope) Prefix() string { return s.prefix }

// WithDevice returns a scope whose nodes request a device, by its full or partial name
// ("/job:ps/task:0", "/cpu:0"). Parts that an inner scope sets take precedence. A malformed name is
// a build error.
func (s *Scope) WithDevice(name string) *Scope {
	spec, err := device.Parse(name)
	if err != nil {
		s.Fail(err)
		return s
	}
	full := spec.String()
	return s.WithDeviceFunc(func(n *graph.Node) string { return MergeDevice(n.Device, full) })
}

// MergeDevice returns the device name inner, with missing parts taken from outer, as nested scopes
// do. If one of the names is malformed, it returns inner.
func MergeDevice(inner, outer string) string {
	in, err := device.Parse(inner)
	if err != nil {
		return inner
	}
	out, err := device.Parse(outer)
	if err != nil {
		return inner
	}
	return out.With(in).String()
}

// WithDeviceFunc returns a scope that calls f for the device of each node, after the functions of
// inner scopes.
func (s *Scope) WithDeviceFunc(f DeviceFunc) *Scope {
	return s.with(func(c *Scope) { c.devices = append(slices.Clip(s.devices), f) })
}

// WithoutDevices returns a scope whose nodes request no device, so that placement chooses one.
func (s *Scope) WithoutDevices() *Scope {
	return s.with(func(c *Scope) { c.devices, c.colocate = nil, nil })
}

// ColocateWith returns a scope whose nodes are placed on the device of n. A nil n changes nothing.
func (s *Scope) ColocateWith(n *graph.Node) *Scope {
	if n == nil {
		return s
	}
	return s.with(func(c *Scope) { c.colocate, c.devices = n, nil })
}

// WithControlDependencies returns a scope whose nodes are executed after the given ones, in
// addition to those of s. Nil nodes are ignored.
func (s *Scope) WithControlDependencies(first ...*graph.Node) *Scope {
	return s.with(func(c *Scope) {
		c.controls = slices.Clip(s.controls)
		for _, n := range first {
			if n != nil {
				c.controls = append(c.controls, n)
			}
		}
	})
}

// WithoutControlDependencies returns a scope whose nodes have no control dependencies.
func (s *Scope) WithoutControlDependencies() *Scope {
	return s.with(func(c *Scope) { c.controls = nil })
}
