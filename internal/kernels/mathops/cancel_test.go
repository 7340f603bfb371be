package mathops

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func zeros(t *testing.T, dtype tensor.DType, shape ...int64) tensor.Tensor {
	t.Helper()
	z, err := tensor.Zeros(dtype, shape)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// The sums of strings that share a text do not share it.
func TestMemoryOfTexts(t *testing.T) {
	text := kerneltest.SharedText(64, 1<<20)
	kerneltest.WantExhausted(t, 32<<20, "Add", opdef.Attrs{"T": tensor.String}, text, text)
	kerneltest.WantExhausted(t, 32<<20, "Add", opdef.Attrs{"T": tensor.String}, text, tensor.Scalar("x"))
}

// Many indices of a large row end with their step.
func TestSegmentsEndWithTheirStep(t *testing.T) {
	indices := tensor.Vector[int32](0, 0, 0)
	attrs := func(dtype tensor.DType) opdef.Attrs {
		return opdef.Attrs{"T": dtype, "Tidx": tensor.Int32, "Tsegmentids": tensor.Int32}
	}
	kerneltest.WantCancelled(t, "SparseSegmentSum", attrs(tensor.Float32), zeros(t, tensor.Float32, 1, 1<<22), indices, indices)
	kerneltest.WantCancelled(t, "SparseSegmentSum", attrs(tensor.Float16), zeros(t, tensor.Float16, 1, 1<<16), indices, indices)
	kerneltest.WantCancelled(t, "SparseSegmentSumGrad", attrs(tensor.Float32),
		zeros(t, tensor.Float32, 1, 1<<16), indices, indices, tensor.Scalar[int32](1))
}

// A long chain of functions of a large tensor ends with its step.
func TestCompositionEndsWithItsStep(t *testing.T) {
	kerneltest.WantCancelled(t, "_UnaryOpsComposition",
		opdef.Attrs{"T": tensor.Float32, "op_names": slices.Repeat([]string{"Neg"}, 8)}, zeros(t, tensor.Float32, 1<<15))
}

// A product that takes seconds looks at its step between pieces.
func TestPiecesOfProducts(t *testing.T) {
	const wide = 1 << 20
	c := gemm.Dense(make([]struct{}, 3*pieceRows*wide), 3*pieceRows, wide)
	a := gemm.Dense(make([]struct{}, 3*pieceRows*wide), 3*pieceRows, wide)
	b := gemm.Dense(make([]struct{}, wide*wide), wide, wide)
	var rows []int
	record := func(c, _, _ gemm.Matrix[struct{}]) { rows = append(rows, c.Rows) }
	if err := inPieces(t.Context(), record, c, a, b); err != nil || !slices.Equal(rows, []int{pieceRows, pieceRows, pieceRows}) {
		t.Errorf("pieces of %v rows, %v", rows, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rows = nil
	if err := inPieces(ctx, record, c, a, b); err == nil || len(rows) != 1 {
		t.Errorf("after the end of the step: pieces of %v rows, %v", rows, err)
	}
}

// An equation of many labels takes a time in proportion to its length.
func TestLongEquations(t *testing.T) {
	kerneltest.Quickly(t, func() error {
		_, err := parseEquation(strings.Repeat("a", 1<<20)+"b->"+strings.Repeat("b", 1<<20), 1)
		return err
	})
}

// Rows of a product without columns take no time.
func TestProductsWithoutColumns(t *testing.T) {
	attrs := opdef.Attrs{"T1": tensor.QUint8, "T2": tensor.QUint8, "Toutput": tensor.QInt32, "Tactivation": tensor.QUint8}
	lo, hi := tensor.Scalar[float32](0), tensor.Scalar[float32](1)
	a, b := zeros(t, tensor.QUint8, 1<<40, 0), zeros(t, tensor.QUint8, 0, 0)
	kerneltest.Quickly(t, func() error {
		_, err := kerneltest.Try("QuantizedMatMul", attrs, a, b, lo, hi, lo, hi)
		return err
	})
}
