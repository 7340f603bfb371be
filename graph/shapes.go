package graph

import (
	"fmt"
	"strings"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Shapes holds what is known about the tensors of a graph before it runs: their shapes, the types
// and shapes behind resource handles, and integer values that follow from constants and shapes.
// Values are computed when a shape function asks for them. Nodes for which [Shapes.Infer] was not
// called have unknown shapes. A Shapes must not be used concurrently.
type Shapes struct {
	nodes   []nodeShapes        // by ID of the node
	values  map[Output]*numbers // computed values; nil for unknown ones
	numbers int                 // elements of values
}

type nodeShapes struct {
	inferred bool
	out      []tensor.PartialShape
	handles  [][]tensor.HandleElem // nil if there are none
}

// NewShapes returns an empty Shapes for a graph under construction. The caller calls [Shapes.Infer]
// for each node after connecting its inputs.
func NewShapes() *Shapes { return &Shapes{values: map[Output]*numbers{}} }

// InferShapes infers the shapes of all nodes. The shapes in a loop are those that hold in all
// iterations. It returns the first error. The Shapes are valid even then: the outputs of a node
// with an error have unknown shapes.
func InferShapes(g *Graph) (*Shapes, error) {
	s := NewShapes()
	order, err := g.InOrder()
	if err != nil {
		return s, err
	}
	s.nodes = make([]nodeShapes, g.NumIDs())
	for _, n := range order {
		if failure := s.Infer(n); err == nil {
			err = failure
		}
	}
	s.settleLoops(order)
	return s, err
}

// Of returns the shape of an output, as far as it is known.
func (s *Shapes) Of(o Output) tensor.PartialShape {
	if n := s.of(o.Node); n != nil && o.Index < len(n.out) {
		return n.out[o.Index]
	}
	return tensor.PartialShape{}
}

// HandlesOf returns the types and shapes of the values behind an output of resource or variant
// handles; nil if they are unknown.
func (s *Shapes) HandlesOf(o Output) []tensor.HandleElem {
	if n := s.of(o.Node); n != nil && o.Index < len(n.handles) {
		return n.handles[o.Index]
	}
	return nil
}

// ValueOf returns the value of an output that is a constant, or an integer that follows from
// constants and shapes; nil if it is unknown.
func (s *Shapes) ValueOf(o Output) *tensor.Tensor { return s.evaluator().tensor(o) }

// Set merges a shape into the known shape of an output. It fails with InvalidArgument if they are
// incompatible.
func (s *Shapes) Set(o Output, shape tensor.PartialShape) error {
	merged, err := opdef.MergeShapes(s.Of(o), shape)
	if err != nil {
		return status.AtNode(err, o.Node.Name)
	}
	s.grow(o.Node)
	n := &s.nodes[o.Node.ID]
	if n.out == nil {
		n.out = make([]tensor.PartialShape, len(o.Node.OutTypes))
	}
	n.out[o.Index] = merged
	return nil
}

// Relax replaces the known shape of an output by a less specific one, for example for an output
// that enters a loop whose iterations change it.
func (s *Shapes) Relax(o Output, shape tensor.PartialShape) {
	if n := s.of(o.Node); n != nil && o.Index < len(n.out) {
		n.out[o.Index] = shape
	}
}

func (s *Shapes) of(n *Node) *nodeShapes {
	if n == nil || n.ID >= len(s.nodes) {
		return nil
	}
	return &s.nodes[n.ID]
}

func (s *Shapes) grow(n *Node) {
	if n.ID >= len(s.nodes) {
		s.nodes = append(s.nodes, make([]nodeShapes, n.ID+1-len(s.nodes))...)
	}
}

// Infer calls the shape function of a node. Inputs that have not been inferred have unknown shapes.
// It returns the error of the shape function if the inputs are invalid.
func (s *Shapes) Infer(n *Node) error {
	s.grow(n)
	if n.IsMerge() {
		s.inferMerge(n)
		return nil
	}
	in := &inference{shapes: s, eval: s.evaluator(), node: n}
	c := in.context()
	err := in.run(c)
	result := nodeShapes{inferred: true, out: c.Out}
	if err != nil {
		result.out = make([]tensor.PartialShape, len(n.OutTypes))
	} else {
		for i := range c.OutHandles {
			if c.OutHandles[i] != nil {
				result.handles = c.OutHandles
				break
			}
		}
	}
	s.nodes[n.ID] = result
	return err
}

// inference is one call of a shape function.
type inference struct {
	shapes *Shapes
	eval   *evaluator
	node   *Node

	inputs   []tensor.PartialShape
	values   []*tensor.Tensor       // values that the shape function asked for, by input
	asShapes []*tensor.PartialShape // shapes that the shape function asked for, by input
	invalid  error                  // error for a value that is not a shape; nil for none
}

func (in *inference) context() *opdef.ShapeContext {
	n := in.node
	c := &opdef.ShapeContext{
		Op: n.Op, Attrs: n.Attrs,
		In: make([]tensor.PartialShape, len(n.in)), InHandles: make([][]tensor.HandleElem, len(n.in)),
		Out: make([]tensor.PartialShape, len(n.OutTypes)), OutHandles: make([][]tensor.HandleElem, len(n.OutTypes)),
		Value: in.value, ValueAsShape: in.valueAsShape,
	}
	for i, src := range n.in {
		c.In[i], c.InHandles[i] = in.shapes.Of(src), in.shapes.HandlesOf(src)
	}
	in.inputs = c.In
	return c
}

func (in *inference) run(c *opdef.ShapeContext) error {
	if in.node.Op.Shape == nil {
		return nil
	}
	err := in.node.Op.Shape(c)
	if in.invalid != nil {
		return in.invalid
	}
	if err != nil {
		return status.From(err).Annotate("%s", in.describe())
	}
	return nil
}

func (in *inference) value(i int) *tensor.Tensor {
	if in.values == nil {
		in.values = make([]*tensor.Tensor, len(in.node.in))
	}
	if in.values[i] == nil {
		in.values[i] = in.eval.tensor(in.node.in[i])
	}
	return in.values[i]
}

func (in *inference) valueAsShape(i int) tensor.PartialShape {
	if in.asShapes == nil {
		in.asShapes = make([]*tensor.PartialShape, len(in.node.in))
	}
	if in.asShapes[i] == nil {
		shape, err := in.eval.shape(in.node.in[i])
		if err != nil && in.invalid == nil {
			in.invalid = err
		}
		in.asShapes[i] = &shape
	}
	return *in.asShapes[i]
}

// maxDescribed is the number of inputs that an error names. The text of a shape is much longer than
// the name of an input, and a million inputs may have the same shape.
const maxDescribed = 1000

// describe returns, in TensorFlow's format, the arguments of the shape function: the node, the
// shapes of its inputs, and the values that it asked for.
func (in *inference) describe() string {
	var shapes, values, asShapes []string
	for i, shape := range in.inputs {
		if i == maxDescribed {
			shapes = append(shapes, "...")
			break
		}
		shapes = append(shapes, shape.String())
		switch {
		case in.asShapes != nil && in.asShapes[i] != nil && in.asShapes[i].RankKnown():
			asShapes = append(asShapes, fmt.Sprintf("input[%d] = %v", i, in.asShapes[i]))
		case in.values != nil && in.values[i] != nil:
			values = append(values, fmt.Sprintf("input[%d] = <%s>", i, in.values[i].Summary(256)))
		}
	}
	text := fmt.Sprintf(" for '%s' with input shapes: %s", in.node.Summary(), strings.Join(shapes, ", "))
	if values != nil {
		text += " and with computed input tensors: " + strings.Join(values, ", ")
	}
	if asShapes != nil {
		text += " and with input tensors computed as partial shapes: " + strings.Join(asShapes, ",")
	}
	return text + "."
}
