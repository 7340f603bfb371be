package sparse

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The neighbors of rows are counted. Eliminating rows adds neighbors that the matrix has not.
func TestMemoryOfOrdering(t *testing.T) {
	const half = 2000
	m := &CSR{shape: tensor.Shape{2 * half, 2 * half}, batch: []int32{0, 2 * half * half}, rows: make([]int32, 2*half+1)}
	for r := range 2 * half {
		for c := range half { // each row of one half has elements in all columns of the other
			m.cols = append(m.cols, int32((r/half+1)%2*half+c))
		}
		m.rows[r+1] = int32(len(m.cols))
	}
	kerneltest.WantExhausted(t, 96<<20, "SparseMatrixOrderingAMD", opdef.Attrs{}, tensor.Scalar(tensor.VariantValue{Value: m}))
}

// An ordering ends when its step ends.
func TestOrderingEndsWithStep(t *testing.T) {
	const n = 1000
	m := &CSR{shape: tensor.Shape{n, n}, batch: []int32{0, 0}, rows: make([]int32, n+1)}
	kerneltest.WantCancelled(t, "SparseMatrixOrderingAMD", opdef.Attrs{}, tensor.Scalar(tensor.VariantValue{Value: m}))
}

// A distance ends when its step ends.
func TestDistanceEndsWithStep(t *testing.T) {
	indices, err := tensor.FromSlice(tensor.Shape{2, 2}, []int64{0, 0, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	values, shape := tensor.Vector[int64](1, 2), tensor.Vector[int64](1, 2)
	kerneltest.WantCancelled(t, "EditDistance", opdef.Attrs{"T": tensor.Int64, "normalize": true}, indices, values, shape, indices, values, shape)
}

// The text that strings share is in a message once for each of them.
func TestMemoryOfSerializedSparse(t *testing.T) {
	indices, err := tensor.Zeros(tensor.Int64, tensor.Shape{1 << 20, 1})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 256<<20, "SerializeSparse", opdef.Attrs{"T": tensor.String, "out_type": tensor.String},
		indices, kerneltest.SharedText(1<<20, 1<<10), tensor.Vector[int64](1<<20))
}

// The gradients that belong to no value are a copy of all gradients.
func TestMemoryOfFilledRowsGrad(t *testing.T) {
	grad, err := tensor.Zeros(tensor.Int8, tensor.Shape{64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 96<<20, "SparseFillEmptyRowsGrad", opdef.Attrs{"T": tensor.Int8}, tensor.Vector[int64](0), grad)
}
