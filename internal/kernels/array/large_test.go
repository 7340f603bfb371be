package array

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestWhereInBlocks runs Where on tensors of several blocks, on several threads.
func TestWhereInBlocks(t *testing.T) {
	defer parallel.SetThreads(parallel.SetThreads(4))
	for _, shape := range []tensor.Shape{{50_000}, {50, 1000}, {10, 50, 100}} {
		vals := make([]float32, 50_000)
		var want []int64
		coords := make([]int64, len(shape))
		for i := range vals {
			if i*7919%13 < 4 {
				vals[i] = float32(i + 1)
				unravel(coords, int64(i), shape)
				want = append(want, coords...)
			}
		}
		in, err := tensor.FromSlice(shape, vals)
		if err != nil {
			t.Fatal(err)
		}
		out := kerneltest.Run(t, "Where", opdef.Attrs{"T": tensor.Float32}, in)
		if !slices.Equal(tensor.Values[int64](&out[0]), want) {
			t.Errorf("the places in shape %v are not right", shape)
		}
	}
}

// TestLongRange computes progressions longer than progressionBlock.
func TestLongRange(t *testing.T) {
	out := kerneltest.Run(t, "Range", opdef.Attrs{"Tidx": tensor.Int32}, tensor.Scalar(int32(-7)), tensor.Scalar(int32(-40_000)), tensor.Scalar(int32(-3)))
	for i, v := range tensor.Values[int32](&out[0]) {
		if want := int32(-7 - 3*i); v != want {
			t.Fatalf("number %d is %d, want %d", i, v, want)
		}
	}
	if n := out[0].NumElements(); n != 13_331 {
		t.Errorf("%d numbers, want 13331", n)
	}
}

// TestUnpackSharesMemory checks that Unpack does not copy contiguous slices, and that other slices
// are correct too.
func TestUnpackSharesMemory(t *testing.T) {
	in, err := tensor.FromSlice(tensor.Shape{1, 3, 2}, []int32{1, 2, 3, 4, 5, 6})
	if err != nil {
		t.Fatal(err)
	}
	for axis, want := range map[int][][]int32{1: {{1, 2}, {3, 4}, {5, 6}}, 2: {{1, 3, 5}, {2, 4, 6}}} {
		outs := kerneltest.Run(t, "Unpack", opdef.Attrs{"T": tensor.Int32, "num": int64(len(want)), "axis": int64(axis)}, in)
		for i, out := range outs {
			if got := tensor.Values[int32](&out); !slices.Equal(got, want[i]) {
				t.Errorf("slice %d along %d is %v, want %v", i, axis, got, want[i])
			}
			if shares := out.SharesBuffer(&in); shares != (axis == 1) {
				t.Errorf("slice %d along %d shares memory: %v", i, axis, shares)
			}
		}
	}
}
