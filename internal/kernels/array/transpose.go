package array

import (
	"math/cmplx"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Transpose", Doc: "Permutes dimensions: dimension i of the result is dimension perm[i] of x.",
		In:    []string{"x: T", "perm: Tperm"},
		Out:   []string{"y: T"},
		Attrs: []string{"T: type", "Tperm: {int32, int64} = int32"},
		Shape: transposeShape,
	}, transpose)
	kernel.RegisterFunc(opdef.Def{
		Name: "ConjugateTranspose", Doc: "Permutes dimensions and conjugates the elements.",
		In:    []string{"x: T", "perm: Tperm"},
		Out:   []string{"y: T"},
		Attrs: []string{"T: type", "Tperm: {int32, int64} = int32"},
		Shape: transposeShape,
	}, conjugateTranspose)
	kernel.RegisterFunc(opdef.Def{
		Name: "InvertPermutation", Doc: "Computes the inverse permutation y of x: y[x[i]] = i.",
		In:    []string{"x: T"},
		Out:   []string{"y: T"},
		Attrs: []string{"T: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error {
			s, err := opdef.WithRank(c.In[0], 1)
			c.SetAll(s)
			return err
		},
	}, invertPermutation)
}

func transposeShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	perm, permKnown := shapefn.Ints(c, 1)
	count := shapefn.Count(c.In[1])
	rank := int64(in.Rank())
	switch {
	case in.RankKnown():
	case count >= 0:
		rank = count
	case permKnown:
		rank = int64(len(perm))
	default:
		return nil
	}
	if !in.RankKnown() && rank < 2 {
		c.Out[0] = in
		return nil
	}
	in, err := opdef.WithRank(in, int(rank))
	if err != nil {
		return err
	}
	if _, err := opdef.WithRank(c.In[1], 1); err != nil {
		return err
	}
	if err := shapefn.CheckDim(count, rank); err != nil {
		return err
	}
	dims := tensor.UnknownDims(int(rank)).Dims()
	for i, p := range perm {
		if p >= rank || p < -rank {
			return status.InvalidArgumentf("perm dim %d is out of range of input rank %d", p, rank)
		}
		dims[i] = in.Dim(int(p))
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

// permutation reads and checks the permutation of a transposition.
func permutation(t *tensor.Tensor, rank int) ([]int, error) {
	if t.Rank() != 1 {
		return nil, status.InvalidArgumentf("perm must be rank 1, got shape %v", t.Shape())
	}
	given := intarg.Values(t)
	if len(given) != rank {
		return nil, status.InvalidArgumentf("transpose expects a vector of size %d. But input(1) is a vector of size %d",
			rank, len(given))
	}
	perm, seen := membudget.Make[int](rank), membudget.Make[bool](rank)
	resolved := membudget.Make[int64](rank)
	for i, p := range given {
		axis, ok := intarg.Axis(int64(int32(p)), rank) // TensorFlow truncates to 32 bits
		if !ok {
			return nil, status.InvalidArgumentf("%d is out of range [0 .. %d)", axis, rank)
		}
		perm[i], resolved[i], seen[axis] = axis, int64(axis), true
	}
	for i, ok := range seen {
		if !ok {
			return nil, status.InvalidArgumentf("%d is missing from {%s}.", i, join(resolved))
		}
	}
	return perm, nil
}

func transpose(ctx *kernel.Context) error {
	in := ctx.Input(0)
	perm, shape, err := transposed(ctx)
	if err != nil {
		return err
	}
	if keepsOrder(perm, in.Shape()) {
		return ctx.PassInput(0, 0, shape...)
	}
	return copyView(ctx, in, strided.Of(in.Shape()).Permute(perm), shape)
}

// transposed returns the permutation in the inputs and the shape of the result.
func transposed(ctx *kernel.Context) (perm []int, shape tensor.Shape, err error) {
	in := ctx.Input(0)
	if perm, err = permutation(ctx.Input(1), in.Rank()); err != nil {
		return nil, nil, err
	}
	shape = make(tensor.Shape, len(perm))
	for i, p := range perm {
		shape[i] = in.Shape()[p]
	}
	return perm, shape, nil
}

// keepsOrder reports whether a permutation moves only dimensions of size 1, so that the order of
// elements is unchanged.
func keepsOrder(perm []int, shape tensor.Shape) bool {
	last := -1
	for _, p := range perm {
		if shape[p] == 1 {
			continue
		}
		if p < last {
			return false
		}
		last = p
	}
	return true
}

func conjugateTranspose(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if !in.DType().IsComplex() {
		return transpose(ctx)
	}
	perm, shape, err := transposed(ctx)
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	strided.Copy(out, strided.Of(shape), in, strided.Of(in.Shape()).Permute(perm))
	if out.DType() == tensor.Complex64 {
		conjugate(tensor.Values[complex64](out))
	} else {
		conjugate(tensor.Values[complex128](out))
	}
	return nil
}

func conjugate[T complex64 | complex128](v []T) {
	for i, x := range v {
		v[i] = T(cmplx.Conj(complex128(x)))
	}
}

func invertPermutation(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.Rank() != 1 {
		return status.InvalidArgumentf("invert_permutation expects a 1D vector.")
	}
	given := intarg.Values(in)
	inverse := membudget.Make[int64](len(given))
	for i := range inverse {
		inverse[i] = -1
	}
	for i, d := range given {
		if d < 0 || d >= int64(len(given)) {
			return status.InvalidArgumentf("%d is not between 0 and %d", d, len(given))
		}
		if inverse[d] >= 0 {
			return status.InvalidArgumentf("%d is duplicated in the input.", d)
		}
		inverse[d] = int64(i)
	}
	out, err := ctx.AllocateLike(0, in)
	if err == nil {
		intarg.Set(out, inverse)
	}
	return err
}
