package twins

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// compute runs the CPU's kernel of an operation. It takes over the inputs. A failure is an error of
// the device, since kernels on a device cannot fail.
func compute(op string, attrs opdef.Attrs, inputs ...kernel.Value) []kernel.Value {
	outputs, err := tryCompute(op, attrs, inputs)
	if err != nil {
		panic(fmt.Errorf("twins: %s: %w", op, err))
	}
	return outputs
}

var cpu = &kernel.Device{
	Name: "/job:localhost/replica:0/task:0/device:CPU:0", Type: kernel.CPU, Resources: kernel.NewResources("localhost"),
}

func tryCompute(op string, attrs opdef.Attrs, inputs []kernel.Value) ([]kernel.Value, error) {
	def, ok := kernel.Default.LookupOp(op)
	if !ok {
		return nil, fmt.Errorf("there is no operation %s", op)
	}
	attrs, err := def.CheckAttrs(op, attrs)
	if err != nil {
		return nil, err
	}
	c := &kernel.Construction{Node: op, Op: def, Attrs: attrs, Device: cpu}
	if c.Inputs, err = def.InputTypes(attrs); err != nil {
		return nil, err
	}
	if c.Outputs, err = def.OutputTypes(attrs); err != nil {
		return nil, err
	}
	impl := kernel.Default.Find(op, kernel.CPU, attrs)
	if impl == nil {
		return nil, fmt.Errorf("the CPU has no kernel for %v", attrs)
	}
	k, err := impl.New(c)
	if err != nil {
		return nil, err
	}
	ctx := &kernel.Context{Step: &kernel.Step{ID: 1, Context: context.Background()}, Device: cpu, Node: op}
	outputs := make([]kernel.Value, len(c.Outputs))
	ctx.Bind(inputs, outputs, c.Outputs)
	return outputs, k.Compute(ctx)
}

// view returns elements lo to lo+n of argument i as a tensor of the given shape, without copying.
func view(a *hostgpu.Args, i int, dtype tensor.DType, shape ...int64) kernel.Value {
	s := tensor.Shape(shape)
	n := int(s.NumElements()) * dtype.Size()
	t, err := tensor.FromBytes(dtype, s, a.Bytes(i)[:n:n], nil)
	if err != nil {
		panic(err) // the kernels' arguments are whole tensors
	}
	return kernel.Value{Tensor: t}
}

// put copies an output to the first argument.
func put(a *hostgpu.Args, out kernel.Value) { copy(a.Bytes(0), out.Tensor.Bytes()) }
