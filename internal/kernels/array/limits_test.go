package array

import (
	"math"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// shaped returns a tensor with the given elements.
func shaped[T tensor.Elem](t *testing.T, shape tensor.Shape, vals ...T) tensor.Tensor {
	t.Helper()
	out, err := tensor.FromSlice(shape, vals)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The sum of these sizes is small modulo 2^64.
func TestSumsOfPaddings(t *testing.T) {
	const most = math.MaxInt64
	sides := shaped[int64](t, tensor.Shape{1, 2}, most, most)
	for _, c := range []struct {
		op     string
		inputs []tensor.Tensor
	}{
		{"Pad", []tensor.Tensor{shaped[float32](t, tensor.Shape{3}, 1, 2, 3), sides}},
		{"PadV2", []tensor.Tensor{shaped[float32](t, tensor.Shape{3}, 1, 2, 3), sides, tensor.Scalar[float32](1)}},
		{"SpaceToBatchND", []tensor.Tensor{shaped[float32](t, tensor.Shape{1, 3}, 1, 2, 3), tensor.Vector[int64](1), sides}},
		{"BatchToSpaceND", []tensor.Tensor{shaped[float32](t, tensor.Shape{1, 3}, 1, 2, 3), tensor.Vector[int64](1), sides}},
	} {
		attrs := opdef.Attrs{"T": tensor.Float32, "Tpaddings": tensor.Int64, "Tblock_shape": tensor.Int64, "Tcrops": tensor.Int64}
		if _, err := kerneltest.Try(c.op, attrs, c.inputs...); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%s: %v", c.op, err)
		}
	}
}

// The vectors may have any length, although they are meant to be shapes.
func TestMemoryOfBroadcasts(t *testing.T) {
	long, err := tensor.Zeros(tensor.Int32, tensor.Shape{16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"BroadcastArgs", "BroadcastGradientArgs"} {
		kerneltest.WantExhausted(t, 256<<20, op, opdef.Attrs{"T": tensor.Int32}, long, tensor.Vector[int32]())
	}
	_, err = kerneltest.Try("BroadcastArgs", opdef.Attrs{"T": tensor.Int32}, long, tensor.Vector[int32](2))
	if err == nil || len(err.Error()) > 1000 {
		t.Error("want a short error")
	}
}

// Strings may share a long text, which is read for each of them.
func TestUniqueEndsWithStep(t *testing.T) {
	text := kerneltest.SharedText(2, 1)
	kerneltest.WantCancelled(t, "Unique", opdef.Attrs{"T": tensor.String}, text)
	kerneltest.WantCancelled(t, "ListDiff", opdef.Attrs{"T": tensor.String}, text, text)
}
