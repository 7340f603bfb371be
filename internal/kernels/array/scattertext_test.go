package array

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Texts that are scattered to one element are written once, and ask for their memory.
func TestScatterOfTexts(t *testing.T) {
	attrs := opdef.Attrs{"T": tensor.String, "Tindices": tensor.Int32}
	zeros := func(n int64) tensor.Tensor {
		z, err := tensor.Zeros(tensor.Int32, tensor.Shape{n, 1})
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	kerneltest.WantExhausted(t, 32<<20, "ScatterNd", attrs, zeros(64), kerneltest.SharedText(64, 1<<20), tensor.Vector[int32](1))

	indices, err := tensor.FromSlice(tensor.Shape{5, 1}, []int32{2, 0, 2, 0, 2})
	if err != nil {
		t.Fatal(err)
	}
	out := kerneltest.Run(t, "ScatterNd", attrs, indices, tensor.Vector("a", "b", "c", "d", "e"), tensor.Vector[int32](3))
	if got := strings.Join(tensor.Values[string](&out[0]), ","); got != "bd,,ace" {
		t.Errorf("got %s", got)
	}
	const many = 400_000
	kerneltest.Quickly(t, func() error {
		_, err := kerneltest.Try("ScatterNd", attrs, zeros(many), kerneltest.SharedText(many, 20), tensor.Vector[int32](1))
		return err
	})
}

// Sequences and indices end with their step.
func TestRowsEndWithTheirStep(t *testing.T) {
	rows, err := tensor.Zeros(tensor.Float32, tensor.Shape{200, 2})
	if err != nil {
		t.Fatal(err)
	}
	lengths := make([]int64, 200)
	for i := range lengths {
		lengths[i] = 2
	}
	kerneltest.WantCancelled(t, "ReverseSequence", opdef.Attrs{"T": tensor.Float32, "Tlen": tensor.Int64, "seq_dim": int64(1), "batch_dim": int64(0)},
		rows, tensor.Vector(lengths...))
	kerneltest.WantCancelled(t, "UnravelIndex", opdef.Attrs{"Tidx": tensor.Int64},
		tensor.Vector(make([]int64, 3000)...), tensor.Vector[int64](2, 3))
}
