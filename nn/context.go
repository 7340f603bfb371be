package nn

import (
	"fmt"
	"reflect"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/kernels" // the shape functions of all operations
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Context is what layers add their nodes to: a scope of a graph, and the variables of the layers
// that were applied to it. Contexts of one graph must not be used concurrently.
type Context struct {
	Scope *op.Scope
	// Training is true if the outputs are for a training step: dropout drops, and batch
	// normalization uses the statistics of the batch.
	Training bool

	weights *weights
	layer   *layerWeights // of the layer that is being applied; nil outside of layers
	compute tensor.DType  // element type in which layers compute; Invalid for that of their inputs
}

// weights are the variables of all layers of a graph.
type weights struct {
	layers map[any]*layerWeights
	order  []*layerWeights
	masks  map[op.Output]op.Output
	// penalties are the terms that regularizers add to the loss, by variable
	penalties []op.Output
	updates   []*graph.Node // run after each training step, such as those of moving averages
	limits    []limit
	names     map[string]int // number of layers of a name
}

// limit is a constraint of a variable.
type limit struct {
	v  *train.Variable
	to Constraint
}

// layerWeights are the variables of one layer.
type layerWeights struct {
	name   string // prefix of the names of the variables, without "/"
	kind   string
	values map[string]*train.Variable
	tables map[string]*train.Partitioned
	output tensor.PartialShape // of the last application
	parent *layerWeights
}

// NewContext returns a context for a graph in which no layers were applied yet.
func NewContext(s *op.Scope, training bool) *Context {
	return &Context{Scope: s, Training: training, weights: &weights{
		layers: map[any]*layerWeights{}, masks: map[op.Output]op.Output{}, names: map[string]int{},
	}}
}

// For returns a context with the same variables for another purpose: with training false it is for
// the evaluation of the model that c trains.
func (c *Context) For(training bool) *Context {
	d := *c
	d.Training = training
	return &d
}

// Layer returns the context in which layer l, a pointer, adds its nodes and variables. Layers call
// it first. name is the default name of the layer, such as "dense"; later layers of the same name
// get the suffixes "_1", "_2".
func (c *Context) Layer(l any, name string) *Context {
	if reflect.ValueOf(l).Kind() != reflect.Pointer {
		c.fail("%s: a layer must be a pointer, got a %T", name, l)
	}
	return c.enter(l, name)
}

// enter is [Context.Layer] for a part of a layer, whose key is comparable.
func (c *Context) enter(l any, name string) *Context {
	d := *c
	own, again := c.weights.layers[l]
	if !again {
		full := name
		if c.layer != nil {
			full = c.layer.name + "/" + name
		}
		n := c.weights.names[full]
		c.weights.names[full]++
		if n > 0 {
			full = fmt.Sprintf("%s_%d", full, n)
		}
		own = &layerWeights{
			name: full, kind: name, parent: c.layer,
			values: map[string]*train.Variable{}, tables: map[string]*train.Partitioned{},
		}
		c.weights.layers[l] = own
		c.weights.order = append(c.weights.order, own)
	}
	d.layer = own
	d.Scope = c.Scope.Absolute().InScope(own.name)
	if again {
		d.Scope = c.Scope.Absolute().SubScope(own.name)
	}
	return &d
}

// Weight describes a variable of a layer.
type Weight struct {
	Name        string // within the layer, such as "kernel"
	Shape       tensor.Shape
	Init        train.Initializer
	Regularizer Regularizer // adds a term to the loss; nil for none
	Constraint  Constraint  // is applied after each update; nil for none
	Frozen      bool        // optimizers do not update the variable
}

// Variable returns a variable of the layer of the context, which the first call adds to the graph.
func (c *Context) Variable(w Weight) *train.Variable {
	own := c.layer
	if own == nil {
		c.fail("variable %q is outside of a layer: call Context.Layer first", w.Name)
		return &train.Variable{}
	}
	if v := own.values[w.Name]; v != nil {
		if !v.Shape.Equal(w.Shape) {
			c.fail("%s/%s has shape %v, and the layer is applied to an input for which it must have shape %v",
				own.name, w.Name, v.Shape, w.Shape)
		}
		return v
	}
	var opts []train.VariableOption
	if w.Frozen {
		opts = append(opts, train.NotTrainable())
	}
	s := c.Scope.Absolute()
	v := train.NewVariable(s, own.name+"/"+w.Name, w.Shape, tensor.Float32, w.Init, opts...)
	own.values[w.Name] = v
	if w.Regularizer != nil && v.Value.Node != nil {
		near := c.Scope.SubScope("regularizer")
		c.weights.penalties = append(c.weights.penalties, w.Regularizer(near, v.Value))
	}
	if w.Constraint != nil {
		c.weights.limits = append(c.weights.limits, limit{v, w.Constraint})
	}
	return v
}

// Weight returns the value of a variable of the layer of the context, in the element type in which
// the layer computes. The first call adds the variable to the graph.
func (c *Context) Weight(w Weight) op.Output {
	return c.cast(c.Variable(w).Value)
}

// Table returns a variable whose rows are split into parts, which may be on different parameter
// servers ([train.NewPartitioned]). The first call adds it to the graph.
func (c *Context) Table(w Weight, parts int) *train.Partitioned {
	own := c.layer
	if p := own.tables[w.Name]; p != nil {
		return p
	}
	p := train.NewPartitioned(c.Scope.Absolute(), own.name+"/"+w.Name, w.Shape, tensor.Float32, w.Init, parts)
	own.tables[w.Name] = p
	return p
}

// Update adds a node that runs with each training step, for instance to update a moving average.
func (c *Context) Update(n *graph.Node) {
	if n != nil {
		c.weights.updates = append(c.weights.updates, n)
	}
}

// Penalty adds a scalar to the loss of training.
func (c *Context) Penalty(o op.Output) { c.weights.penalties = append(c.weights.penalties, o) }

// Mask returns the mask of a value: a bool matrix of shape [batch, time] that is false for padding.
// It is the zero Output for a value without one.
func (c *Context) Mask(x op.Output) op.Output { return c.weights.masks[x] }

// SetMask sets the mask of a value. [Embedding] does so for padded sequences; recurrent layers,
// [MultiHeadAttention] and losses use it.
func (c *Context) SetMask(x, mask op.Output) {
	if mask.Node != nil {
		c.weights.masks[x] = mask
	}
}

// done records the output of a layer, with the mask of its input if keep is true.
func (c *Context) done(x, y op.Output, keepMask bool) op.Output {
	if y.Node != nil {
		c.layer.output = c.Scope.ShapeOf(y)
	}
	if keepMask && y != x {
		c.SetMask(y, c.Mask(x))
	}
	return y
}

// fail records a build error of the layer.
func (c *Context) fail(format string, args ...any) {
	name := ""
	if c.layer != nil {
		name = c.layer.name + ": "
	}
	c.Scope.Fail(status.InvalidArgumentf("nn: %s", name+fmt.Sprintf(format, args...)))
}

// cast converts a value to the type in which layers compute.
func (c *Context) cast(x op.Output) op.Output {
	if x.Node == nil {
		return x
	}
	if t := x.DType().Base(); !t.IsFloating() || c.compute == tensor.Invalid && t != tensor.Float32 {
		c.fail("the input is of type %s, want float32; convert numbers, and make words and categories numbers (Embedding takes integers)", t.Name())
		return op.Output{}
	}
	if c.compute == tensor.Invalid || x.DType().Base() == c.compute {
		return x
	}
	return op.Cast(c.Scope, x, c.compute)
}

// size returns the size of a dimension of x, counted from the end if i is negative. It is a build
// error, and the result 0, if it is not known or if the rank of x is not the given one; a rank of
// -1 allows any.
func (c *Context) size(x op.Output, i, rank int) int64 {
	if x.Node == nil {
		return 0
	}
	shape := c.Scope.ShapeOf(x)
	switch n := shape.Rank(); {
	case n < 0:
		c.fail("the rank of the input is not known")
		return 0
	case rank >= 0 && n != rank:
		c.fail("the input has shape %v, want %d dimensions, with the batch first", shape, rank)
		return 0
	case n < 2 || i >= n || -i > n:
		c.fail("the input has shape %v, want at least %d dimensions, with the batch first", shape, max(2, i+1, -i))
		return 0
	}
	d := shape.Dim(i)
	if d < 0 {
		c.fail("dimension %d of the input %v is not known; set it in the input's shape", i, shape)
		return 0
	}
	return d
}

// Updates returns the nodes that run with each training step, such as updates of moving averages.
func (c *Context) Updates() []*graph.Node { return c.weights.updates }
