package linalg

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Eig", Doc: "Computes the eigenvalues of square matrices, and unit eigenvectors in columns.",
			In: []string{"input: T"}, Out: []string{"e: Tout", "v: Tout"},
			Attrs: []string{"compute_v: bool = true", "T: {float32, float64, complex64, complex128}", "Tout: {complex64, complex128}"},
			Shape: eigShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: newEig(f32, c64), tensor.Float64: newEig(f64, c128),
			tensor.Complex64: newEig(c64, c64), tensor.Complex128: newEig(c128, c128),
		}),
	})
}

func newEig[T, C tensor.Elem, S scalar](in element[T, S], out element[C, complex128]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		if want := tensor.DTypeOf[C](); c.Attrs.Type("Tout") != want {
			return nil, status.InvalidArgumentf("Invalid output dtype %v vs %v", c.Attrs.Type("Tout"), want)
		}
		withVectors := c.Attrs.Bool("compute_v")
		return kernel.Func(func(ctx *kernel.Context) error {
			batch, sizes, err := analyze(ctx, 1)
			if err == nil {
				err = square(sizes)
			}
			if err != nil {
				return err
			}
			n := sizes[0].rows
			e, err := ctx.Allocate(0, append(slices.Clone(batch), int64(n)))
			if err != nil {
				return err
			}
			shape := tensor.Shape{}
			if withVectors {
				shape = append(slices.Clone(batch), int64(n), int64(n))
			}
			v, err := ctx.AllocateZeros(1, shape)
			if err != nil {
				return err
			}
			return each(ctx, int(batch.NumElements()), sizes, func(i int) error {
				a := newMatrix[complex128](n, n)
				for j, x := range in.read(tensor.Values[T](ctx.Input(0)), i, n, n).a {
					a.a[j] = toComplex(x)
				}
				form, ok := schur(ctx.Context(), a)
				if ctx.Context().Err() != nil {
					return ctx.Context().Err()
				}
				if !ok {
					return status.InvalidArgumentf("Eigen decomposition was not successful. The input might not be valid.")
				}
				values := membudget.Make[complex128](n)
				for k := range values {
					values[k] = form.t.at(k, k)
				}
				vectors := form.vectors(ctx.Context()).adjoint() // in rows, conjugated
				if isComplex[S]() {
					bySize(values, vectors)
				} else {
					paired(values, vectors)
				}
				out.write(tensor.Values[C](e), i, values)
				if withVectors {
					out.write(tensor.Values[C](v), i, vectors.adjoint().a)
				}
				return nil
			})
		}), nil
	}
}

// bySize sorts eigenvalues, and the corresponding rows of vectors, by absolute value.
func bySize(values []complex128, vectors matrix[complex128]) {
	for i := range values {
		least := i
		for k := i + 1; k < len(values); k++ {
			if cmplx.Abs(values[k]) < cmplx.Abs(values[least]) {
				least = k
			}
		}
		if least != i {
			values[i], values[least] = values[least], values[i]
			vectors.swapRows(i, least)
		}
	}
}

// paired arranges the eigenvalues of a real matrix, and the corresponding rows of vectors, as real
// arithmetic returns them: real, or in conjugate pairs with the positive imaginary part first.
func paired(values []complex128, vectors matrix[complex128]) {
	size := 0.0
	for _, x := range values {
		size = max(size, cmplx.Abs(x))
	}
	for i := 0; i < len(values); i++ {
		if math.Abs(imag(values[i])) <= 1e-13*size {
			values[i] = complex(real(values[i]), 0)
			makeReal(vectors.row(i))
			continue
		}
		partner := i + 1
		for k := i + 2; k < len(values); k++ {
			if cmplx.Abs(values[k]-cmplx.Conj(values[i])) < cmplx.Abs(values[partner]-cmplx.Conj(values[i])) {
				partner = k
			}
		}
		if partner == len(values) {
			continue // rounding has moved the other one onto the real axis
		}
		values[i+1], values[partner] = values[partner], values[i+1]
		vectors.swapRows(i+1, partner)
		if imag(values[i]) < 0 {
			values[i], values[i+1] = values[i+1], values[i]
			vectors.swapRows(i, i+1)
		}
		values[i+1] = cmplx.Conj(values[i])
		for j, x := range vectors.row(i) {
			vectors.set(i+1, j, cmplx.Conj(x))
		}
		i++
	}
}

// makeReal divides a vector by the phase of its largest element, up to the sign.
func makeReal(v []complex128) {
	largest := complex128(0)
	for _, x := range v {
		if cmplx.Abs(x) > cmplx.Abs(largest) {
			largest = x
		}
	}
	turn := cmplx.Conj(largest) / complex(math.Copysign(cmplx.Abs(largest), real(largest)), 0)
	for j, x := range v {
		v[j] = complex(real(x*turn), 0)
	}
}
