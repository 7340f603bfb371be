// Package ragged implements the operations on ragged tensors.
//
// A ragged tensor consists of values and a list of row-splits vectors, the outermost first. Each
// vector holds the start of every row in the next one, or in the values, and ends with the total
// number of items.
package ragged

import (
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// movable lists the value types supported by operations that only move values.
var movable = typeset.Join(typeset.Common, typeset.Quantized)

// inputs returns n inputs, starting with the given one.
func inputs(ctx *kernel.Context, first, n int) []*tensor.Tensor {
	out := membudget.Make[*tensor.Tensor](n)
	for i := range out {
		out[i] = ctx.Input(first + i)
	}
	return out
}

// nested returns the row splits in the first n inputs.
func nested(ctx *kernel.Context, n int) [][]int64 {
	out := membudget.Make[[]int64](n)
	for i := range out {
		out[i] = intarg.Values(ctx.Input(i))
	}
	return out
}

// checkSplits checks row splits. count is the number of values that they split, or negative if
// unknown.
func checkSplits(t *tensor.Tensor, count int) error {
	if t.Rank() != 1 {
		return status.InvalidArgumentf("Invalid ragged splits: ragged splits must be rank 1 but is rank %d", t.Rank())
	}
	splits := intarg.Values(t)
	switch {
	case len(splits) == 0:
		return status.InvalidArgumentf("Invalid ragged splits: ragged splits must have at least one splits, but is empty")
	case splits[0] != 0:
		return status.InvalidArgumentf("Invalid ragged splits: first element of ragged splits  must be 0 but is %d", splits[0])
	}
	for i := 1; i < len(splits); i++ {
		if splits[i] < splits[i-1] {
			return status.InvalidArgumentf("Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[%d]=%d "+
				"is smaller than row_splits[%d]=%d", i, splits[i], i-1, splits[i-1])
		}
	}
	if last := splits[len(splits)-1]; count >= 0 && last != int64(count) {
		return status.InvalidArgumentf("Invalid ragged splits: last element of ragged splits must be the number of ragged values(%d) but is %d", count, last)
	}
	return nil
}

// putInts sets output i to a vector of integers.
func putInts(ctx *kernel.Context, i int, vals []int64) error {
	out, err := ctx.Allocate(i, tensor.Shape{int64(len(vals))})
	if err == nil {
		intarg.Set(out, vals)
	}
	return err
}

// copyElements copies elements lo to hi of src to dst, starting at index at, and returns their
// number.
func copyElements(dst *tensor.Tensor, at int, src *tensor.Tensor, lo, hi int) int {
	switch dst.DType() {
	case tensor.String:
		return copy(tensor.Values[string](dst)[at:], tensor.Values[string](src)[lo:hi])
	case tensor.Resource:
		return copy(tensor.Values[*tensor.Handle](dst)[at:], tensor.Values[*tensor.Handle](src)[lo:hi])
	case tensor.Variant:
		return copy(tensor.Values[tensor.VariantValue](dst)[at:], tensor.Values[tensor.VariantValue](src)[lo:hi])
	}
	size := dst.DType().Size()
	return copy(dst.Bytes()[at*size:], src.Bytes()[lo*size:hi*size]) / size
}

// gather sets row i of dst, of width elements, to row from[i] of src. It skips rows with negative
// from[i].
func gather(dst, src *tensor.Tensor, from []int64, width int) {
	for i := 0; i < len(from); {
		n := 1 // adjacent rows in both tensors
		for from[i] >= 0 && i+n < len(from) && from[i+n] == from[i]+int64(n) {
			n++
		}
		if lo := int(from[i]); lo >= 0 {
			copyElements(dst, i*width, src, lo*width, (lo+n)*width)
		}
		i += n
	}
}

// repeat fills dst with copies of src.
func repeat(dst, src *tensor.Tensor) {
	done := copyElements(dst, 0, src, 0, min(src.NumElements(), dst.NumElements()))
	for done > 0 && done < dst.NumElements() {
		done += copyElements(dst, done, dst, 0, min(done, dst.NumElements()-done))
	}
}
