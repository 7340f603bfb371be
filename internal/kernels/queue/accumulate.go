package queue

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerAccumulators()
	registerForms(opdef.Def{
		Name: "AccumulatorNumAccumulated", Doc: "Returns the number of gradients aggregated since the accumulator's aggregate was last taken.",
		Out: []string{"num_accumulated: int32"}, Shape: opdef.ScalarShape,
	}, "ResourceAccumulatorNumAccumulated", opdef.ScalarShape, kernel.Stateless(numAccumulated))
	registerForms(opdef.Def{
		Name: "AccumulatorSetGlobalStep", Doc: "Updates the accumulator's global step. Gradients of earlier steps are dropped.",
		In: []string{"new_global_step: int64"}, Shape: secondScalar,
	}, "ResourceAccumulatorSetGlobalStep", secondScalar, kernel.Stateless(setGlobalStep))
	dtype := []string{"dtype: numbertype"}
	registerForms(opdef.Def{
		Name: "AccumulatorApplyGradient", Doc: "Applies a gradient to an accumulator. A gradient of an earlier step is dropped.",
		In: []string{"local_step: int64", "gradient: dtype"}, Attrs: dtype, Shape: secondScalar,
	}, "ResourceAccumulatorApplyGradient", secondScalar, newApply)
	registerForms(opdef.Def{
		Name: "AccumulatorTakeGradient", Doc: "Returns the sum or mean of the accumulated gradients. Blocks until num_required " +
			"gradients have been applied.",
		In: []string{"num_required: int32"}, Out: []string{"average: dtype"}, Attrs: dtype, Shape: secondScalar,
	}, "ResourceAccumulatorTakeGradient", secondScalar, newTake)
	kernel.RegisterNew(opdef.Def{
		Name: "SparseAccumulatorApplyGradient", Doc: "Applies a sparse gradient to an accumulator. A gradient of an earlier step is dropped.",
		In: []string{
			"handle: Ref(string)", "local_step: int64", "gradient_indices: int64", "gradient_values: dtype",
			"gradient_shape: int64",
		},
		Attrs: []string{"dtype: numbertype", "has_known_shape: bool"}, Shape: secondScalar,
	}, newApply)
	kernel.RegisterNew(opdef.Def{
		Name: "SparseAccumulatorTakeGradient", Doc: "Returns the sum or mean of the accumulated sparse gradients. Blocks until " +
			"num_required gradients have been applied.",
		In:    []string{"handle: Ref(string)", "num_required: int32"},
		Out:   []string{"indices: int64", "values: dtype", "shape: int64"},
		Attrs: dtype, Shape: secondScalar,
	}, newTake)
}

// registerAccumulators registers the operations that create accumulators.
func registerAccumulators() {
	attrs := []string{
		"dtype: numbertype", "shape: shape", "container: string = ''", "shared_name: string = ''",
		"reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
	}
	dense := kernel.ByType("dtype", kernel.Table{
		tensor.Float16: newDense[tensor.Float16Elem], tensor.Float32: newDense[float32], tensor.Float64: newDense[float64],
	})
	sparse := kernel.ByType("dtype", kernel.Table{
		tensor.Float16: newSparse[tensor.Float16Elem], tensor.Float32: newSparse[float32], tensor.Float64: newSparse[float64],
	})
	for _, op := range []struct {
		name, doc, handle string
		kernels           []kernel.Impl
	}{
		{"ConditionalAccumulator", "Returns a handle to an accumulator of gradients.", "Ref(string)", dense},
		{"ResourceConditionalAccumulator", "Returns a handle to an accumulator of gradients.", "resource", dense},
		{"SparseConditionalAccumulator", "Returns a handle to an accumulator of sparse gradients.", "Ref(string)", sparse},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: op.doc, Out: []string{"handle: " + op.handle}, Attrs: attrs, Stateful: true, Shape: resource.NamesShape,
			},
			Kernels: op.kernels,
		})
	}
}

func newDense[T tensor.Elem](c *kernel.Construction) (kernel.Kernel, error) {
	return accumulatorKernel(c, false, func(s tensor.PartialShape) sum { return &denseSum[T]{shape: s} })
}

func newSparse[T tensor.Elem](c *kernel.Construction) (kernel.Kernel, error) {
	return accumulatorKernel(c, true, func(s tensor.PartialShape) sum { return &sparseSum[T]{shape: s} })
}

func accumulatorKernel(c *kernel.Construction, sparse bool, empty func(tensor.PartialShape) sum) (kernel.Kernel, error) {
	dtype, shape, mean := c.Attrs.Type("dtype"), c.Attrs.Shape("shape"), c.Attrs.String("reduction_type") == "MEAN"
	return resource.Maker[*Accumulator]{
		Create: func(*kernel.Context, string) (*Accumulator, error) {
			return newAccumulator(dtype, sparse, mean, empty(shape)), nil
		},
	}.Kernel(c)
}

// secondScalar is the shape function of operations whose second input is a scalar.
func secondScalar(c *opdef.ShapeContext) error {
	_, err := opdef.WithRank(c.In[1], 0)
	return err
}

func numAccumulated(ctx *kernel.Context) error {
	a, err := resource.Find[*Accumulator](ctx, 0)
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(int32(a.accumulated())))
	}
	return err
}

func setGlobalStep(ctx *kernel.Context) error {
	a, err := resource.Find[*Accumulator](ctx, 0)
	if err != nil {
		return err
	}
	step := ctx.Input(1)
	if step.Rank() != 0 {
		return status.InvalidArgumentf("Argument num_required must be scalar, but had bad shape %v", step.Shape())
	}
	a.setStep(tensor.Value[int64](step))
	return nil
}

// newApply returns the kernel that applies a gradient. Its inputs follow the step; the shape input
// is used only if has_known_shape is true.
func newApply(c *kernel.Construction) (kernel.Kernel, error) {
	in := c.Inputs
	parts := len(in) - 2
	if parts == 3 && !c.Attrs.Bool("has_known_shape") {
		parts = 2
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		a, err := resource.Find[*Accumulator](ctx, 0)
		if err != nil {
			return err
		}
		if err := a.checkInputs(in); err != nil {
			return err
		}
		step := ctx.Input(1)
		if step.Rank() != 0 {
			return status.InvalidArgumentf("Argument local_step must be scalar, but had bad shape %v", step.Shape())
		}
		//sizedmake:ok components of an element
		gradient := make([]tensor.Tensor, parts)
		for i := range gradient {
			gradient[i] = ctx.TakeInput(2 + i)
		}
		defer element(gradient).release()
		return a.apply(resource.Account(ctx), tensor.Value[int64](step), gradient)
	}), nil
}

// checkInputs compares the dtypes of a gradient's inputs with those of the accumulator.
func (a *Accumulator) checkInputs(in []tensor.DType) error {
	want := []tensor.DType{in[0], tensor.Int64, a.dtype}
	if a.sparse {
		want = []tensor.DType{in[0], tensor.Int64, tensor.Int64, a.dtype, tensor.Int64}
	}
	return resource.CheckSignature(in, nil, want, nil)
}

func newTake(c *kernel.Construction) (kernel.Kernel, error) {
	in, out := c.Inputs, c.Outputs
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		a, err := resource.Find[*Accumulator](ctx, 0)
		if err == nil {
			err = a.checkOutputs(in, out)
		}
		if n := ctx.Input(1); err == nil && n.Rank() != 0 {
			err = status.InvalidArgumentf("Argument num_required must be scalar, but had bad shape %v", n.Shape())
		}
		if err != nil {
			done(err)
			return
		}
		a.takeGradient(ctx.Context(), resource.Account(ctx), int(tensor.Value[int32](ctx.Input(1))), func(sum []tensor.Tensor, err error) {
			for i := range sum {
				ctx.SetOutput(i, sum[i])
			}
			done(err)
		})
	}), nil
}

func (a *Accumulator) checkOutputs(in, out []tensor.DType) error {
	want := []tensor.DType{a.dtype}
	if a.sparse {
		want = []tensor.DType{tensor.Int64, a.dtype, tensor.Int64}
	}
	return resource.CheckSignature(in, out, in, want)
}
