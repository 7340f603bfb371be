// Package array holds the operations that create, forward and move elements without arithmetic:
// constants, shapes, slices, concatenations, transpositions, gathers and scatters, diagonals and
// blocks.
//
// Most of them are one copy between two strided views (package strided) and accept every element
// type.
package array

import (
	"strconv"

	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// copyView sets output 0, of the given shape, to the elements of in that a view selects.
func copyView(ctx *kernel.Context, in *tensor.Tensor, v strided.View, shape tensor.Shape) error {
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	dense := make(tensor.Shape, len(v.Dims))
	for d, n := range v.Dims {
		dense[d] = int64(n)
	}
	strided.Copy(out, strided.Of(dense), in, v)
	return nil
}

// inputs returns inputs lo to hi.
func inputs(ctx *kernel.Context, lo, hi int) []*tensor.Tensor {
	out := membudget.Make[*tensor.Tensor](hi - lo)
	for i := range out {
		out[i] = ctx.Input(lo + i)
	}
	return out
}

// shortFloat formats a number with six significant digits, as TensorFlow's errors do.
func shortFloat(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func shortInt(v int64) string { return strconv.FormatInt(v, 10) }
