package nn

import "github.com/weft-ml/weft/op"

// A Layer adds nodes to a graph that compute its output from an input. Layers are pointers.
type Layer interface {
	// Apply adds the layer to the graph of the context. After a build error, which is recorded in
	// the scope, it returns the zero Output.
	Apply(c *Context, x op.Output) op.Output
}

// A Network is a model's function with any number of inputs.
type Network interface {
	// Forward adds the network to the graph of the context.
	Forward(c *Context, inputs []op.Output) op.Output
}

// Sequential is a network of layers, each applied to the output of the one before it. It is a
// [Layer] and a [Network] of one input.
type Sequential []Layer

// Apply implements [Layer].
func (l Sequential) Apply(c *Context, x op.Output) op.Output {
	for _, layer := range l {
		if x.Node == nil {
			return x
		}
		x = layer.Apply(c, x)
	}
	return x
}

// Forward implements [Network].
func (l Sequential) Forward(c *Context, inputs []op.Output) op.Output { return forward(c, l, inputs) }

// Single returns the network that applies a layer, such as a struct of layers, to its only input.
func Single(l Layer) Network { return single{l} }

type single struct{ layer Layer }

func (n single) Forward(c *Context, inputs []op.Output) op.Output { return forward(c, n.layer, inputs) }

func forward(c *Context, l Layer, inputs []op.Output) op.Output {
	if len(inputs) != 1 {
		c.fail("the network has one input, and the data has %d", len(inputs))
		return op.Output{}
	}
	return l.Apply(c, inputs[0])
}

// Lambda is a layer of a function without variables.
type Lambda struct {
	Name string // of the layer; "lambda" if empty
	Func func(s *op.Scope, x op.Output) op.Output
}

// Apply implements [Layer].
func (l *Lambda) Apply(c *Context, x op.Output) op.Output {
	name := l.Name
	if name == "" {
		name = "lambda"
	}
	c = c.Layer(l, name)
	return c.done(x, l.Func(c.Scope, x), true)
}
