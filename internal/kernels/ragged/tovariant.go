package ragged

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedTensorToVariant", Doc: "Encodes a ragged tensor, or each of its rows, in a variant.",
			In:    []string{"rt_nested_splits: RAGGED_RANK * Tsplits", "rt_dense_values: Tvalues"},
			Out:   []string{"encoded_ragged: variant"},
			Attrs: []string{"RAGGED_RANK: int >= 0", "Tvalues: type", "Tsplits: {int32, int64} = int64", "batched_input: bool"},
			Shape: toVariantShape,
		},
		Kernels: kernel.ForTypes("Tvalues", newToVariant, movable...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedTensorToVariantGradient", Doc: "Computes the gradient of RaggedTensorToVariant with respect to the values.",
			In:    []string{"encoded_ragged_grad: variant", "row_splits: Tsplits", "dense_values_shape: int32"},
			Out:   []string{"dense_values_grad: Tvalues"},
			Attrs: []string{"Tvalues: type", "Tsplits: {int32, int64} = int64"},
			Shape: opdef.ValueShape(2),
		},
		Kernels: kernel.ForTypes("Tvalues", kernel.Stateless(toVariantGrad), movable...),
	})
}

func toVariantShape(c *opdef.ShapeContext) error {
	n := c.Attrs.Int("RAGGED_RANK")
	if _, err := opdef.WithRankAtLeast(c.In[n], 1); err != nil {
		return err
	}
	for _, s := range c.In[:n] {
		if _, err := opdef.WithRank(s, 1); err != nil {
			return err
		}
	}
	if !c.Attrs.Bool("batched_input") {
		c.Out[0] = shapefn.Of()
		return nil
	}
	rows, err := shapefn.Minus(c.In[0].Dim(0), 1)
	c.Out[0] = shapefn.Of(rows)
	return err
}

func newToVariant(c *kernel.Construction) (kernel.Kernel, error) {
	n, batched := c.Attrs.Int("RAGGED_RANK"), c.Attrs.Bool("batched_input")
	return kernel.Func(func(ctx *kernel.Context) error {
		values := ctx.Input(n)
		if n > 0 && values.Rank() == 0 {
			return status.InvalidArgumentf("Requires flat_values to have rank>=1 when nested_row_splits is not empty, but is 0.")
		}
		for i := n - 1; i >= 0; i-- {
			count := values.Dim(0)
			if i < n-1 {
				count = ctx.Input(i+1).NumElements() - 1
			}
			if err := checkSplits(ctx.Input(i), count); err != nil {
				return err
			}
		}
		if batched {
			return putRows(ctx, n)
		}
		whole := &Tensor{values: values.Retain()}
		for _, s := range inputs(ctx, 0, n) {
			whole.splits = append(whole.splits, s.Retain())
		}
		ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: whole}))
		return nil
	}), nil
}

// rowSplitsMemory is about the memory of the splits of a row in bytes: their header and buffer.
const rowSplitsMemory = 200

// putRows sets output 0 to a vector of the rows of a ragged tensor, which share its values.
func putRows(ctx *kernel.Context, n int) error {
	values, splits := ctx.Input(n), nested(ctx, n)
	rows := 0
	switch {
	case n > 0:
		rows = len(splits[0]) - 1
	case values.Rank() == 0:
		return status.InvalidArgumentf("Can't unbatch rank-0 tensor.")
	default:
		rows = values.Dim(0)
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(rows)})
	if err != nil {
		return err
	}
	dst := tensor.Values[tensor.VariantValue](out)
	var meter membudget.Meter
	for row := range dst {
		lo, hi := int64(row), int64(row+1)
		meter.MustTake(n*rowSplitsMemory + int(unsafe.Sizeof(Tensor{})))
		r := &Tensor{}
		for i, s := range splits {
			if lo, hi = s[lo], s[hi]; i == n-1 {
				break
			}
			inner, err := shifted(splits[i+1][lo:hi+1], ctx.Input(0).DType())
			if err != nil {
				return err
			}
			r.splits = append(r.splits, inner)
		}
		part := values.Rows(int(lo), int(hi))
		if n == 0 {
			if part, err = part.WithShape(values.Shape()[1:]); err != nil {
				return err
			}
		}
		r.values = part.Retain()
		dst[row].Value = r
	}
	return nil
}

// shifted returns row splits shifted to start at 0.
func shifted(splits []int64, dtype tensor.DType) (tensor.Tensor, error) {
	vals := membudget.AppendAll(nil, splits...)
	for i := range vals {
		vals[i] -= splits[0]
	}
	t, err := tensor.Alloc(dtype, tensor.Shape{int64(len(vals))})
	if err == nil {
		intarg.Set(&t, vals)
	}
	return t, err
}

func toVariantGrad(ctx *kernel.Context) error {
	variants, rowSplits := tensor.Values[tensor.VariantValue](ctx.Input(0)), ctx.Input(1)
	shape, err := intarg.Shape(intarg.Values(ctx.Input(2)))
	if err != nil {
		return err
	}
	if rowSplits.Rank() > 0 {
		if err := checkSplits(rowSplits, -1); err != nil {
			return err
		}
	}
	if len(variants) == 1 {
		if r, ok := variants[0].Value.(*Tensor); ok {
			if r.values.DType() != ctx.OutputType(0) {
				return status.InvalidArgumentf("Expected values Tensor dtype: %v, found: %v", ctx.OutputType(0), r.values.DType())
			}
			ctx.SetOutput(0, r.values.Retain())
			return nil
		}
	}
	out, err := ctx.AllocateZeros(0, shape)
	if err != nil {
		return err
	}
	return joinRows(out, variants, intarg.Values(rowSplits))
}

// joinRows sets the elements of out, which are zero, to the concatenated values of ragged tensors.
// An empty variant represents a row of zeros.
func joinRows(out *tensor.Tensor, variants []tensor.VariantValue, splits []int64) error {
	each := int64(1)
	if out.Rank() > 0 {
		each = out.Shape()[1:].NumElements()
	}
	at := 0
	for i, v := range variants {
		r, ok := v.Value.(*Tensor)
		switch {
		case !ok && i+1 >= len(splits):
			return status.InvalidArgumentf("row_splits has %d elements for %d rows", len(splits), len(variants))
		case !ok:
			at += int((splits[i+1] - splits[i]) * each)
			continue
		case r.values.DType() != out.DType() || at+r.values.NumElements() > out.NumElements():
			return status.InvalidArgumentf("row %d is of type %v and shape %v, which does not fit into %v%v", i, r.values.DType(), r.values.Shape(), out.DType(), out.Shape())
		}
		at += copyElements(out, at, &r.values, 0, r.values.NumElements())
	}
	if at != out.NumElements() {
		return status.InvalidArgumentf("the rows have %d elements, not %d", at, out.NumElements())
	}
	return nil
}
