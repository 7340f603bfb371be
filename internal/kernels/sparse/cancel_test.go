package sparse

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func matrixOf[T tensor.Elem](t *testing.T, cols int, vals ...T) tensor.Tensor {
	t.Helper()
	m, err := tensor.FromSlice(tensor.Shape{int64(len(vals) / cols), int64(cols)}, vals)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Sorting many elements ends with its step.
func TestSortingEndsWithItsStep(t *testing.T) {
	const n = 10_000
	ix := make([]int64, n)
	for i := range ix {
		ix[i] = int64(n - 1 - i)
	}
	indices, values, shape := matrixOf(t, 1, ix...), tensor.Vector(make([]float32, n)...), tensor.Vector[int64](n)
	attrs := opdef.Attrs{"T": tensor.Float32}
	kerneltest.WantCancelled(t, "SparseReorder", attrs, indices, values, shape)
	kerneltest.WantCancelled(t, "SparseReduceSum", attrs, indices, values, shape, tensor.Vector[int32]())
	kerneltest.WantCancelled(t, "DenseCountSparseOutput",
		opdef.Attrs{"T": tensor.Int64, "binary_output": true, "output_type": tensor.Int64}, tensor.Vector(ix...), tensor.Vector[int64]())
}

// A few elements times a matrix of many columns end with their step.
func TestProductsEndWithTheirStep(t *testing.T) {
	const wide = 1 << 16
	b := matrixOf(t, wide, make([]float32, wide)...)
	indices, values := matrixOf(t, 2, make([]int64, 8)...), tensor.Vector[float32](1, 2, 3, 4)
	for _, adjoint := range []bool{false, true} {
		dense := b
		if adjoint {
			dense = matrixOf(t, 1, make([]float32, wide)...)
		}
		kerneltest.WantCancelled(t, "SparseTensorDenseMatMul",
			opdef.Attrs{"T": tensor.Float32, "Tindices": tensor.Int64, "adjoint_b": adjoint}, indices, values, tensor.Vector[int64](1, 1), dense)
	}
	variant := func(m *CSR) tensor.Tensor { return tensor.Scalar(tensor.VariantValue{Value: m}) }
	row := &CSR{shape: tensor.Shape{1, 1}, batch: []int32{0, 1}, rows: []int32{0, 1}, cols: []int32{0}, values: tensor.Vector[float32](1)}
	kerneltest.WantCancelled(t, "SparseMatrixMatMul", opdef.Attrs{"T": tensor.Float32}, variant(row), b)

	full := &CSR{shape: tensor.Shape{1, wide}, batch: []int32{0, wide}, rows: []int32{0, wide}, cols: make([]int32, wide), values: tensor.Vector(make([]float32, wide)...)}
	for i := range full.cols {
		full.cols[i] = int32(i)
	}
	kerneltest.WantCancelled(t, "SparseMatrixSparseMatMul", opdef.Attrs{"type": tensor.Float32}, variant(row), variant(full))

	const n = 300
	arrow := &CSR{shape: tensor.Shape{n, n}, batch: []int32{0, n * n}, rows: []int32{0}}
	vals := make([]float32, n*n)
	order := make([]int32, n)
	for i := range n {
		order[i] = int32(i)
		for j := range n {
			arrow.cols = append(arrow.cols, int32(j))
		}
		vals[i*n+i] = 1
		arrow.rows = append(arrow.rows, int32((i+1)*n))
	}
	arrow.values = tensor.Vector(vals...)
	kerneltest.WantCancelled(t, "SparseMatrixSparseCholesky", opdef.Attrs{"type": tensor.Float32}, variant(arrow), tensor.Vector(order...))
}

// A shape may have any number of rows, which end with their step.
func TestRowsEndWithTheirStep(t *testing.T) {
	none, shape := matrixOf(t, 2, []int64{}...), tensor.Vector[int64](1000, 1)
	kerneltest.WantCancelled(t, "SerializeManySparse", opdef.Attrs{"T": tensor.Float32, "out_type": tensor.Variant},
		none, tensor.Vector[float32](), shape)
	out := kerneltest.Run(t, "SerializeManySparse", opdef.Attrs{"T": tensor.Float32, "out_type": tensor.String},
		none, tensor.Vector[float32](), tensor.Vector[int64](2, 1))
	kerneltest.WantCancelled(t, "DeserializeManySparse", opdef.Attrs{"dtype": tensor.Float32}, out[0])
}

// Strings that share a long text end with their step.
func TestTextsEndWithTheirStep(t *testing.T) {
	text := kerneltest.SharedText(4, 1<<16)
	wide, err := text.WithShape(tensor.Shape{1, 4})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelled(t, "DenseToDenseSetOperation", opdef.Attrs{"T": tensor.String, "set_operation": "union"}, wide, wide)
	indices := matrixOf(t, 2, []int64{0, 0, 0, 1, 0, 2, 0, 3}...)
	shape := tensor.Vector[int64](1, 4)
	kerneltest.WantCancelled(t, "EditDistance", opdef.Attrs{"T": tensor.String}, indices, text, shape, indices, text, shape)
}

// A split into many parts goes over the elements once.
func TestManyParts(t *testing.T) {
	const parts, n = 50_000, 100_000
	ix := make([]int64, n)
	for i := range ix {
		ix[i] = int64(i)
	}
	indices, values := matrixOf(t, 1, ix...), tensor.Vector(make([]float32, n)...)
	kerneltest.Quickly(t, func() error {
		_, err := kerneltest.Try("SparseSplit", opdef.Attrs{"T": tensor.Float32, "num_split": int64(parts)},
			tensor.Scalar[int64](0), indices, values, tensor.Vector[int64](n))
		return err
	})
}

// An error names some of the sizes of a new shape.
func TestTextOfNewShapes(t *testing.T) {
	long := make([]int64, 1<<20)
	for i := range long {
		long[i] = 1
	}
	_, err := kerneltest.Try("SparseReshape", opdef.Attrs{}, matrixOf(t, 1, int64(0)), tensor.Vector[int64](2), tensor.Vector(long...))
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("got an error of %d bytes", len(err.Error()))
	}
}
