package sparse

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// runOp runs an operation and returns its first output.
func runOp(t *testing.T, op string, attrs opdef.Attrs, in ...tensor.Tensor) tensor.Tensor {
	t.Helper()
	n, err := kerneltest.NewEnv().Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	outs, err := n.Run(in...)
	if err != nil {
		t.Fatal(err)
	}
	return outs[0]
}

// dense is a batch of dense matrices.
type dense struct {
	n, h, w int
	vals    []complex128
}

func (d *dense) at(b, i, j int) *complex128 { return &d.vals[(b*d.h+i)*d.w+j] }

// sample returns random matrices with mostly zero elements.
func sample(n, h, w int, seed uint64) *dense {
	d := &dense{n, h, w, make([]complex128, n*h*w)}
	for i := range d.vals {
		seed = seed*6364136223846793005 + 1442695040888963407
		if seed>>61 < 3 {
			d.vals[i] = complex(float64(int8(seed>>40)), float64(int8(seed>>48)))
		}
	}
	return d
}

func (d *dense) tensor(t *testing.T) tensor.Tensor {
	t.Helper()
	out, err := tensor.FromSlice(tensor.Shape{int64(d.n), int64(d.h), int64(d.w)}, d.vals)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// csr returns the matrices in CSR format after encoding and decoding them.
func (d *dense) csr(t *testing.T) tensor.Tensor {
	t.Helper()
	var ix []int64
	for b := range d.n {
		for i := range d.h {
			for j := range d.w {
				if *d.at(b, i, j) != 0 {
					ix = append(ix, int64(b), int64(i), int64(j))
				}
			}
		}
	}
	indices, err := tensor.FromSlice(tensor.Shape{int64(len(ix) / 3), 3}, ix)
	if err != nil {
		t.Fatal(err)
	}
	out := runOp(t, "DenseToCSRSparseMatrix", opdef.Attrs{"T": tensor.Complex128}, d.tensor(t), indices)
	v := &tensor.Values[tensor.VariantValue](&out)[0]
	encoded, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if v.Value, err = encoded.Decode(); err != nil {
		t.Fatal(err)
	}
	return out
}

func fromCSR(t *testing.T, m tensor.Tensor) *dense {
	t.Helper()
	return fromTensor(runOp(t, "CSRSparseMatrixToDense", opdef.Attrs{"type": tensor.Complex128}, m))
}

func fromTensor(m tensor.Tensor) *dense {
	return &dense{m.Dim(0), m.Dim(1), m.Dim(2), tensor.Values[complex128](&m)}
}

func (d *dense) taken(o operand) *dense {
	out := &dense{d.n, d.h, d.w, make([]complex128, len(d.vals))}
	if o.transpose {
		out.h, out.w = d.w, d.h
	}
	for b := range d.n {
		for i := range d.h {
			for j := range d.w {
				v := *d.at(b, i, j)
				if o.conj {
					v = cmplx.Conj(v)
				}
				if o.transpose {
					*out.at(b, j, i) = v
				} else {
					*out.at(b, i, j) = v
				}
			}
		}
	}
	return out
}

func (d *dense) times(e *dense) *dense {
	out := &dense{d.n, d.h, e.w, make([]complex128, d.n*d.h*e.w)}
	for b := range d.n {
		for i := range d.h {
			for j := range e.w {
				for k := range d.w {
					*out.at(b, i, j) += *d.at(b, i, k) * *e.at(b, k, j)
				}
			}
		}
	}
	return out
}

func (d *dense) compare(t *testing.T, want *dense) {
	t.Helper()
	if d.n != want.n || d.h != want.h || d.w != want.w {
		t.Fatalf("%d matrices %dx%d, want %d %dx%d", d.n, d.h, d.w, want.n, want.h, want.w)
	}
	for i, v := range d.vals {
		if cmplx.Abs(v-want.vals[i]) > 1e-9*max(1, cmplx.Abs(want.vals[i])) {
			t.Fatalf("element %d is %v, want %v", i, v, want.vals[i])
		}
	}
}

func TestCSRKeepsElements(t *testing.T) {
	for _, d := range []*dense{sample(1, 4, 5, 1), sample(3, 5, 2, 2), sample(2, 3, 3, 3), {1, 2, 2, make([]complex128, 4)}} {
		fromCSR(t, d.csr(t)).compare(t, d)
		count := runOp(t, "SparseMatrixNNZ", nil, d.csr(t))
		for b, n := range tensor.Values[int32](&count) {
			for _, v := range d.vals[b*d.h*d.w : (b+1)*d.h*d.w] {
				if v != 0 {
					n--
				}
			}
			if n != 0 {
				t.Errorf("matrix %d: %d elements too many", b, n)
			}
		}
	}
}

func TestCSRProducts(t *testing.T) {
	for flags := range 64 {
		bit := func(i int) bool { return flags>>i&1 != 0 }
		left, right, result := operand{bit(0), bit(1)}, operand{bit(2), bit(3)}, operand{bit(4), bit(5)}
		if left.conj && !left.transpose || right.conj && !right.transpose {
			continue // an adjoint must be transposed too
		}
		t.Run(fmt.Sprintf("%06b", flags), func(t *testing.T) {
			a, b := sample(2, 4, 3, uint64(flags)), sample(2, 3, 5, uint64(flags)+99)
			if left.transpose {
				a = a.taken(operand{transpose: true})
			}
			if right.transpose {
				b = b.taken(operand{transpose: true})
			}
			product := a.taken(left).times(b.taken(right))
			attrs := opdef.Attrs{
				"transpose_a": left.transpose && !left.conj, "adjoint_a": left.conj, "transpose_b": right.transpose && !right.conj, "adjoint_b": right.conj,
			}
			if !result.transpose && !result.conj {
				sparse := attrs.Clone()
				sparse["type"] = tensor.Complex128
				fromCSR(t, runOp(t, "SparseMatrixSparseMatMul", sparse, a.csr(t), b.csr(t))).compare(t, product)
			}
			attrs["T"], attrs["transpose_output"], attrs["conjugate_output"] = tensor.Complex128, result.transpose, result.conj
			fromTensor(runOp(t, "SparseMatrixMatMul", attrs, a.csr(t), b.tensor(t))).compare(t, product.taken(result))
		})
	}
}

func TestCSRTranspose(t *testing.T) {
	a := sample(2, 4, 6, 5)
	for _, conj := range []bool{false, true} {
		got := runOp(t, "SparseMatrixTranspose", opdef.Attrs{"conjugate": conj, "type": tensor.Complex128}, a.csr(t))
		fromCSR(t, got).compare(t, a.taken(operand{true, conj}))
	}
}

func TestCSRConjugate(t *testing.T) {
	a := sample(2, 3, 4, 8)
	m := a.csr(t)
	v := &tensor.Values[tensor.VariantValue](&m)[0]
	c, err := v.Value.(*CSR).Conj()
	if err != nil {
		t.Fatal(err)
	}
	v.Value = c
	fromCSR(t, m).compare(t, a.taken(operand{conj: true}))
}

// TestCSRCholesky multiplies the factors of permuted Hermitian matrices.
func TestCSRCholesky(t *testing.T) {
	a := sample(2, 7, 7, 11)
	a = a.times(a.taken(operand{true, true}))
	for b := range a.n {
		for i := range a.h {
			*a.at(b, i, i) += 100
		}
	}
	order := runOp(t, "SparseMatrixOrderingAMD", nil, a.csr(t))
	factor := fromCSR(t, runOp(t, "SparseMatrixSparseCholesky", opdef.Attrs{"type": tensor.Complex128}, a.csr(t), order))
	permuted := &dense{a.n, a.h, a.w, make([]complex128, len(a.vals))}
	for b := range a.n {
		p := tensor.Values[int32](&order)[b*a.h : (b+1)*a.h]
		for i := range a.h {
			for j := range a.w {
				*permuted.at(b, i, j) = *a.at(b, int(p[i]), int(p[j]))
				if j > i && *factor.at(b, i, j) != 0 {
					t.Errorf("element %d,%d of a lower factor is %v", i, j, *factor.at(b, i, j))
				}
			}
		}
	}
	factor.times(factor.taken(operand{true, true})).compare(t, permuted)
}

func TestMatricesThatHaveNoFactor(t *testing.T) {
	a := &dense{1, 2, 2, []complex128{1, 2, 2, 1}}
	order, err := tensor.FromSlice(tensor.Shape{1, 2}, []int32{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	n, err := kerneltest.NewEnv().Make("SparseMatrixSparseCholesky", opdef.Attrs{"type": tensor.Complex128})
	if err != nil {
		t.Fatal(err)
	}
	const want = "Sparse Cholesky factorization failed for batch index 0. The input might not be valid."
	if _, err := n.Run(a.csr(t), order); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestForgedMatrices decodes matrices with inconsistent components.
func TestForgedMatrices(t *testing.T) {
	good := sample(2, 3, 4, 7).csr(t)
	for _, forged := range []struct {
		part   int
		damage tensor.Tensor
	}{
		{0, tensor.Vector[int64](2, 3, 1)}, {0, tensor.Vector[int64](2, math.MaxInt64, 4)}, {0, tensor.Vector[int64](2, -1, 4)}, {0, tensor.Vector[int64](4)},
		{1, tensor.Vector[int32](0, 1)}, {2, tensor.Vector[int32](0, 9, 9, 9)}, {2, tensor.Vector[int32]()}, {3, tensor.Vector[int32](7)},
		{4, tensor.Vector[int32](1)},
	} {
		v, err := tensor.Value[tensor.VariantValue](&good).Encode()
		if err != nil {
			t.Fatal(err)
		}
		v.Tensors[forged.part] = forged.damage
		if _, err := v.Decode(); err == nil {
			t.Errorf("a matrix whose part %d is %v was decoded", forged.part, &forged.damage)
		}
	}
}

func TestShapesOfProductsThatDoNotFit(t *testing.T) {
	def, _ := kernel.Default.LookupOp("SparseMatrixMatMul")
	attrs, err := def.CheckAttrs("n", opdef.Attrs{"T": tensor.Float32, "transpose_output": true})
	if err != nil {
		t.Fatal(err)
	}
	c := &opdef.ShapeContext{
		Op: def, Attrs: attrs, In: []tensor.PartialShape{tensor.MakePartial(), tensor.MakePartial(5, 2)},
		InHandles: [][]tensor.HandleElem{{{DType: tensor.Float32, Shape: tensor.MakePartial(1, 3, 2)}}, nil},
		Out:       make([]tensor.PartialShape, 1),
	}
	if err := def.Shape(c); err == nil {
		t.Error("a batch times a matrix has a shape")
	}
}
