package ragged

import (
	"fmt"
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
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedTensorFromVariant", Doc: "Decodes ragged tensors from variants and stacks them.",
			In:    []string{"encoded_ragged: variant"},
			Out:   []string{"output_nested_splits: output_ragged_rank * Tsplits", "output_dense_values: Tvalues"},
			Attrs: []string{"input_ragged_rank: int >= -1", "output_ragged_rank: int >= 0", "Tvalues: type", "Tsplits: {int32, int64} = int64"},
			Shape: func(c *opdef.ShapeContext) error {
				in, out := c.Attrs.Int("input_ragged_rank"), c.Attrs.Int("output_ragged_rank")
				if c.In[0].RankKnown() && in >= 0 {
					if _, err := opdef.WithRank(c.In[0], out-in); err != nil {
						return err
					}
				}
				c.SetAll(shapefn.Of(shapefn.Unknown))
				c.Out[out] = shapefn.Shape{}
				return nil
			},
		},
		Kernels: kernel.ForTypes("Tvalues", newFromVariant, movable...),
	})
}

// stack assembles the outputs from ragged tensors in variants.
type stack struct {
	ctx      *kernel.Context
	in, out  int // ragged ranks of the variants and of the result
	splits   tensor.DType
	values   tensor.DType
	elements []*Tensor
}

func newFromVariant(c *kernel.Construction) (kernel.Kernel, error) {
	in, out := c.Attrs.Int("input_ragged_rank"), c.Attrs.Int("output_ragged_rank")
	splits, values := c.Attrs.Type("Tsplits"), c.Attrs.Type("Tvalues")
	return kernel.Func(func(ctx *kernel.Context) error {
		s := &stack{ctx: ctx, in: in, out: out, splits: splits, values: values}
		dims := ctx.Input(0).Shape()
		if err := s.setRanks(len(dims)); err != nil {
			return err
		}
		for i, v := range tensor.Values[tensor.VariantValue](ctx.Input(0)) {
			r, err := s.check(i, v)
			if err != nil {
				return err
			}
			s.elements = membudget.Append(s.elements, r)
		}
		switch {
		case len(dims) == 0:
			return s.single()
		case s.out == 0:
			return s.stackValues(tensor.Shape{int64(len(s.elements))})
		}
		return s.stackRagged(dims)
	}), nil
}

// setRanks infers the ragged rank of the variants if it is not given. rank is the rank of the
// tensor of variants.
func (s *stack) setRanks(rank int) error {
	if s.in == -1 {
		s.in = s.out - rank
		if s.out == 0 {
			s.in = max(s.in, 0)
		}
		if s.in < 0 {
			return status.InvalidArgumentf("Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, found "+
				"output_ragged_rank: %d, encoded_variant.dims(): %d, inferred input_ragged_rank: %d", s.out, rank, s.in)
		}
	}
	if (s.out != 0 || s.in != 0) && s.out != rank+s.in {
		return status.InvalidArgumentf("output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: %d, "+
			"input_ragged_rank: %d, encoded_variant.dims(): %d.", s.out, s.in, rank)
	}
	return nil
}

// describe describes a value that is no ragged tensor. An encoded value may be large, so only its
// type is named.
func describe(v any) string {
	if e, ok := v.(tensor.EncodedVariant); ok {
		return "Variant<type: " + e.TypeName[:min(len(e.TypeName), 200)] + ">"
	}
	return fmt.Sprint(v)
}

// check returns the ragged tensor in element i.
func (s *stack) check(i int, v tensor.VariantValue) (*Tensor, error) {
	r, ok := v.Value.(*Tensor)
	switch {
	case !ok && v.Value == nil:
		return nil, status.InvalidArgumentf("Input Variant element at index %d doesn't hold a RaggedTensorVariant: Variant<type: INVALID value: >", i)
	case !ok:
		return nil, status.InvalidArgumentf("Input Variant element at index %d doesn't hold a RaggedTensorVariant: %s", i, describe(v.Value))
	case len(r.splits) != s.in:
		return nil, status.InvalidArgumentf("Encoded input RaggedTensorVariant has ragged_rank=%d.  Expected ragged_rank=%d.", len(r.splits), s.in)
	case r.values.DType() != s.values:
		return nil, status.InvalidArgumentf("Expected values Tensor dtype: %v, found: %v", s.values, r.values.DType())
	case r.values.Rank() < 1 && s.out != 0:
		return nil, status.InvalidArgumentf("Ragged values must have rank >= 1; encoded scalar element at index %d has values Tensor: %v", i, &r.values)
	}
	for k := range r.splits {
		t := &r.splits[k]
		switch {
		case t.DType() != s.splits:
			return nil, status.InvalidArgumentf("Expected row_splits Tensor dtype: %v, found: %v", s.splits, t.DType())
		case t.Rank() != 1:
			return nil, status.InvalidArgumentf("Ragged splits must have rank 1; encoded scalar element at index %d has splits Tensor %v", i, t)
		case t.NumElements() == 0:
			return nil, status.InvalidArgumentf("Ragged splits may not be empty")
		}
	}
	return r, nil
}

// single sets the outputs to the only ragged tensor.
func (s *stack) single() error {
	r := s.elements[0]
	for i := range r.splits {
		s.ctx.SetOutput(i, r.splits[i].Retain())
	}
	s.ctx.SetOutput(len(r.splits), r.values.Retain())
	return nil
}

// stackRagged sets the outputs to the stack of all tensors, with the outer dimensions dims.
func (s *stack) stackRagged(dims tensor.Shape) error {
	next := 0
	for _, outer := range outerSplits(dims) {
		if err := putInts(s.ctx, next, outer); err != nil {
			return err
		}
		next++
	}
	// The splits of the tensors into rows, followed by their own splits, concatenated.
	rows := []int64{0}
	for _, r := range s.elements {
		n := 0
		if s.in > 0 {
			n = r.splits[0].NumElements() - 1
		} else {
			n = r.values.Dim(0)
		}
		rows = membudget.Append(rows, rows[len(rows)-1]+int64(n))
	}
	if err := putInts(s.ctx, next, rows); err != nil {
		return err
	}
	for i := range s.in {
		inner := []int64{0}
		for _, r := range s.elements {
			base := inner[len(inner)-1]
			for _, end := range intarg.Values(&r.splits[i])[1:] {
				inner = membudget.Append(inner, base+end)
			}
		}
		next++
		if err := putInts(s.ctx, next, inner); err != nil {
			return err
		}
	}
	return s.concatValues()
}

// concatValues sets the last output to the concatenated values of all tensors.
func (s *stack) concatValues() error {
	if len(s.elements) == 0 { // the shape of the values is unknown
		_, err := s.ctx.Allocate(s.out, tensor.Shape{0})
		return err
	}
	first, n := s.elements[0].values.Shape(), int64(0)
	for i, r := range s.elements {
		shape := r.values.Shape()
		if len(shape) != len(first) {
			return status.InvalidArgumentf("Rank of values must match for all components; values shape at index 0: %v, values shape at index %d: %v", first, i, shape)
		}
		if !shape[1:].Equal(first[1:]) {
			return status.InvalidArgumentf("All flat_values must have compatible shapes.  Shape at index 0: %v.  Shape at index %d: %v.  If you are using "+
				"tf.map_fn, then you may need to specify an explicit fn_output_signature with appropriate ragged_rank, and/or convert output tensors to "+
				"RaggedTensors.", first[1:], i, shape[1:])
		}
		n += shape[0]
	}
	return s.putValues(slices.Concat(tensor.Shape{n}, first[1:]))
}

// stackValues sets the last output to the values of all tensors, which have no rows, stacked along
// new dimensions.
func (s *stack) stackValues(dims tensor.Shape) error {
	if len(s.elements) == 0 {
		_, err := s.ctx.Allocate(0, tensor.Shape{0})
		return err
	}
	first := s.elements[0].values.Shape()
	for i, r := range s.elements {
		if shape := r.values.Shape(); !shape.Equal(first) {
			return status.InvalidArgumentf("All flat_values must have compatible shapes.  Shape at index 0: %v.  Shape at index %d: %v", first, i, shape)
		}
	}
	return s.putValues(slices.Concat(dims, first))
}

func (s *stack) putValues(shape tensor.Shape) error {
	out, err := s.ctx.Allocate(s.out, shape)
	if err != nil {
		return err
	}
	at := 0
	for _, r := range s.elements {
		at += copyElements(out, at, &r.values, 0, r.values.NumElements())
	}
	return nil
}
