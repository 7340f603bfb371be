package array

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name:  "UnravelIndex",
		Doc:   "Converts flat indices to coordinates in a tensor of shape dims, one column per index.",
		In:    []string{"indices: Tidx", "dims: Tidx"},
		Out:   []string{"output: Tidx"},
		Attrs: []string{"Tidx: {int32, int64} = int32"},
		Shape: unravelShape,
	}, unravelIndex)
}

func unravelShape(c *opdef.ShapeContext) error {
	indices := c.In[0]
	dims, err := opdef.WithRank(c.In[1], 1)
	if err != nil || !indices.RankKnown() {
		return err
	}
	if indices.Rank() == 0 {
		c.Out[0] = shapefn.Of(dims.Dim(0))
	} else {
		c.Out[0] = shapefn.Of(dims.Dim(0), shapefn.Count(indices))
	}
	return nil
}

func unravelIndex(ctx *kernel.Context) error {
	indices, dims := ctx.Input(0), ctx.Input(1)
	if indices.Rank() > 1 {
		return status.InvalidArgumentf("The indices can only be scalar or vector, got \"%v\"", indices.Shape())
	}
	if indices.NumElements() == 0 {
		return status.InvalidArgumentf("received empty tensor indices: Tensor<type: %v shape: %v values: >", indices.DType(), indices.Shape())
	}
	if dims.Rank() != 1 {
		return status.InvalidArgumentf("The indices can only be 1-D, got \"%v\"", dims.Shape())
	}
	shape := tensor.Shape(intarg.Values(dims))
	total, err := checkDims(shape, dims.DType())
	if err != nil {
		return err
	}
	at := intarg.Values(indices)
	n := len(at)
	coords, all := membudget.Make[int64](len(shape)), membudget.Make[int64](len(shape)*n)
	p := stepctx.Progress{Context: ctx.Context(), Each: 8 * (len(shape) + 1)}
	for i, x := range at {
		if err := p.Pass(0); err != nil {
			return err
		}
		if x >= total {
			return status.InvalidArgumentf("index is out of bound as with dims")
		}
		unravel(coords, x, shape)
		for k, c := range coords {
			all[k*n+i] = c
		}
	}
	outShape := tensor.Shape{int64(len(shape))}
	if indices.Rank() == 1 {
		outShape = append(outShape, int64(n))
	}
	out, err := ctx.Allocate(0, outShape)
	if err == nil {
		intarg.Set(out, all)
	}
	return err
}

func checkDims(shape tensor.Shape, dtype tensor.DType) (total int64, err error) {
	limit := int64(math.MaxInt64)
	if dtype == tensor.Int32 {
		limit = math.MaxInt32
	}
	total = 1
	for i, d := range shape {
		switch {
		case d == 0:
			return 0, status.InvalidArgumentf("Input dims cannot contain a dim of zero, but dims contains zero at index %d", i)
		case d < 0:
			return 0, status.InvalidArgumentf("Input dims cannot be negative. Got dim = %d at index %d", d, i)
		case total > limit/d:
			return 0, status.InvalidArgumentf("Input dims product is causing integer overflow: (%s)", summary(shape))
		}
		total *= d
	}
	return total, nil
}
