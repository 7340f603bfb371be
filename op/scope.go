package op

import (
	"slices"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
)

// Output is one output of a node. The zero Output stands for a node that could not be added.
type Output = graph.Output

// DeviceFunc chooses the device of a node that is being added, whose inputs and attributes are
// complete. The device that inner scopes chose is n.Device; it returns a full or partial name, or
// "" to leave the node as it is.
type DeviceFunc func(n *graph.Node) string

// Scope is a place in a graph to add nodes at. It is immutable; make the first with [NewScope].
// Scopes of one graph may not be used at the same time by several goroutines.
type Scope struct {
	b        *builder
	prefix   string // of names, ends in "/" unless empty
	name     string // of nodes, for Named
	exact    string // full name of a node, for Composite; used once
	devices  []DeviceFunc
	controls []*graph.Node
	colocate *graph.Node
	region   *region // that nodes are added to
	anywhere bool    // values of all regions may be used
}

// builder is what the scopes of a graph share.
type builder struct {
	g           *graph.Graph
	shapes      *graph.Shapes
	used        map[string]int // lower-case name → number to try next
	errs        *[]error       // shared with the functions of the graph
	root        *region
	regions     map[*graph.Node]*region // of nodes that are not in root
	collections map[string][]any
	seed        *int64 // graph-level seed of random operations, nil for none
	seeded      int64  // operations that took a seed of their own from it
}

// NewScope returns the outermost scope of a new graph.
func NewScope() *Scope { return ScopeOf(graph.New(Defs)) }

// ScopeOf returns the outermost scope of an existing graph, to add nodes to it. Scopes that come
// from different calls do not share collections, seeds and mistakes.
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

// Graph returns the graph that the scope adds to, without a check for mistakes.
func (s *Scope) Graph() *graph.Graph { return s.b.g }

// Finalize returns the graph, or all mistakes that were made in building it.
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

// SubScope returns a scope whose nodes have names below the given one, made unique.
func (s *Scope) SubScope(name string) *Scope {
	return s.with(func(c *Scope) { c.prefix, c.name, c.exact = s.b.unique(s.prefix+name)+"/", "", "" })
}

// InScope returns a scope whose nodes have names below the given one, which may be in use: to add
// to an earlier scope.
func (s *Scope) InScope(name string) *Scope {
	return s.with(func(c *Scope) { c.prefix, c.name, c.exact = s.prefix+name+"/", "", "" })
}

// Absolute returns a scope without a prefix of names.
func (s *Scope) Absolute() *Scope {
	return s.with(func(c *Scope) { c.prefix, c.name, c.exact = "", "", "" })
}

// Named returns a scope whose nodes have the given name, made unique, instead of the name of their
// operation.
func (s *Scope) Named(name string) *Scope {
	return s.with(func(c *Scope) { c.name, c.exact = name, "" })
}

// Composite returns the scopes for a function that adds several nodes and, last, the one that its
// result comes from: inner is a [Scope.SubScope] with the name that [Scope.Named] gave or else the
// given one, and result gives its first node that very name, as TensorFlow's composite functions do
// ("dropout/Mul", "dropout").
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

// Prefix returns the prefix of the names of the scope's nodes, which ends in "/" unless it is
// empty.
func (s *Scope) Prefix() string { return s.prefix }

// WithDevice returns a scope whose nodes are on a device, given in full or in part
// ("/job:ps/task:0", "/cpu:0"). Parts that an inner scope gave stand.
func (s *Scope) WithDevice(name string) *Scope {
	spec, err := device.Parse(name)
	if err != nil {
		s.Fail(err)
		return s
	}
	full := spec.String()
	return s.WithDeviceFunc(func(n *graph.Node) string { return MergeDevice(n.Device, full) })
}

// MergeDevice returns the device inner with the parts that it does not give taken from outer, as
// scopes within scopes do. Where one of them is malformed it returns inner.
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

// WithDeviceFunc returns a scope that asks f for the device of each node, after the functions of
// inner scopes.
func (s *Scope) WithDeviceFunc(f DeviceFunc) *Scope {
	return s.with(func(c *Scope) { c.devices = append(slices.Clip(s.devices), f) })
}

// WithoutDevices returns a scope that leaves the choice of devices to placement.
func (s *Scope) WithoutDevices() *Scope {
	return s.with(func(c *Scope) { c.devices, c.colocate = nil, nil })
}

// ColocateWith returns a scope whose nodes are placed on the device of n, whatever that turns out
// to be.
func (s *Scope) ColocateWith(n *graph.Node) *Scope {
	if n == nil {
		return s
	}
	return s.with(func(c *Scope) { c.colocate, c.devices = n, nil })
}

// WithControlDependencies returns a scope whose nodes run after the given ones. Nil nodes are left
// out.
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

// WithoutControlDependencies returns a scope whose nodes need not wait for any other.
func (s *Scope) WithoutControlDependencies() *Scope {
	return s.with(func(c *Scope) { c.controls = nil })
}
