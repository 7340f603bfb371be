package typeset_test

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/tensor"
)

func TestSets(t *testing.T) {
	for name, c := range map[string]struct{ got, want []tensor.DType }{
		"Join":    {typeset.Join(typeset.Complex, typeset.Float8), []tensor.DType{tensor.Complex64, tensor.Complex128, tensor.Float8E5M2, tensor.Float8E4M3}},
		"With":    {typeset.With(typeset.Complex, tensor.Bool), []tensor.DType{tensor.Complex64, tensor.Complex128, tensor.Bool}},
		"Without": {typeset.Without(typeset.Floats, tensor.Float16, tensor.Float64), []tensor.DType{tensor.BFloat16, tensor.Float32}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if len(typeset.Floats) != 4 || len(typeset.Complex) != 2 {
		t.Error("With or Without changed a set")
	}
}

// TestAllTypesOnce checks that no type is in All twice, and that All contains the other sets.
func TestAllTypesOnce(t *testing.T) {
	seen := map[tensor.DType]bool{}
	for _, d := range typeset.All {
		if seen[d] {
			t.Errorf("%v is in All twice", d)
		}
		seen[d] = true
	}
	for _, set := range [][]tensor.DType{typeset.Common, typeset.Plain, typeset.Numbers, typeset.Quantized, typeset.Nibbles} {
		for _, d := range set {
			if !seen[d] {
				t.Errorf("%v is not in All", d)
			}
		}
	}
}
