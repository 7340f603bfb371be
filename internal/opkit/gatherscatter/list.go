// Package gatherscatter gathers and scatters rows of tensors by index. A row is a contiguous run of
// elements that one index, or one index vector, selects. Indices are read and checked once, into a
// list of row numbers. The loops that use the list need no further checks.
package gatherscatter

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// List is a list of row numbers. It may hold pooled memory; call Release after use.
type List struct {
	Rows    []int64
	scratch tensor.Tensor
	indices tensor.Tensor // in the memory of a device, of type int32 or int64; else not initialized
}

// Release frees the memory of the list.
func (l *List) Release() {
	l.scratch.Release()
	l.indices.Release()
	l.Rows = nil
}

// SkipsBad reports whether the attribute bad_indices_policy tells an operation to skip indices out
// of range.
func SkipsBad(attrs opdef.Attrs) (bool, error) {
	switch policy := attrs.String("bad_indices_policy"); policy {
	case "", "DEFAULT", "ERROR":
		return false, nil
	case "IGNORE":
		return true, nil
	default:
		return false, status.InvalidArgumentf("Unknown bad indices handling attribute: %s", policy)
	}
}

// skipped is the row number of an index to skip.
const skipped = -1

// Read returns the elements of an integer tensor as row numbers in [0, limit). bad is the position
// of the first one out of range, or -1.
func Read(indices *tensor.Tensor, limit int) (l List, bad int, err error) {
	if l, err = ReadUnchecked(indices); err != nil {
		return l, -1, err
	}
	for i, row := range l.Rows {
		if uint64(row) >= uint64(limit) {
			return l, i, nil
		}
	}
	return l, -1, nil
}

// ReadUnchecked returns the elements of an integer tensor without checking their range.
func ReadUnchecked(t *tensor.Tensor) (l List, err error) {
	if t.OnDevice() {
		return readOnDevice(t), nil
	}
	if t.DType() == tensor.Int64 {
		l.Rows = tensor.Values[int64](t)
		return l, nil
	}
	if err = l.alloc(t.NumElements()); err != nil {
		return l, err
	}
	if t.DType() == tensor.Int32 {
		simd.Int64FromInt32(l.Rows, tensor.Values[int32](t))
	} else {
		intarg.Read(l.Rows, t, 0)
	}
	return l, nil
}

func (l *List) alloc(n int) (err error) {
	if l.scratch, err = tensor.Alloc(tensor.Int64, tensor.Shape{int64(n)}); err == nil {
		l.Rows = tensor.Values[int64](&l.scratch)
	}
	return err
}

// ReadVectors returns the row numbers of the index vectors in the last dimension of an integer
// tensor. Each vector is an index into dims, which has one row per element. bad is the position of
// the first vector out of range, or -1. With skip, such vectors are skipped instead.
func ReadVectors(indices *tensor.Tensor, dims tensor.Shape, skip bool) (l List, bad int, err error) {
	depth := len(dims)
	n := 0
	if depth > 0 {
		n = indices.NumElements() / depth
	} else {
		n = int(indices.Shape()[:indices.Rank()-1].NumElements())
	}
	if d := device.Of(indices); d != nil {
		return vectorsOnDevice(d, indices, dims, int64(n)), -1, nil
	}
	if err := l.alloc(n); err != nil {
		return l, -1, err
	}
	switch indices.DType() {
	case tensor.Int16:
		bad = flatten(l.Rows, tensor.Values[int16](indices), dims, skip)
	case tensor.Int32:
		bad = flatten(l.Rows, tensor.Values[int32](indices), dims, skip)
	default:
		bad = flatten(l.Rows, tensor.Values[int64](indices), dims, skip)
	}
	return l, bad, nil
}

// flatten sets rows to the row numbers of vectors of len(dims) indices each. It returns the first
// vector out of range, or -1.
func flatten[T int16 | int32 | int64](rows []int64, indices []T, dims tensor.Shape, skip bool) (bad int) {
	depth := len(dims)
	if depth == 2 { // matrix positions, without an inner loop
		height, width := dims[0], dims[1]
		for i := range rows {
			y, x := int64(indices[2*i]), int64(indices[2*i+1])
			switch {
			case uint64(y) < uint64(height) && uint64(x) < uint64(width):
				rows[i] = y*width + x
			case skip:
				rows[i] = skipped
			default:
				return i
			}
		}
		return -1
	}
	for i := range rows {
		row, ok := int64(0), true
		for k, x := range indices[i*depth : (i+1)*depth] {
			ok = ok && uint64(x) < uint64(dims[k])
			row = row*dims[k] + int64(x)
		}
		switch {
		case ok:
			rows[i] = row
		case skip:
			rows[i] = skipped
		default:
			return i
		}
	}
	return -1
}

// Vector formats vector i of a tensor of index vectors: "1, 0".
func Vector(indices *tensor.Tensor, i int) string {
	depth := indices.Dim(indices.Rank() - 1)
	index := membudget.Make[int64](depth)
	intarg.Read(index, indices, i*depth)
	parts := membudget.Make[string](depth)
	for k, x := range index {
		parts[k] = strconv.FormatInt(x, 10)
	}
	//sizedmake:ok an element for each dimension
	return strings.Join(parts, ", ")
}

// NewList returns a list of n row numbers for the caller to fill in. Negative row numbers are
// skipped.
func NewList(n int) (l List, err error) {
	err = l.alloc(n)
	return l, err
}
