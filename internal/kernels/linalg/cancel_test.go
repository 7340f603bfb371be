package linalg

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// spread returns a matrix with large elements on its diagonal and none that is zero.
func spread(t *testing.T, rows, cols int) tensor.Tensor {
	t.Helper()
	vals := make([]float64, rows*cols)
	for i := range vals {
		vals[i] = 1 / float64(1+i%7)
	}
	for i := range min(rows, cols) {
		vals[i*cols+i] = 10 * float64(rows+i)
	}
	m, err := tensor.FromSlice(tensor.Shape{int64(rows), int64(cols)}, vals)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A large matrix takes minutes, so operations on it end with their step.
func TestLargeMatricesEndWithTheirStep(t *testing.T) {
	const look = 5 // more looks than without those during the work on a matrix
	m := spread(t, 200, 200)
	none := opdef.Attrs{"T": tensor.Float64}
	for _, op := range []string{
		"MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant", "Lu", "Cholesky", "Qr", "Svd", "SelfAdjointEigV2",
		"MatrixExponential", "MatrixSquareRoot",
	} {
		kerneltest.WantCancelledAt(t, look, op, none, m)
	}
	for _, op := range []string{"MatrixSolve", "MatrixTriangularSolve", "CholeskyGrad"} {
		kerneltest.WantCancelledAt(t, look, op, none, m, m)
	}
	kerneltest.WantCancelledAt(t, look, "BandedTriangularSolve", none, m, m)
	for _, fast := range []bool{false, true} {
		kerneltest.WantCancelledAt(t, look, "MatrixSolveLs", opdef.Attrs{"T": tensor.Float64, "fast": fast}, m, m, tensor.Scalar(0.5))
	}
	kerneltest.WantCancelledAt(t, 150, "Eig", opdef.Attrs{"T": tensor.Float64, "Tout": tensor.Complex128}, m)
	wide := make([]complex128, 60*60)
	for i := range wide {
		wide[i] = complex(float64(i%5), 1)
	}
	for i := range 60 {
		wide[i*60+i] = complex(100+float64(i), 0)
	}
	c, err := tensor.FromSlice(tensor.Shape{60, 60}, wide)
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelledAt(t, 100, "MatrixLogarithm", opdef.Attrs{"T": tensor.Complex128}, c)
}

// The factors of a matrix with many rows and few columns take memory in proportion to the matrix.
func TestMemoryOfTallFactors(t *testing.T) {
	out, err := kerneltest.TryWithin(64<<20, "Qr", opdef.Attrs{"T": tensor.Float64}, spread(t, 20_000, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out[0].Shape(), (tensor.Shape{20_000, 2}); !got.Equal(want) {
		t.Errorf("the shape of Q is %v, want %v", got, want)
	}
}
