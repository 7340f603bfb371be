package drivertest

import (
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func TestBitsAndValues(t *testing.T) {
	for _, typ := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
		r := random(typ, 1000, 4)
		for i, want := range r.values {
			if got := value(typ, r.bytes[i*typ.Size():]); got != want || want < -2 || want > 2 {
				t.Fatalf("%v: element %d is %g, and its bits %g", typ, i, want, got)
			}
		}
	}
}
