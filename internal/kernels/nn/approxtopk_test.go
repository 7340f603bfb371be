package nn

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestApproxTopK tests what TensorFlow's CPU kernel does not support: smallest values, dimensions
// other than the last, and more values than k.
func TestApproxTopK(t *testing.T) {
	x := matrix(t, 2, 3, 1, 2, 6, 5, 4)
	for _, tt := range []struct {
		attrs   opdef.Attrs
		values  []float32
		indices []int32
	}{
		{opdef.Attrs{"T": tensor.Float32, "k": int64(2), "reduction_dimension": int64(0)}, []float32{5, 6, 3, 4}, []int32{2, 1, 0, 2}},
		{opdef.Attrs{"T": tensor.Float32, "k": int64(1), "is_max_k": false}, []float32{1, 2, 4}, []int32{1, 0, 1}},
		{opdef.Attrs{"T": tensor.Float32, "k": int64(1), "aggregate_to_topk": false}, []float32{3, 1, 6, 2, 5, 4}, []int32{0, 1, 1, 0, 0, 1}},
	} {
		out := kerneltest.Run(t, "ApproxTopK", tt.attrs, x)
		if got := tensor.Values[float32](&out[0]); !slices.Equal(got, tt.values) {
			t.Errorf("%v: got %v, want %v", tt.attrs, got, tt.values)
		}
		if got := tensor.Values[int32](&out[1]); !slices.Equal(got, tt.indices) {
			t.Errorf("%v: got positions %v, want %v", tt.attrs, got, tt.indices)
		}
	}
	large := make([]float32, 200)
	large[150] = 1
	attrs := opdef.Attrs{"T": tensor.Float32, "k": int64(2), "aggregate_to_topk": false, "reduction_input_size_override": int64(1_000_000)}
	out := kerneltest.Run(t, "ApproxTopK", attrs, matrix(t, 200, large...))
	if out[0].NumElements() != 256 || tensor.Values[int32](&out[1])[0] != 150 || tensor.Values[int32](&out[1])[255] != -1 {
		t.Errorf("got %d values at %v", out[0].NumElements(), tensor.Values[int32](&out[1]))
	}
}

func matrix(t *testing.T, columns int64, vals ...float32) tensor.Tensor {
	t.Helper()
	m, err := tensor.FromSlice(tensor.Shape{int64(len(vals)) / columns, columns}, vals)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
