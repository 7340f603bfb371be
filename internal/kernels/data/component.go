package data

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// component is the kernel of another operation that a dataset uses to compute its elements.
type component struct {
	kernel  kernel.Kernel
	outputs []tensor.DType
}

// newComponent creates the kernel of an operation for the node of a dataset.
func newComponent(n *node, op string, attrs opdef.Attrs) (*component, error) {
	def, ok := kernel.Default.LookupOp(op)
	if !ok {
		return nil, status.NotFoundf("%s needs the operation %s", n.Op.Name, op)
	}
	if err := n.Device.Policy.Check(n.Node, def); err != nil {
		return nil, err
	}
	attrs, err := def.CheckAttrs(n.Node, attrs)
	if err != nil {
		return nil, err
	}
	c := &kernel.Construction{Node: n.Node, Op: def, Attrs: attrs, Device: n.Device, Functions: n.Functions}
	if c.Inputs, err = def.InputTypes(attrs); err != nil {
		return nil, err
	}
	if c.Outputs, err = def.OutputTypes(attrs); err != nil {
		return nil, err
	}
	impl := kernel.Default.Find(op, n.Device.Type, attrs)
	if impl == nil {
		return nil, status.NotFoundf("%s needs the operation %s, which has no kernel for %v", n.Op.Name, op, attrs)
	}
	k, err := impl.New(c)
	return &component{k, c.Outputs}, err
}

// compute runs the kernel on inputs, which it takes over.
func (c *component) compute(r *run, in element) (element, error) {
	inputs, outputs := membudget.Make[kernel.Value](len(in)), membudget.Make[kernel.Value](len(c.outputs))
	for i := range in {
		inputs[i].Tensor = in[i]
	}
	ctx := withStep(r.ctx, r.ctx.Step)
	ctx.Bind(inputs, outputs, c.outputs)
	err := c.kernel.Compute(ctx)
	for i := range inputs {
		inputs[i].Release()
	}
	out := element(membudget.Make[tensor.Tensor](len(outputs)))
	for i := range outputs {
		out[i] = outputs[i].Tensor
	}
	if err != nil {
		out.release()
		return nil, err
	}
	return out, nil
}
