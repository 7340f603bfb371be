// Package fft implements the discrete Fourier transforms of one, two and three dimensions, and the
// spectral analysis of audio.
//
// Transforms are computed in complex128 along one dimension after another, with the mixed-radix
// transforms of package fourier, and rounded once.
package fft

import (
	"fmt"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for rank := 1; rank <= 3; rank++ {
		suffix, over := "", "the last dimension"
		if rank > 1 {
			suffix, over = fmt.Sprintf("%dD", rank), fmt.Sprintf("the last %d dimensions", rank)
		}
		forward, inverse := transform{rank: rank}, transform{rank: rank, inverse: true}
		complexToComplex("FFT"+suffix, "Computes the discrete Fourier transform over "+over+".", forward)
		complexToComplex("IFFT"+suffix, "Computes the inverse discrete Fourier transform over "+over+".", inverse)
		withReal("RFFT"+suffix, "Computes the discrete Fourier transform of fft_length real numbers over "+over+". Returns fft_length/2+1 components of the last one.",
			"input: Treal", "output: Tcomplex", forward)
		withReal("IRFFT"+suffix, "Computes the inverse discrete Fourier transform over "+over+" that results in fft_length real numbers.",
			"input: Tcomplex", "output: Treal", inverse)
	}
}

const (
	realTypes    = "Treal: {float32, float64} = float32"
	complexTypes = "Tcomplex: {complex64, complex128} = complex64"
)

func complexToComplex(name, doc string, t transform) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"input: Tcomplex"}, Out: []string{"output: Tcomplex"}, Attrs: []string{complexTypes},
			Shape: func(c *opdef.ShapeContext) (err error) {
				c.Out[0], err = opdef.WithRankAtLeast(c.In[0], t.rank)
				return err
			},
		},
		Kernels: kernel.ByType("Tcomplex", kernel.Table{
			tensor.Complex64:  kernel.Stateless(run[complex64, complex64](t, false)),
			tensor.Complex128: kernel.Stateless(run[complex128, complex128](t, false)),
		}),
	})
}

func withReal(name, doc, in, out string, t transform) {
	single, double := run[float32, complex64](t, true), run[float64, complex128](t, true)
	if t.inverse {
		single, double = run[complex64, float32](t, true), run[complex128, float64](t, true)
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{in, "fft_length: int32"}, Out: []string{out}, Attrs: []string{realTypes, complexTypes},
			Shape: t.realShape,
		},
		Kernels: kernel.ByType("Treal", kernel.Table{
			tensor.Float32: fitting(tensor.Complex64, single), tensor.Float64: fitting(tensor.Complex128, double),
		}),
	})
}

// fitting returns the constructor of kernels for real numbers. It rejects a Tcomplex other than
// want.
func fitting(want tensor.DType, compute func(*kernel.Context) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		if got := c.Attrs.Type("Tcomplex"); got != want {
			return nil, status.InvalidArgumentf("Wrong types for real FFT: real=%v complex=%v", c.Attrs.Type("Treal"), got)
		}
		return kernel.Func(compute), nil
	}
}

// realShape is the shape function of transforms from and to real numbers.
func (t transform) realShape(c *opdef.ShapeContext) error {
	s, err := opdef.WithRankAtLeast(c.In[0], t.rank)
	if err != nil {
		return err
	}
	length, err := opdef.WithRank(c.In[1], 1)
	if err != nil {
		return err
	}
	if err := shapefn.CheckDim(length.Dim(0), int64(t.rank)); err != nil {
		return err
	}
	if !s.RankKnown() {
		return nil
	}
	lengths, known := shapefn.Ints(c, 1)
	for i := range t.rank {
		dim := tensor.UnknownDim
		if known {
			dim = int64(t.outSize(i, int(lengths[i])))
		}
		s = shapefn.Replace(s, s.Rank()-t.rank+i, dim)
	}
	c.Out[0] = s
	return nil
}

// run computes a transform. If withLength is set, input 1 holds the lengths.
func run[T, U number](t transform, withLength bool) func(*kernel.Context) error {
	return func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.Rank() < t.rank {
			return status.InvalidArgumentf("Input must have rank of at least %d but got: %v", t.rank, in.Shape())
		}
		batch := in.Rank() - t.rank
		shape := append(tensor.Shape{}, in.Shape()...)
		lengths := membudget.Make[int](t.rank)
		for i := range lengths {
			lengths[i] = in.Dim(batch + i)
		}
		if withLength {
			var err error
			if lengths, err = t.lengths(in.Shape(), ctx.Input(1)); err != nil {
				return err
			}
			for i, n := range lengths {
				shape[batch+i] = int64(t.outSize(i, n))
			}
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		if in.NumElements() == 0 {
			clear(tensor.Values[U](out))
			return nil
		}
		g := newGrid(in.Shape(), lengths, t.inverse && withLength)
		load(g, tensor.Values[T](in))
		g.transform(ctx.Context(), t.inverse)
		if ctx.Context().Err() != nil {
			return ctx.Context().Err()
		}
		store(tensor.Values[U](out), g, int(shape[len(shape)-1]))
		return nil
	}
}

// lengths checks and returns the lengths in input 1.
func (t transform) lengths(in tensor.Shape, length *tensor.Tensor) ([]int, error) {
	if length.Rank() != 1 || length.Dim(0) != t.rank {
		return nil, status.InvalidArgumentf("fft_length must have shape [%d]", t.rank)
	}
	lengths := membudget.Make[int](t.rank)
	for i, n := range intarg.Values(length) {
		if n < 0 {
			return nil, status.InvalidArgumentf("fft_length[%d] must >= 0, but got: %d", i, n)
		}
		least, axis := n, len(in)-t.rank+i
		if t.inverse && i == t.rank-1 {
			least = n/2 + 1
		}
		if in[axis] != 0 && in[axis] < least {
			return nil, status.InvalidArgumentf("Input dimension %d must have length of at least %d but got: %d", axis, least, in[axis])
		}
		lengths[i] = int(n)
	}
	return lengths, nil
}
