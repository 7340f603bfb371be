package op

import (
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Const adds a constant with a copy of v, which is a [tensor.Tensor] or any value that [tensor.New]
// accepts.
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

// ConstOf adds a scalar constant of the given element type. v is converted by Go's rules, so
// integers are truncated towards zero.
func ConstOf(s *Scope, dtype tensor.DType, v float64) Output {
	t, err := tensor.FromFloat(dtype, v)
	if err != nil {
		s.Fail(err)
		return Output{}
	}
	return out(s.Add("Const", nil, opdef.Attrs{"value": t, "dtype": dtype}), 0)
}
