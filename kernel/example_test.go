package kernel_test

import (
	"fmt"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// double computes 2x, in place if no other holder shares the input.
func double(ctx *kernel.Context) error {
	x := tensor.Values[float32](ctx.Input(0))
	y, err := ctx.Forward(0, 0)
	if err != nil {
		return err
	}
	out := tensor.Values[float32](y)
	for i := range out {
		out[i] = 2 * x[i]
	}
	return nil
}

// Register an operation, and call its kernel as the executor does.
func ExampleRegistry() {
	ops := kernel.NewRegistry()
	ops.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Double", Doc: "Computes 2x.", In: []string{"x: T"}, Out: []string{"y: T"},
			Attrs: []string{"T: {float32}"}, Shape: opdef.SameShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float32: kernel.Stateless(double)}),
	})
	op, _ := ops.LookupOp("Double")
	attrs := opdef.Attrs{"T": tensor.Float32}
	k, err := ops.Find("Double", kernel.CPU, attrs).New(&kernel.Construction{Op: op, Attrs: attrs})
	if err != nil {
		panic(err)
	}
	inputs := []kernel.Value{{Tensor: tensor.Vector[float32](1, 2.5)}}
	outputs := make([]kernel.Value, 1)
	ctx := &kernel.Context{Device: &kernel.Device{Name: "/device:CPU:0"}}
	ctx.Bind(inputs, outputs, []tensor.DType{tensor.Float32})
	if err := k.Compute(ctx); err != nil {
		panic(err)
	}
	fmt.Println(op)
	fmt.Println(outputs[0].Tensor.Go())
	// Output:
	// Op<name=Double; signature=x:T -> y:T; attr=T:type,allowed=[DT_FLOAT]>
	// [2 5]
}
