package sparse

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name:  "DeserializeSparse",
		Doc:   "Deserializes sparse tensors and stacks them along new leading dimensions.",
		In:    []string{"serialized_sparse: Tserialized"},
		Out:   []string{"sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"},
		Attrs: []string{"dtype: type", "Tserialized: {string, variant} = string"},
		Shape: func(c *opdef.ShapeContext) error {
			if _, err := opdef.WithRankAtLeast(c.In[0], 1); err != nil {
				return err
			}
			if err := shapefn.CheckDim(c.In[0].Dim(-1), 3); err != nil {
				return err
			}
			return anyCOO(c)
		},
	}, deserialize)
	kernel.RegisterFunc(opdef.Def{
		Name:  "DeserializeManySparse",
		Doc:   "Deserializes sparse tensors, one per row, and stacks them along a new first dimension.",
		In:    []string{"serialized_sparse: string"},
		Out:   []string{"sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"},
		Attrs: []string{"dtype: type"},
		Shape: func(c *opdef.ShapeContext) error {
			s, err := opdef.WithRank(c.In[0], 2)
			if err != nil {
				return err
			}
			if err := shapefn.CheckDim(s.Dim(1), 3); err != nil {
				return err
			}
			return anyCOO(c)
		},
	}, deserialize)
}

func deserialize(ctx *kernel.Context) error {
	packed := ctx.Input(0)
	switch {
	case packed.Rank() == 0:
		return status.InvalidArgumentf("Serialized sparse should have non-zero rank %v", packed.Shape())
	case packed.Dim(packed.Rank()-1) != 3:
		return status.InvalidArgumentf("Serialized sparse should have 3 as the last dimension %v", packed.Shape())
	case packed.NumElements() == 0:
		return status.InvalidArgumentf("Serialized sparse should have at least 1 serialized tensor, but has a zero dimension %v", packed.Shape())
	}
	return unpack(ctx, packed)
}

// unpack sets the outputs to the sparse tensors in packed, stacked along its dimensions before the
// last.
func unpack(ctx *kernel.Context, packed *tensor.Tensor) error {
	outer := packed.Shape()[:packed.Rank()-1]
	parts := membudget.Make[*coo](outer.NumElements())
	defer func() {
		for _, p := range parts {
			if p != nil {
				p.values.Release()
			}
		}
	}()
	var inner tensor.Shape
	for i := range parts {
		if err := ctx.Context().Err(); err != nil { // texts may share their memory
			return err
		}
		var err error
		if parts[i], err = unpackOne(packed, i, ctx.OutputType(1)); err != nil {
			return err
		}
		if i == 0 {
			inner = slices.Clone(parts[0].shape)
		}
		if len(inner) != parts[i].rank {
			return status.InvalidArgumentf("Inconsistent shape across SparseTensors: rank prior to SparseTensor[%d] was: %d but rank of SparseTensor[%d] is: %d",
				i, len(inner), i, parts[i].rank)
		}
		for d := range inner {
			inner[d] = max(inner[d], parts[i].shape[d])
		}
	}
	return stack(ctx, parts, outer, inner)
}

// stack sets the outputs to the given sparse tensors, stacked along the dimensions outer. Each has
// the rank of inner.
func stack(ctx *kernel.Context, parts []*coo, outer, inner tensor.Shape) error {
	n, shape := 0, slices.Concat(outer, inner)
	for _, p := range parts {
		n += p.n
	}
	if err := putVector(ctx, 2, shape); err != nil {
		return err
	}
	values, err := ctx.Allocate(1, tensor.Shape{int64(n)})
	if err != nil {
		return err
	}
	ix, at := membudget.MakeCap[int64](n*len(shape)), 0
	position := membudget.Make[int64](len(outer))
	for i, p := range parts {
		for d, rest := len(outer)-1, int64(i); d >= 0; d-- {
			position[d] = rest % outer[d]
			rest /= outer[d]
		}
		for j := range p.n {
			ix = membudget.AppendAll(membudget.AppendAll(ix, position...), p.at(j)...)
		}
		block := values.Rows(at, at+p.n)
		gather(&block, p.values, longs(p.n))
		at += p.n
	}
	return putMatrix(ctx, 0, ix, n, len(shape))
}

// unpackOne returns sparse tensor i of packed. The caller releases the values.
func unpackOne(packed *tensor.Tensor, i int, dtype tensor.DType) (*coo, error) {
	var part [3]tensor.Tensor
	for j := range part {
		t, ok, err := decode(packed, 3*i+j)
		if err == nil && !ok {
			err = status.InvalidArgumentf("Could not get a tensor from serialized_sparse[%d, %d]", i, j)
		}
		part[j] = t
		if err == nil {
			err = checkPacked(part[:j+1], i, dtype)
		}
		if err != nil {
			for k := range part {
				part[k].Release()
			}
			return nil, err
		}
	}
	// Indices and shape are copied below, because their memory is released here.
	s, err := makeCOO(&part[0], &part[1], intarg.Values(&part[2]))
	if err == nil {
		s.ix, s.shape = membudget.AppendAll(nil, s.ix...), membudget.AppendAll(nil, s.shape...)
	} else {
		part[1].Release()
	}
	part[0].Release()
	part[2].Release()
	return s, err
}

// checkPacked checks the last component of sparse tensor i in part, which has indices, values and
// shape in this order.
func checkPacked(part []tensor.Tensor, i int, dtype tensor.DType) error {
	last := &part[len(part)-1]
	switch len(part) {
	case 1:
		if last.Rank() != 2 {
			return status.InvalidArgumentf("Expected serialized_sparse[%d, 0] to represent an index matrix but received shape %v", i, last.Shape())
		}
		if last.DType() != tensor.Int64 {
			return status.InvalidArgumentf("Expected serialized_sparse[%d, 0] to be a matrix of DT_INT64 but received dtype %v", i, last.DType())
		}
	case 2:
		if last.Rank() != 1 {
			return status.InvalidArgumentf("Expected serialized_sparse[%d, 1] to represent a values vector but received shape %v", i, last.Shape())
		}
		if last.DType() != dtype {
			return status.InvalidArgumentf("Requested SparseTensor of type %v but SparseTensor[%d].values.dtype() == %v", dtype, i, last.DType())
		}
		if part[0].Dim(0) != last.Dim(0) {
			return status.InvalidArgumentf("Expected row counts of SparseTensor[%d].indices and SparseTensor[%d].values to match but they do not: %d vs. %d",
				i, i, part[0].Dim(0), last.Dim(0))
		}
	case 3:
		if last.Rank() != 1 {
			return status.InvalidArgumentf("Expected serialized_sparse[%d, 1] to be a shape vector but its shape is %v", i, last.Shape())
		}
		if last.DType() != tensor.Int64 {
			return status.InvalidArgumentf("Expected serialized_sparse[%d, 2] to be a vector of DT_INT64 but received dtype %v", i, last.DType())
		}
		if part[0].Dim(1) != last.Dim(0) {
			return status.InvalidArgumentf("Expected column counts of SparseTensor[%d].indices to match size of SparseTensor[%d].shape but they do not: %d vs. %d",
				i, i, part[0].Dim(1), last.Dim(0))
		}
	}
	return nil
}
