// Package sparse holds the operations on sparse tensors in coordinate form (COO) and in compressed
// sparse row form (CSR). A COO tensor is a matrix of indices with one row per element, a vector of
// values, and a dense shape. Most operations only move elements and have one kernel for all types.
// Those that compute have a kernel per type.
package sparse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// coo is a sparse tensor. Element i has the coordinates ix[i*rank:(i+1)*rank]. It does not own its
// components.
type coo struct {
	ix     []int64
	values *tensor.Tensor
	shape  tensor.Shape
	n      int
	rank   int
}

// at returns the coordinates of element i.
func (s *coo) at(i int) []int64 { return s.ix[i*s.rank : (i+1)*s.rank] }

// makeCOO returns the sparse tensor with the given components. It checks that their shapes match
// and that shape, which may come from an input, is valid.
func makeCOO(indices, values *tensor.Tensor, shape []int64) (*coo, error) {
	switch {
	case values.Rank() != 1:
		return nil, status.InvalidArgumentf("vals must be a vec, but got: %v", values.Shape())
	case indices.Rank() != 2:
		return nil, status.InvalidArgumentf("indices must be a matrix, but got: %v", indices.Shape())
	case indices.Dim(0) != values.Dim(0):
		return nil, status.InvalidArgumentf("indices and values rows (indexing dimension) must match. (indices = %d, values = %d)",
			indices.Dim(0), values.Dim(0))
	case len(shape) != indices.Dim(1):
		return nil, status.InvalidArgumentf("Order length must be SparseTensor rank.")
	}
	dims, err := intarg.Shape(shape)
	if err != nil {
		return nil, err
	}
	return &coo{ix: intarg.Values(indices), values: values, shape: dims, n: indices.Dim(0), rank: indices.Dim(1)}, nil
}

// checkedCOO is makeCOO with the checks, in the order and with the texts, of TensorFlow's
// operations that validate a whole sparse tensor.
func checkedCOO(indices, values, shape *tensor.Tensor) (*coo, error) {
	switch {
	case indices.Rank() != 2:
		return nil, status.InvalidArgumentf("Sparse indices must be rank 2 but is rank %d", indices.Rank())
	case values.Rank() != 1:
		return nil, status.InvalidArgumentf("Sparse values must be rank 1 but is rank %d", values.Rank())
	case shape.Rank() != 1:
		return nil, status.InvalidArgumentf("Sparse shape must be rank 1 but is rank %d", shape.Rank())
	case values.Dim(0) != indices.Dim(0):
		return nil, status.InvalidArgumentf("Number of elements in indices (%d) and values (%d) do not match", indices.Dim(0), values.Dim(0))
	case shape.NumElements() != indices.Dim(1):
		return nil, status.InvalidArgumentf("Index rank (%d) and shape rank (%d) do not match", indices.Dim(1), shape.NumElements())
	}
	return makeCOO(indices, values, intarg.Values(shape))
}

// inside reports whether coordinates are within the dense shape.
func (s *coo) inside(at []int64) bool {
	for d, x := range at {
		if x < 0 || x >= s.shape[d] {
			return false
		}
	}
	return true
}

// checkBounds checks that all coordinates are within the dense shape. They need not be ordered.
func (s *coo) checkBounds() error {
	for i := range s.n {
		if !s.inside(s.at(i)) {
			return status.InvalidArgumentf("Sparse index tuple indices[%d, :] = [%s] is out of bounds", i, joined(s.at(i), ", "))
		}
	}
	return nil
}

// checkOrder checks that coordinates are within the dense shape and strictly increasing.
func (s *coo) checkOrder() error {
	for i := range s.n {
		at := s.at(i)
		if !s.inside(at) {
			return status.InvalidArgumentf("indices[%d] = [%s] is out of bounds: need 0 <= index < [%s]", i, joined(at, ","), joined(s.shape, ","))
		}
		if i == 0 {
			continue
		}
		switch slices.Compare(s.at(i-1), at) {
		case 0:
			return status.InvalidArgumentf("indices[%d] = [%s] is repeated", i, joined(at, ","))
		case 1:
			return status.InvalidArgumentf("indices[%d] = [%s] is out of order. Many sparse ops require sorted indices.\n"+
				"    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n", i, joined(at, ","))
		}
	}
	return nil
}

// sorted returns the element numbers in the order of their coordinates along dims. The order is
// stable. It fails when ctx ends.
func (s *coo) sorted(ctx context.Context, dims []int) ([]int64, error) {
	order := longs(s.n)
	return order, sortStable(ctx, order, func(a, b int64) int {
		x, y := s.at(int(a)), s.at(int(b))
		for _, d := range dims {
			if c := cmp.Compare(x[d], y[d]); c != 0 {
				return c
			}
		}
		return 0
	})
}

// sortStable sorts ascending numbers by compare, and numbers that are equal by themselves. It fails
// when ctx ends: hundreds of millions of numbers take minutes.
func sortStable(ctx context.Context, numbers []int64, compare func(a, b int64) int) error {
	p := stepctx.Progress{Context: ctx, Each: 32}
	var ended error
	slices.SortFunc(numbers, func(a, b int64) int {
		if ended == nil {
			ended = p.Pass(0)
		}
		if ended != nil {
			return 0
		}
		return cmp.Or(compare(a, b), cmp.Compare(a, b))
	})
	return ended
}

// span returns 0, 1, …, n-1.
func span(n int) []int {
	out := membudget.Make[int](n)
	for i := range out {
		out[i] = i
	}
	return out
}

// joined formats integers for error messages. The rank of a sparse tensor has no limit, so more
// integers than a shape can have are shortened.
func joined(v []int64, sep string) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(v[:min(len(v), tensor.MaxRank)]), " ", sep), "[]")
	if len(v) > tensor.MaxRank {
		text += sep + "..."
	}
	return text
}

// pick sets output i to the elements of values with the given numbers.
func pick(ctx *kernel.Context, i int, values *tensor.Tensor, order []int64) error {
	out, err := ctx.Allocate(i, tensor.Shape{int64(len(order))})
	if err != nil {
		return err
	}
	gather(out, values, order)
	return nil
}

// gather sets dst to the elements of values with the given numbers.
func gather(dst, values *tensor.Tensor, order []int64) {
	gatherscatter.Gather(dst, values, gatherscatter.List{Rows: order}, gatherscatter.Layout{Outer: 1, Rows: values.NumElements(), Width: 1})
}

// putMatrix sets output i to a matrix of integers with the given number of columns.
func putMatrix(ctx *kernel.Context, i int, vals []int64, n, cols int) error {
	out, err := ctx.Allocate(i, tensor.Shape{int64(n), int64(cols)})
	if err == nil {
		copy(tensor.Values[int64](out), vals)
	}
	return err
}

// putVector sets output i to a vector of integers.
func putVector(ctx *kernel.Context, i int, vals []int64) error {
	out, err := ctx.Allocate(i, tensor.Shape{int64(len(vals))})
	if err == nil {
		copy(tensor.Values[int64](out), vals)
	}
	return err
}

// rowsAt returns the concatenated coordinates of the elements with the given numbers.
func (s *coo) rowsAt(order []int64) []int64 {
	out := membudget.MakeCap[int64](len(order) * s.rank)
	for _, i := range order {
		out = membudget.AppendAll(out, s.at(int(i))...)
	}
	return out
}

// unknownCOO returns the component shapes of a sparse tensor of the given rank, which may be
// unknown.
func unknownCOO(rank int64) []shapefn.Shape {
	return []shapefn.Shape{shapefn.Of(shapefn.Unknown, rank), shapefn.Of(shapefn.Unknown), shapefn.Of(rank)}
}

// anyCOO is the shape function of operations whose first outputs are a sparse tensor of unknown
// shape.
func anyCOO(c *opdef.ShapeContext) error {
	copy(c.Out, unknownCOO(shapefn.Unknown))
	return nil
}
