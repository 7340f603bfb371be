package gradients

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Rule adds the nodes for one step of the chain rule. It is called with the gradients of a node's
// outputs and returns those of its inputs, one for each.
type Rule func(c *Call) []Grad

// Call is a node to differentiate.
type Call struct {
	S    *op.Scope // where to add nodes
	Node *graph.Node

	grads  []Grad
	nest   *nesting
	source string // distinguishes the calls of [Compute]
}

// In returns input i of the node.
func (c *Call) In(i int) op.Output { return c.Node.Input(i) }

// Out returns output i of the node.
func (c *Call) Out(i int) op.Output { return c.Node.Out(i) }

// Grad returns the gradient of output i as it arrived, which may be none or sparse.
func (c *Call) Grad(i int) Grad { return c.grads[i] }

// DY returns the gradient of output i as a tensor, zeros for none.
func (c *Call) DY(i int) op.Output {
	if c.grads[i].IsNone() {
		return op.ZerosLike(c.S, c.Out(i))
	}
	return Densify(c.S, c.grads[i])
}

// allDYs returns the gradients of all outputs as tensors.
func (c *Call) allDYs() []op.Output {
	dys := make([]op.Output, len(c.Node.OutTypes))
	for i := range dys {
		dys[i] = c.DY(i)
	}
	return dys
}

// None returns no gradient for any input.
func (c *Call) None() []Grad { return make([]Grad, c.Node.NumInputs()) }

// like adds a node of another operation with the attributes of the differentiated node that it also
// has, except for types, which follow from the arguments.
func (c *Call) like(opName string, args ...op.Output) *graph.Node {
	attrs, list := opdef.Attrs{}, make([]op.Arg, len(args))
	for i, a := range args {
		list[i] = op.One(a)
	}
	if def, ok := c.S.Graph().LookupOp(opName); ok {
		for _, a := range def.Attrs {
			if v, has := c.Node.Attrs[a.Name]; has && a.Kind != "type" {
				attrs[a.Name] = v
			}
		}
	}
	return c.S.Add(opName, list, attrs)
}

// output returns output i of a node, or the zero Output for a nil node.
func output(n *graph.Node, i int) op.Output {
	if n == nil {
		return op.Output{}
	}
	return n.Out(i)
}

// nth returns one of several outputs, or the zero Output after a build error.
func nth(outs []op.Output, i int) op.Output {
	if i >= len(outs) {
		return op.Output{}
	}
	return outs[i]
}

// first returns the gradient of the first input, and none for the others.
func (c *Call) first(dx op.Output) []Grad {
	grads := c.None()
	grads[0] = Of(dx)
	return grads
}

// rules maps an operation to its rule, or to nil if gradients do not pass through it. It is filled
// by init functions only. Its initial size avoids growing during start.
var rules = make(map[string]Rule, 1<<10)

// Register makes rule the rule of operations. It panics if one has a rule already.
func Register(rule Rule, ops ...string) {
	for _, name := range ops {
		if _, ok := rules[name]; ok {
			panic("gradients: two rules for " + name)
		}
		rules[name] = rule
	}
}

// NotDifferentiable declares that gradients do not pass through operations.
func NotDifferentiable(ops ...string) { Register(nil, ops...) }

// HasRule reports whether an operation is registered, with a rule or as not differentiable.
func HasRule(opName string) bool {
	_, ok := rules[opName]
	return ok
}

func isHandle(t tensor.DType) bool { return t == tensor.Resource || t == tensor.Variant }
