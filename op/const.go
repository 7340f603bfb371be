package op

import (
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Const adds a constant with the value of v, which is copied: anything that [tensor.New] takes, or
// a tensor.
func Const(s *Scope, v any) Output {
	t, err := tensor.New(v)
	if err == nil {
		t, err = t.Clone()
	}
	if err != nil {
		s.Fail(err)
		return Output{}
	}
	return out(s.Add("Const", nil, opdef.Attrs{"value": t, "dtype": t.DType()}), 0)
}

// ConstOf adds a scalar constant of the given element type: v is converted, as far as the type can
// hold it.
func ConstOf(s *Scope, dtype tensor.DType, v float64) Output {
	t, err := tensor.FromFloat(dtype, v)
	if err != nil {
		s.Fail(err)
		return Output{}
	}
	return out(s.Add("Const", nil, opdef.Attrs{"value": t, "dtype": dtype}), 0)
}
