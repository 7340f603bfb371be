package data

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Gradients of conditionals add optionals. The intermediate values of the branch not taken are
// empty optionals.

// summand is a variant value that supports zeros and addition.
type summand interface {
	ZerosLike() (any, error)
	AddVariant(other any) (any, error)
}

// ZerosLike returns an optional of zeros with the shapes of the value of o.
func (o *optional) ZerosLike() (any, error) {
	if o.value == nil {
		return o, nil
	}
	out := &optional{value: element(membudget.Make[tensor.Tensor](len(o.value)))}
	for i := range o.value {
		var err error
		if out.value[i], err = zeros(&o.value[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func zeros(t *tensor.Tensor) (tensor.Tensor, error) {
	zero, err := tensor.Zeros(t.DType(), t.Shape())
	if err != nil || t.DType() != tensor.Variant {
		return zero, err
	}
	to := tensor.Values[tensor.VariantValue](&zero)
	for i, v := range tensor.Values[tensor.VariantValue](t) {
		n, ok := v.Value.(summand)
		if !ok {
			return zero, status.InvalidArgumentf("No unary variant unary_op function found for op ZEROS_LIKE Variant type_name: %T", v.Value)
		}
		if to[i].Value, err = n.ZerosLike(); err != nil {
			return zero, err
		}
	}
	return zero, nil
}

// AddVariant returns the sum of two optionals.
func (o *optional) AddVariant(other any) (any, error) {
	p, ok := other.(*optional)
	switch {
	case !ok:
		return nil, status.InvalidArgumentf("Trying to add an optional and a %T", other)
	case (o.value == nil) != (p.value == nil):
		return nil, status.InvalidArgumentf("Cannot add optionals because one has a value and the other doesn't.")
	case o.value == nil:
		return o, nil
	case len(o.value) != len(p.value):
		return nil, status.InvalidArgumentf("Cannot add optionals because they have different numbers of components (%d vs. %d).",
			len(o.value), len(p.value))
	}
	out := &optional{value: element(membudget.Make[tensor.Tensor](len(o.value)))}
	for i := range o.value {
		var err error
		if out.value[i], err = sum(&o.value[i], &p.value[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func sum(a, b *tensor.Tensor) (tensor.Tensor, error) {
	if a.DType() != b.DType() || !a.Shape().Equal(b.Shape()) {
		return tensor.Tensor{}, status.InvalidArgumentf("Trying to add components of types %v and %v and of shapes %v and %v",
			a.DType(), b.DType(), a.Shape(), b.Shape())
	}
	out, err := a.Clone()
	if err != nil {
		return out, err
	}
	if slices.Contains(typeset.Numbers, a.DType()) {
		elementwise.Accumulate(elementwise.Add, &out, b)
		return out, nil
	}
	if a.DType() != tensor.Variant {
		return out, status.InvalidArgumentf("Trying to add unsupported dtype %d", a.DType())
	}
	values, others := tensor.Values[tensor.VariantValue](&out), tensor.Values[tensor.VariantValue](b)
	for i, v := range values {
		n, ok := v.Value.(summand)
		if !ok {
			return out, status.InvalidArgumentf("No binary variant binary_op function found for op ADD Variant type_name: %T", v.Value)
		}
		if values[i].Value, err = n.AddVariant(others[i].Value); err != nil {
			return out, err
		}
	}
	return out, nil
}
