// Package kerneltest runs single operations in tests of kernels. Like the executor, it checks and
// completes the attributes, chooses the kernel by device and types, and passes inputs that the step
// owns.
package kerneltest

import (
	"context"
	"testing"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Env is the environment of operations: a step, and a device whose resources live as long as the
// Env.
type Env struct {
	Device *kernel.Device
	Step   *kernel.Step
	// Functions is the function library of the nodes; nil for none.
	Functions kernel.Functions
}

// NewEnv returns an environment without resources.
func NewEnv() *Env {
	return &Env{
		Device: &kernel.Device{
			Name: "/job:localhost/replica:0/task:0/device:CPU:0", Type: kernel.CPU, Incarnation: 1, MemoryLimit: 1 << 28,
			Resources: kernel.NewResources("localhost"),
		},
		Step: &kernel.Step{ID: 1, Context: context.Background(), Resources: kernel.NewResources("step")},
	}
}

// Node is the kernel of an operation. It may run several times.
type Node struct {
	env  *Env
	c    *kernel.Construction
	kern kernel.Kernel
}

// Make creates the kernel of an operation in a node named "node".
func (e *Env) Make(op string, attrs opdef.Attrs) (*Node, error) { return e.MakeNode("node", op, attrs) }

// MakeNode creates the kernel of an operation in a node with the given name.
func (e *Env) MakeNode(name, op string, attrs opdef.Attrs) (*Node, error) {
	def, ok := kernel.Default.LookupOp(op)
	if !ok {
		return nil, status.NotFoundf("Op type not registered '%s'", op)
	}
	attrs, err := def.CheckAttrs(name, attrs)
	if err != nil {
		return nil, err
	}
	c := &kernel.Construction{Node: name, Op: def, Attrs: attrs, Device: e.Device, Functions: e.Functions}
	if c.Inputs, err = def.InputTypes(attrs); err != nil {
		return nil, err
	}
	if c.Outputs, err = def.OutputTypes(attrs); err != nil {
		return nil, err
	}
	impl := kernel.Default.Find(op, kernel.CPU, attrs)
	if impl == nil {
		return nil, status.InvalidArgumentf("No OpKernel was registered to support Op '%s'", op)
	}
	k, err := impl.New(c)
	if err != nil {
		return nil, err
	}
	return &Node{env: e, c: c, kern: k}, nil
}

// Run runs a node of its own, and returns its first output, or a zero tensor if it has none. An
// error fails the test at once.
func (e *Env) Run(t testing.TB, op string, attrs opdef.Attrs, inputs ...tensor.Tensor) tensor.Tensor {
	t.Helper()
	node, err := e.Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.Run(inputs...)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		return tensor.Tensor{}
	}
	return out[0]
}

// Run runs the node once. It retains the inputs, so the kernel does not modify them in place.
func (n *Node) Run(inputs ...tensor.Tensor) ([]tensor.Tensor, error) {
	vals := make([]kernel.Value, len(inputs))
	for i := range inputs {
		vals[i].Tensor = inputs[i].Retain()
	}
	out, err := n.RunValues(vals...)
	if err != nil {
		return nil, err
	}
	tensors := make([]tensor.Tensor, len(out))
	for i := range out {
		tensors[i] = out[i].Tensor
	}
	return tensors, nil
}

// RunValues runs the node once. It takes over the inputs, which may be references.
func (n *Node) RunValues(inputs ...kernel.Value) ([]kernel.Value, error) {
	if len(inputs) != len(n.c.Inputs) {
		return nil, status.InvalidArgumentf("%s takes %d inputs, got %d", n.c.Op.Name, len(n.c.Inputs), len(inputs))
	}
	for i := range inputs {
		if t := &inputs[i].Tensor; inputs[i].Ref == nil && t.DType() != n.c.Inputs[i] {
			return nil, status.InvalidArgumentf("input %d of %s is %v, not %v", i, n.c.Op.Name, t.DType(), n.c.Inputs[i])
		}
	}
	outputs := make([]kernel.Value, len(n.c.Outputs))
	err := compute(n.kern, n.context(inputs, outputs))
	for i := range inputs {
		inputs[i].Release()
	}
	return outputs, err
}

func (n *Node) context(inputs, outputs []kernel.Value) *kernel.Context {
	ctx := &kernel.Context{Step: n.env.Step, Device: n.env.Device, Node: n.c.Node}
	ctx.Bind(inputs, outputs, n.c.Outputs)
	return ctx
}

func compute(k kernel.Kernel, ctx *kernel.Context) error {
	a, ok := k.(kernel.Async)
	if !ok {
		return k.Compute(ctx)
	}
	done := make(chan error, 1)
	a.ComputeAsync(ctx, func(err error) { done <- err })
	return <-done
}

// Run creates and runs an operation in a new environment. It fails the test on errors.
func Run(t testing.TB, op string, attrs opdef.Attrs, inputs ...tensor.Tensor) []tensor.Tensor {
	t.Helper()
	out, err := Try(op, attrs, inputs...)
	if err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	return out
}

// Try creates and runs an operation in a new environment.
func Try(op string, attrs opdef.Attrs, inputs ...tensor.Tensor) ([]tensor.Tensor, error) {
	n, err := NewEnv().Make(op, attrs)
	if err != nil {
		return nil, err
	}
	return n.Run(inputs...)
}

// Shapes runs the shape function of an operation on full or partial shapes. values are the inputs
// with known values.
func Shapes(op string, attrs opdef.Attrs, in []tensor.PartialShape, values map[int]tensor.Tensor) ([]tensor.PartialShape, error) {
	def, ok := kernel.Default.LookupOp(op)
	if !ok {
		return nil, status.NotFoundf("Op type not registered '%s'", op)
	}
	attrs, err := def.CheckAttrs("node", attrs)
	if err != nil {
		return nil, err
	}
	outs, err := def.OutputTypes(attrs)
	if err != nil {
		return nil, err
	}
	c := &opdef.ShapeContext{
		Op: def, Attrs: attrs, In: in, InHandles: make([][]tensor.HandleElem, len(in)),
		Out: make([]tensor.PartialShape, len(outs)), OutHandles: make([][]tensor.HandleElem, len(outs)),
		Value: func(i int) *tensor.Tensor {
			if t, ok := values[i]; ok {
				return &t
			}
			return nil
		},
	}
	c.ValueAsShape = func(i int) tensor.PartialShape {
		t := c.Value(i)
		if t == nil {
			if r := in[i]; r.Rank() == 1 && r.Dim(0) >= 0 {
				return tensor.UnknownDims(int(r.Dim(0)))
			}
			return tensor.PartialShape{}
		}
		return tensor.MakePartial(opdef.IntValues(t)...)
	}
	if def.Shape == nil {
		return c.Out, nil
	}
	return c.Out, def.Shape(c)
}
