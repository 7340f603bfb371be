package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name:  "Diag",
		Doc:   "Returns a tensor of twice the rank with the input on its diagonal and zeros elsewhere.",
		In:    []string{"diagonal: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: {bfloat16, float16, float32, float64, int32, int64, complex64, complex128}"},
		Shape: func(c *opdef.ShapeContext) error {
			in, err := opdef.WithRankAtLeast(c.In[0], 1)
			c.Out[0] = shapefn.Concat(in, in)
			return err
		},
	}, diag)
	kernel.RegisterFunc(opdef.Def{
		Name:  "DiagPart",
		Doc:   "Returns the diagonal of a tensor whose second half of dimensions equals the first half.",
		In:    []string{"input: T"},
		Out:   []string{"diagonal: T"},
		Attrs: []string{"T: {bfloat16, float16, float32, float64, int32, int64, complex64, complex128}"},
		Shape: diagPartShape,
	}, diagPart)
}

func diag(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.Rank() < 1 {
		return status.InvalidArgumentf("Input must be at least rank 1, got 0")
	}
	out, err := ctx.AllocateZeros(0, slices.Concat(in.Shape(), in.Shape()))
	if err != nil {
		return err
	}
	n := in.NumElements()
	line := strided.View{Dims: []int{n}, Strides: []int{n + 1}}
	strided.Copy(out, line, in, strided.View{Dims: []int{n}, Strides: []int{1}})
	return nil
}

func diagPartShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	if !in.RankKnown() {
		return nil
	}
	if in.Rank()%2 != 0 || in.Rank() == 0 {
		return status.InvalidArgumentf("Input must have even and non-zero rank, input rank is %d", in.Rank())
	}
	half := in.Rank() / 2
	dims := membudget.Make[int64](half)
	for i := range dims {
		var err error
		if dims[i], err = opdef.MergeDims(in.Dim(i), in.Dim(i+half)); err != nil {
			return err
		}
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

func diagPart(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.Rank()%2 != 0 {
		return status.InvalidArgumentf("The rank of the tensor should be                                          even and positive, got shape %v", in.Shape())
	}
	half := in.Rank() / 2
	for i := range half {
		if in.Shape()[i] != in.Shape()[i+half] {
			return status.InvalidArgumentf("Invalid shape %v: dimensions %d and %d do not match.", in.Shape(), i, i+half)
		}
	}
	shape := slices.Clone(in.Shape()[:half])
	n := int(shape.NumElements())
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	line := strided.View{Dims: []int{n}, Strides: []int{n + 1}}
	strided.Copy(out, strided.View{Dims: []int{n}, Strides: []int{1}}, in, line)
	return nil
}
