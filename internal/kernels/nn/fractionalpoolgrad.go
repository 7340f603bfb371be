package nn

import (
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	cuts := []string{"row_pooling_sequence: int64", "col_pooling_sequence: int64"}
	attrs := []string{"overlapping: bool = false", fractionalTypes}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "FractionalMaxPoolGrad", Doc: "Computes the gradient of FractionalMaxPool with respect to its input.",
			In: append([]string{"orig_input: T", "orig_output: T", "out_backprop: T"}, cuts...), Out: []string{"output: T"},
			Attrs: attrs, Shape: sameAsInput(0, 4),
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: newFractionalMaxGrad(&ordered32), tensor.Float64: newFractionalMaxGrad(&ordered64),
			tensor.Int32: newFractionalMaxGrad(&orderedInt32), tensor.Int64: newFractionalMaxGrad(&orderedInt64),
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "FractionalAvgPoolGrad", Doc: "Computes the gradient of FractionalAvgPool with respect to its input.",
			In: append([]string{"orig_input_tensor_shape: int64", "out_backprop: T"}, cuts...), Out: []string{"output: T"},
			Attrs: attrs, Shape: fractionalAvgGradShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: newFractionalAvgGrad[float32](), tensor.Float64: newFractionalAvgGrad[float64](),
			tensor.Int32: newFractionalAvgGrad[int32](), tensor.Int64: newFractionalAvgGrad[int64](),
		}),
	})
}

func fractionalAvgGradShape(c *opdef.ShapeContext) error {
	c.SetAll(tensor.UnknownDims(4))
	if c.Value(0) == nil {
		return nil
	}
	s, err := shapefn.Input(c, 0)
	c.SetAll(s)
	return err
}

// checkCuts checks that the boundaries are sorted and lie within an input of the given size.
func checkCuts(name string, cuts *tensor.Tensor, size int64) error {
	last := int64(0)
	for _, v := range intarg.Values(cuts) {
		if v < last || v > size {
			return status.InvalidArgumentf("%s must not decrease and lie within [0, %d], got %s", name, size, cuts.Summary(-1))
		}
		last = v
	}
	return nil
}

func newFractionalMaxGrad[T tensor.Elem](o *order[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		overlapping := c.Attrs.Bool("overlapping")
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := checkFractionalMaxGrad(ctx); err != nil {
				return err
			}
			in, pooled := ctx.Input(0), tensor.Values[T](ctx.Input(1))
			rows, cols := intarg.Values(ctx.Input(3)), intarg.Values(ctx.Input(4))
			out, err := ctx.AllocateZeros(0, in.Shape())
			if err != nil {
				return err
			}
			g := cutGrid(in.Shape(), rows, cols)
			x, z, dy := tensor.Values[T](in), tensor.Values[T](out), tensor.Values[T](ctx.Input(2))
			best, at, same := membudget.Make[T](g.channels), membudget.Make[int](g.channels), true
			cutRegions(&g, rows, cols, overlapping, func(i, image int, r *region) {
				o.first(&g, x, image, r, best, at, func(c, pixel int) {
					same = same && o.same(best[c], pooled[i*g.channels+c])
					to := pixel*g.channels + c
					z[to] = o.add(z[to], dy[i*g.channels+c])
				})
			})
			if !same {
				return status.InvalidArgumentf("tensor_out_dup is not the same as tensor_out")
			}
			return nil
		}), nil
	}
}

func checkFractionalMaxGrad(ctx *kernel.Context) error {
	for i, name := range []string{"orig_input", "orig_output"} {
		t := ctx.Input(i)
		if t.Rank() != 4 {
			return status.InvalidArgumentf("%s should be a tensor of rank 4, got %v", name, t)
		}
		if t.NumElements() == 0 {
			return status.InvalidArgumentf("%s must not be empty, got %v", name, t)
		}
	}
	in, pooled, rows, cols := ctx.Input(0), ctx.Input(1), ctx.Input(3), ctx.Input(4)
	if rows.NumElements()*cols.NumElements() > in.NumElements() {
		return status.InvalidArgumentf(
			"Pooling region has more elements than the input tensor. row_pooling_sequence: %vcol_pooling_sequence: %vorig_input: %v", rows, cols, in)
	}
	for i, name := range []string{"row_pooling_sequence", "col_pooling_sequence"} {
		cuts := ctx.Input(3 + i)
		if cuts.Rank() != 1 {
			return status.InvalidArgumentf("%s must be a vector, received shape %v", name, cuts.Shape())
		}
		if err := checkCuts(name, cuts, in.Shape()[i+1]); err != nil {
			return err
		}
	}
	want := tensor.Shape{in.Shape()[0], rows.Shape()[0] - 1, cols.Shape()[0] - 1, in.Shape()[3]}
	if !pooled.Shape().Equal(want) || !ctx.Input(2).Shape().Equal(want) {
		return status.InvalidArgumentf("orig_output and out_backprop must have shape %v, got %v and %v", want, pooled.Shape(), ctx.Input(2).Shape())
	}
	return nil
}

func newFractionalAvgGrad[T number]() kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		overlapping := c.Attrs.Bool("overlapping")
		return kernel.Func(func(ctx *kernel.Context) error {
			shape, err := checkFractionalAvgGrad(ctx)
			if err != nil {
				return err
			}
			grad := ctx.Input(1)
			out, err := ctx.Allocate(0, shape)
			if err != nil {
				return err
			}
			z, sum, n := tensor.Values[T](out), membudget.Make[float64](out.NumElements()), int(shape[3])
			rows, cols := intarg.Values(ctx.Input(2))[:grad.Dim(1)+1], intarg.Values(ctx.Input(3))[:grad.Dim(2)+1]
			g, dy := cutGrid(shape, rows, cols), tensor.Values[T](grad)
			cutRegions(&g, rows, cols, overlapping, func(i, image int, r *region) {
				share := float64(r.count())
				g.pixels(image, r, func(in int) {
					for c, v := range dy[i*n : (i+1)*n] {
						sum[in*n+c] += float64(v) / share
					}
				})
			})
			for i, v := range sum {
				z[i] = T(v)
			}
			return nil
		}), nil
	}
}

func checkFractionalAvgGrad(ctx *kernel.Context) (tensor.Shape, error) {
	sizes, grad, rows, cols := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	if sizes.Rank() != 1 || sizes.NumElements() != 4 {
		return nil, status.InvalidArgumentf("original input tensor shape must be1-dimensional and 4 elements")
	}
	if grad.Rank() != 4 {
		return nil, status.InvalidArgumentf("out_backprop must be 4-dimensional")
	}
	for _, d := range grad.Shape() {
		if d <= 0 {
			return nil, status.InvalidArgumentf("out_backprop must be positive for all dimension, got:%d", d)
		}
	}
	for i, cuts := range []*tensor.Tensor{rows, cols} {
		if need := grad.Dim(i+1) + 1; cuts.NumElements() < need {
			return nil, status.InvalidArgumentf("Given out_backprop shape %v, %s_seq_tensor must have at least %d elements, but got %d",
				grad.Shape(), []string{"row", "col"}[i], need, cuts.NumElements())
		}
	}
	dims := intarg.Values(sizes)
	for i, name := range []string{"Batch", "Rows", "Columns", "Depth"} {
		if dims[i] == 0 {
			return nil, status.InvalidArgumentf("%s dimension of input must not be 0", name)
		}
	}
	shape, err := intarg.Shape(dims)
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"Row", "Column"} {
		for _, v := range intarg.Values(ctx.Input(2 + i)) {
			if v < 0 {
				return nil, status.InvalidArgumentf("%s sequence tensor values must not be negative, got %s", name, ctx.Input(2+i).Summary(-1))
			}
		}
		if err := checkCuts(name+" sequence tensor", ctx.Input(2+i), shape[i+1]); err != nil {
			return nil, err
		}
	}
	if shape[0] != grad.Shape()[0] || shape[3] != grad.Shape()[3] {
		return nil, status.InvalidArgumentf("out_backprop of shape %v does not fit an input of shape %v", grad.Shape(), shape)
	}
	return shape, nil
}
