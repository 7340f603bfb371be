package ragged

import (
	"fmt"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// typeName is TensorFlow's type name of variants that hold a ragged tensor.
const typeName = "RaggedTensorVariant"

func init() {
	tensor.RegisterVariant(typeName, func(v tensor.EncodedVariant) (any, error) {
		if len(v.Tensors) == 0 {
			return nil, status.InvalidArgumentf("a variant that holds a ragged tensor has no values")
		}
		last := len(v.Tensors) - 1
		return &Tensor{v.Tensors[:last:last], v.Tensors[last]}, nil
	})
}

// Tensor is a ragged tensor in a variant. It owns references to its components and is immutable.
type Tensor struct {
	splits []tensor.Tensor // row splits, the outermost first
	values tensor.Tensor
}

// EncodeVariant returns the wire form of the tensor: the row splits, followed by the values.
func (r *Tensor) EncodeVariant() (tensor.EncodedVariant, error) {
	v := tensor.EncodedVariant{TypeName: typeName}
	for i := range r.splits {
		v.Tensors = append(v.Tensors, r.splits[i].Retain())
	}
	v.Tensors = append(v.Tensors, r.values.Retain())
	return v, nil
}

// String formats the tensor as TensorFlow's errors do.
func (r *Tensor) String() string {
	splits := "invalid"
	if n := len(r.splits); n > 0 {
		splits = r.splits[n-1].DType().String()
	}
	return fmt.Sprintf("RaggedTensorVariant(dtype=%v, ragged_rank=%d, splits_dtype=%s)", r.values.DType(), len(r.splits), splits)
}

// ZerosLike returns a ragged tensor of zeros with the same rows.
func (r *Tensor) ZerosLike() (any, error) {
	zeros, err := tensor.Zeros(r.values.DType(), r.values.Shape())
	return &Tensor{r.retainedSplits(), zeros}, err
}

func (r *Tensor) retainedSplits() []tensor.Tensor {
	out := membudget.Make[tensor.Tensor](len(r.splits))
	for i := range out {
		out[i] = r.splits[i].Retain()
	}
	return out
}

// AddVariant returns the sum of r and another ragged tensor with the same rows.
func (r *Tensor) AddVariant(other any) (any, error) {
	o, ok := other.(*Tensor)
	switch {
	case !ok:
		return nil, status.InvalidArgumentf("Trying to add a ragged tensor and a %T", other)
	case r.values.DType() != o.values.DType():
		return nil, status.InvalidArgumentf("Can't add RaggedTensorVariants of different dtypes. One is %v and the other is %v",
			r.values.DType(), o.values.DType())
	case len(r.splits) != len(o.splits):
		return nil, status.InvalidArgumentf("Can't add RaggedTensorVariants of different ragged rank. One is %d and the other is %d",
			len(r.splits), len(o.splits))
	case !slices.EqualFunc(r.splits, o.splits, sameElements):
		return nil, status.InvalidArgumentf("Can't add RaggedTensorVariants with different row_splits.")
	case !r.values.Shape().Equal(o.values.Shape()) || !slices.Contains(typeset.Numbers, r.values.DType()):
		return nil, status.InvalidArgumentf("Trying to add ragged values of type %v and of shapes %v and %v", r.values.DType(), r.values.Shape(), o.values.Shape())
	}
	sum, err := r.values.Clone()
	if err != nil {
		return nil, err
	}
	elementwise.Accumulate(elementwise.Add, &sum, &o.values)
	return &Tensor{r.retainedSplits(), sum}, nil
}

func sameElements(a, b tensor.Tensor) bool {
	return a.DType() == b.DType() && slices.Equal(a.Bytes(), b.Bytes())
}
