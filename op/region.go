package op

import (
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// Region is a part of a graph that runs by its own rules, so that values from around it must be let
// in: a branch of a condition, a loop, the body of a function. The functions [Cond], [WhileLoop]
// and [NewFunction] make regions of their own; packages that rewrite graphs make others for
// [Scope.Within].
type Region interface {
	// Capture returns the value o, which is not of the region, as nodes in the region see it. It is
	// called once for every o.
	Capture(o Output) (Output, error)
	// Pivot returns the node that nodes wait for that have no inputs, or only such that a loop
	// takes from around, so that they run when the region does; nil for none.
	Pivot() *graph.Node
}

// region is a Region with what is known of it.
type region struct {
	Region
	b    *builder
	seen map[Output]Output // captured values
}

// outermost is the Region of what is in no other.
type outermost struct{ g *graph.Graph }

func (r outermost) Capture(o Output) (Output, error) {
	if r.g.NodeByID(o.Node.ID) != o.Node {
		return Output{}, status.InvalidArgumentf("input %s is of another graph", o.Node.Name)
	}
	return Output{}, status.InvalidArgumentf("Cannot use '%s' here because it is in a loop or a condition: use the results of these.",
		o.Node.Name)
}

func (outermost) Pivot() *graph.Node { return nil }

// Within returns a scope whose nodes are in a region. They do not wait for the nodes that the nodes
// of s wait for: it is the region that does.
func (s *Scope) Within(r Region) *Scope {
	return s.with(func(c *Scope) {
		c.region, c.anywhere = &region{b: s.b, Region: r, seen: map[Output]Output{}}, false
		c.controls, c.exact = nil, ""
	})
}

// Anywhere returns a scope whose nodes may use values of all regions as they are. It is for
// packages that know which can be used, such as the two sides of a condition behind it.
func (s *Scope) Anywhere() *Scope { return s.with(func(c *Scope) { c.anywhere = true }) }

// Adopt moves nodes to the region of the scope, from the one that they were added to.
func (s *Scope) Adopt(nodes ...*graph.Node) {
	for _, n := range nodes {
		if n != nil {
			s.region.adopt(n)
		}
	}
}

// Capture returns the value o as nodes of the scope see it. It is o itself if o is in the region of
// the scope; otherwise the region captures it with [Region.Capture]. The zero Output is an error.
func (s *Scope) Capture(o Output) (Output, error) {
	switch {
	case o.Node == nil:
		return o, errZeroOutput
	case s.anywhere && s.b.has(o.Node):
		return o, nil
	}
	return s.region.capture(o)
}

func (b *builder) has(n *graph.Node) bool { return b.g.NodeByID(n.ID) == n }

func (r *region) adopt(n *graph.Node) {
	if r == r.b.root {
		delete(r.b.regions, n)
		return
	}
	r.b.regions[n] = r
}

func (r *region) owns(n *graph.Node) bool {
	if !r.b.has(n) {
		return false
	}
	owner, ok := r.b.regions[n]
	return owner == r || !ok && r == r.b.root
}

func (r *region) capture(o Output) (Output, error) {
	if r.owns(o.Node) {
		return o, nil
	}
	if c, ok := r.seen[o]; ok {
		return c, nil
	}
	c, err := r.Capture(o)
	if err != nil {
		return Output{}, err
	}
	if c.Node == nil {
		return Output{}, errZeroOutput
	}
	r.adopt(c.Node)
	r.seen[o] = c
	return c, nil
}

// captureAll captures all arguments of a node.
func (s *Scope) captureAll(args []Arg) ([]Arg, error) {
	out := make([]Arg, len(args))
	for i, a := range args {
		out[i] = a
		if !a.many {
			one, err := s.Capture(a.one)
			if err != nil {
				return nil, err
			}
			out[i].one = one
			continue
		}
		out[i].list = make([]Output, len(a.list))
		for k, o := range a.list {
			var err error
			if out[i].list[k], err = s.Capture(o); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// varies reports whether a value is other than one that is there in every iteration of a loop,
// wanted or not.
func varies(o Output) bool { return !o.Node.Attrs.Bool("is_constant") }

// connectControls makes a new node wait for the nodes of the scope. One of a region around is
// waited for through its first output; what has none is done by the time that the region runs, or
// is not waited for.
func (s *Scope) connectControls(n *graph.Node) error {
	if pivot := s.region.Pivot(); pivot != nil && !slices.ContainsFunc(n.Inputs(), varies) {
		s.b.g.ConnectControl(pivot, n)
	}
	for _, c := range s.controls {
		if s.anywhere || s.region.owns(c) {
			s.b.g.ConnectControl(c, n)
			continue
		}
		if len(c.OutTypes) == 0 {
			continue
		}
		o, err := s.region.capture(c.Out(0))
		if err != nil {
			return err
		}
		s.b.g.ConnectControl(o.Node, n)
	}
	return nil
}
