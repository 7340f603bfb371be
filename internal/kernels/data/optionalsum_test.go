package data

import (
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func TestAddOptionals(t *testing.T) {
	of := func(v float32) *optional { return &optional{value: element{tensor.Vector(v, 2*v)}} }
	nothing := &optional{}
	nested := func(v float32) *optional { return &optional{value: element{of(v).tensor()}} }
	for _, tt := range []struct {
		a, b *optional
		want float32
	}{{of(1), of(2), 3}, {nested(1), nested(2), 3}} {
		got, err := tt.a.AddVariant(tt.b)
		if err != nil {
			t.Fatal(err)
		}
		if v := first(t, got); v != tt.want {
			t.Errorf("the sum is %v, want %v", v, tt.want)
		}
		zero, err := got.(*optional).ZerosLike()
		if err != nil {
			t.Fatal(err)
		}
		if v := first(t, zero); v != 0 {
			t.Errorf("the zero is %v", v)
		}
	}
	if z, err := nothing.ZerosLike(); err != nil || z.(*optional).value != nil {
		t.Errorf("zero of an empty optional: %v, %v", z, err)
	}
	if z, err := nothing.AddVariant(nothing); err != nil || z.(*optional).value != nil {
		t.Errorf("sum of empty optionals: %v, %v", z, err)
	}
	for _, bad := range []any{
		1, nothing, &optional{value: element{tensor.Vector[float32](1)}}, &optional{value: element{tensor.Vector[int32](1, 2)}}, &optional{value: element{}},
	} {
		if _, err := of(1).AddVariant(bad); err == nil {
			t.Errorf("adding %v succeeds", bad)
		}
	}
	if _, err := (&optional{value: element{tensor.Vector("a")}}).AddVariant(&optional{value: element{tensor.Vector("b")}}); err == nil {
		t.Error("adding strings succeeds")
	}
}

// first returns the first number in an optional.
func first(t *testing.T, v any) float32 {
	t.Helper()
	o := v.(*optional)
	if x := &o.value[0]; x.DType() == tensor.Float32 {
		return tensor.Values[float32](x)[0]
	}
	return first(t, tensor.Value[tensor.VariantValue](&o.value[0]).Value)
}
