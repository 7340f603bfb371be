package mathops

import (
	"bytes"
	"math"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/tensor"
)

// TestConversionsAgree compares vector code with the elementwise loops. Recorded cases check those
// loops.
func TestConversionsAgree(t *testing.T) {
	const n = 1100
	var floats [n]float32
	for i := range floats {
		floats[i] = float32(math.Sin(float64(i))) * float32(math.Exp2(float64(i%40-4)))
	}
	copy(floats[500:], []float32{0, float32(math.Copysign(0, -1)), 0.5, -0.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1 << 31, -1 << 31})
	base, err := tensor.FromSlice(tensor.Shape{n}, floats[:])
	if err != nil {
		t.Fatal(err)
	}
	types := []tensor.DType{
		tensor.Bool, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16, tensor.Int32, tensor.Int64, tensor.Float16, tensor.BFloat16,
		tensor.Float32, tensor.Float64,
	}
	convertAt := func(l simd.Level, in *tensor.Tensor, dst tensor.DType) tensor.Tensor {
		defer simd.Force(simd.Force(l))
		out, err := tensor.Zeros(dst, in.Shape())
		if err != nil {
			t.Fatal(err)
		}
		if in.DType() == dst {
			copy(out.Bytes(), in.Bytes())
		} else {
			conversion(in.DType(), dst)(&out, in, 0, n)
		}
		return out
	}
	for _, src := range types {
		in := convertAt(simd.Generic, &base, src)
		for _, dst := range types {
			want := convertAt(simd.Generic, &in, dst)
			for _, l := range simd.Levels()[1:] {
				if got := convertAt(l, &in, dst); !bytes.Equal(got.Bytes(), want.Bytes()) {
					t.Errorf("%v: %v to %v differs", l, src, dst)
				}
			}
		}
	}
}
