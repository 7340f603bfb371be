package op

import (
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// Region is a part of a graph with its own rules of execution: a branch of a condition, a loop, or
// the body of a function. Values of the surrounding graph must be captured before nodes of the
// region use them. [Cond], [WhileLoop] and [NewFunction] create regions; packages that rewrite
// graphs create others for [Scope.Within].
type Region interface {
	// Capture returns the value by which nodes of the region use o, a value of the surrounding
	// graph. It is called once for each o.
	Capture(o Output) (Output, error)
	// Pivot returns the node on which nodes of the region have a control dependency if they have no
	// inputs, or only loop-invariant ones. It keeps them from running when the region does not. It
	// is nil if none is needed.
	Pivot() *graph.Node
}

// region is a Region and the values that it has captured.
type region struct {
	Region
	b    *builder
	seen map[Output]Output // captured value by original value
}

// outermost is the Region of nodes outside of all other regions. It captures nothing.
type outermost struct{ g *graph.Graph }

func (r outermost) Capture(o Output) (Output, error) {
	if r.g.NodeByID(o.Node.ID) != o.Node {
		return Output{}, status.InvalidArgumentf("input %s is of another graph", o.Node.Name)
	}
	return Output{}, status.InvalidArgumentf("Cannot use '%s' here because it is in a loop or a condition: use the results of these.",
		o.Node.Name)
}

func (outermost) Pivot() *graph.Node { return nil }

// Within returns a scope whose nodes are in a region. The control dependencies of s do not apply to
// them: they apply to the nodes that lead into the region.
func (s *Scope) Within(r Region) *Scope {
	return s.with(func(c *Scope) {
		c.region, c.anywhere = &region{b: s.b, Region: r, seen: map[Output]Output{}}, false
		c.controls, c.exact = nil, ""
	})
}

// Anywhere returns a scope whose nodes may use values of all regions without capturing them. It is
// for packages that know which values can be used, for example the results of both branches of a
// condition.
func (s *Scope) Anywhere() *Scope { return s.with(func(c *Scope) { c.anywhere = true }) }

// Adopt moves nodes to the region of the scope. Nil nodes are ignored.
func (s *Scope) Adopt(nodes ...*graph.Node) {
	for _, n := range nodes {
		if n != nil {
			s.region.adopt(n)
		}
	}
}

// Capture returns the value by which nodes of the scope use o. It is o itself if o is in the region
// of the scope; otherwise it is the result of [Region.Capture]. The zero Output is an error.
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

// varies reports whether a value is not loop-invariant: Enter nodes of loop-invariant values have
// the attribute is_constant.
func varies(o Output) bool { return !o.Node.Attrs.Bool("is_constant") }

// connectControls adds the control dependencies of the scope to a new node. A node outside of the
// region is captured through its first output. If it has no outputs, it is skipped.
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
