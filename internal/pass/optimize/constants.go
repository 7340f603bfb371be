package optimize

import (
	"slices"
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

const (
	// maxConstant is the maximum size in bytes of a folded constant. It is TensorFlow's.
	maxConstant = 10 << 20
	// maxGrowth is the maximum size in bytes of a constant that is larger than its inputs. A larger
	// constant would be sent to the task that runs it, and computing it there is faster.
	maxGrowth = 100 << 10
	// maxFolded is the maximum size in bytes of all folded constants of a graph.
	maxFolded = 128 << 20
	// maxDeps is the maximum number of control dependences of all folded nodes, each counted for
	// the node and for its consumers. A constant may have as many as the graph has nodes, and each
	// node that is computed from it inherits them.
	maxDeps = 1 << 20
)

// foldConstants replaces nodes that depend on constants only by constants. Control dependences of a
// folded node and of the constants that it was computed from become those of its replacement.
func foldConstants(g *graph.Graph, o *Options) error {
	if o.Eval == nil {
		return nil
	}
	order, err := g.InOrder()
	if err != nil {
		return err
	}
	f := &folder{g: g, eval: o.Eval, known: map[*graph.Node]constant{}}
	var folded []*graph.Node
	for _, n := range order {
		switch {
		case n.Op.Name == "Const":
			if v := n.Attrs.Tensor("value"); v != nil && f.takeDeps(n) {
				f.known[n] = constant{values: []tensor.Tensor{*v}, deps: f.deps(n)}
			}
		case f.fold(n):
			folded = append(folded, n)
		}
	}
	for _, n := range folded {
		if err := f.replace(n); err != nil {
			return err
		}
	}
	f.drop(order)
	return nil
}

// constant is a node whose outputs are known.
type constant struct {
	values []tensor.Tensor
	deps   []*graph.Node // nodes that must run first, in order of discovery
	folded bool          // computed by the folder, which owns the values
}

type folder struct {
	g     *graph.Graph
	eval  func(*graph.Node, []tensor.Tensor) ([]tensor.Tensor, error)
	known map[*graph.Node]constant
	bytes int64 // size of the folded values
	taken int   // control dependences of known nodes, see maxDeps
}

// takeDeps reports whether the control dependences of n, if it becomes known, are within the limit.
func (f *folder) takeDeps(n *graph.Node) bool {
	sum := 0
	for _, in := range n.Inputs() {
		sum += len(f.known[in.Node].deps)
	}
	for _, src := range n.ControlInputs() {
		sum += max(1, len(f.known[src].deps))
	}
	if left := maxDeps - f.taken; sum > left/(1+len(n.OutEdges())) {
		return false
	}
	f.taken += sum * (1 + len(n.OutEdges()))
	return true
}

// fold computes a node if it is foldable and within the limits.
func (f *folder) fold(n *graph.Node) bool {
	if !foldable(n) || len(n.OutEdges()) == 0 { // a node without consumers is a target
		return false
	}
	if _, isFunction := f.g.Library.Lookup(n.Op.Name); isFunction {
		return false
	}
	inputs := make([]tensor.Tensor, n.NumInputs())
	size := int64(0)
	for i, in := range n.Inputs() {
		c, ok := f.known[in.Node]
		if !ok || in.Index >= len(c.values) {
			return false
		}
		inputs[i] = c.values[in.Index]
		size += inputs[i].ByteSize()
	}
	limit := min(max(size, maxGrowth), maxConstant)
	if !fits(n, inputs, limit) || !f.takeDeps(n) {
		return false
	}
	values, err := f.eval(n, inputs)
	if err != nil || len(values) != len(n.OutTypes) || !f.accept(n, values, limit) {
		for i := range values {
			values[i].Release()
		}
		return false
	}
	f.known[n] = constant{values: values, deps: f.deps(n), folded: true}
	return true
}

// accept checks the computed values. The kernel may return larger values than the shape function
// could predict.
func (f *folder) accept(n *graph.Node, values []tensor.Tensor, limit int64) bool {
	sum := int64(0)
	for i := range values {
		size := values[i].ByteSize()
		if values[i].DType() != n.OutTypes[i] || size > limit {
			return false
		}
		sum += size
	}
	if f.bytes+sum > maxFolded {
		return false
	}
	f.bytes += sum
	return true
}

// deps returns the non-constant nodes that must run before n.
func (f *folder) deps(n *graph.Node) []*graph.Node {
	var out []*graph.Node
	seen := map[*graph.Node]bool{}
	add := func(src *graph.Node) {
		nodes := []*graph.Node{src}
		if c, ok := f.known[src]; ok {
			nodes = c.deps
		}
		for _, d := range nodes {
			if !seen[d] {
				seen[d] = true
				out = append(out, d)
			}
		}
	}
	for _, in := range n.Inputs() {
		add(in.Node)
	}
	for _, src := range n.ControlInputs() {
		add(src)
	}
	return out
}

// replace connects the consumers of a folded node that are not folded themselves to constants.
func (f *folder) replace(n *graph.Node) error {
	c := f.known[n]
	made := make([]*graph.Node, len(c.values))
	for _, e := range slices.Clone(n.OutEdges()) {
		if f.known[e.Dst].folded {
			continue
		}
		if e.IsControl() {
			for _, d := range c.deps {
				f.g.ConnectControl(d, e.Dst)
			}
			continue
		}
		if made[e.SrcOut] == nil {
			var err error
			if made[e.SrcOut], err = f.constant(n, e.SrcOut); err != nil {
				return err
			}
		}
		if err := f.g.Connect(made[e.SrcOut].Out(0), e.Dst, e.DstIn); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) constant(n *graph.Node, i int) (*graph.Node, error) {
	c := f.known[n]
	made, err := addConstant(f.g, n, i, c.values[i].Retain())
	if err != nil {
		return nil, err
	}
	for _, d := range c.deps {
		f.g.ConnectControl(d, made)
	}
	return made, nil
}

// drop removes the folded nodes, releases their values, and removes the constants without other
// consumers.
func (f *folder) drop(order []*graph.Node) {
	for _, n := range order {
		c, ok := f.known[n]
		if !ok || !c.folded && !f.onlyFolded(n.OutEdges()) {
			continue
		}
		f.g.Remove(n)
		for i := range c.values {
			if c.folded {
				c.values[i].Release()
			}
		}
	}
}

func (f *folder) onlyFolded(edges []graph.Edge) bool {
	for _, e := range edges {
		if !f.known[e.Dst].folded {
			return false
		}
	}
	return len(edges) > 0
}

// addConstant adds a constant that replaces output i of a node, on the device of the node.
func addConstant(g *graph.Graph, n *graph.Node, i int, value tensor.Tensor) (*graph.Node, error) {
	name := n.Name + "__cf__" + strconv.Itoa(i)
	made, err := g.Add(unusedName(g, name), "Const", opdef.Attrs{"dtype": value.DType(), "value": value})
	if err == nil {
		made.Device, made.Assigned = n.Device, n.Assigned
	}
	return made, err
}
