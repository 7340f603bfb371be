package source

import (
	"encoding/binary"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// maxDims is the number of dimensions of the structure Loop in the kernels.
const maxDims = 12

// Loop is a traversal of a shape by up to four operands, an argument of kernels. Adjacent
// dimensions that all operands traverse with one stride are merged.
type Loop struct {
	Sizes   []int64
	Strides [][]int64 // of each operand by dimension, in elements
}

// NewLoop returns the loop over a shape with the given strides. ok is false if no kernel can do it.
func NewLoop(shape []int64, strides ...[]int64) (l Loop, ok bool) {
	l.Strides = make([][]int64, len(strides))
	total := int64(1)
	for d, n := range shape {
		total *= n
		if n == 1 {
			continue
		}
		last := len(l.Sizes) - 1
		merges := last >= 0
		for k := range strides {
			merges = merges && l.Strides[k][last] == strides[k][d]*n
		}
		if !merges {
			l.Sizes = append(l.Sizes, n)
			for k := range strides {
				l.Strides[k] = append(l.Strides[k], strides[k][d])
			}
			continue
		}
		l.Sizes[last] *= n
		for k := range strides {
			l.Strides[k][last] = strides[k][d]
		}
	}
	if len(l.Sizes) == 0 {
		l.Sizes = []int64{1}
		for k := range l.Strides {
			l.Strides[k] = []int64{0}
		}
	}
	return l, len(l.Sizes) <= maxDims && total < 1<<32
}

// Len returns the number of elements.
func (l *Loop) Len() int64 {
	n := int64(1)
	for _, size := range l.Sizes {
		n *= size
	}
	return n
}

// Arg returns the argument of a kernel.
func (l *Loop) Arg() driver.Struct {
	b := make(driver.Struct, 8+4*maxDims+4*8*maxDims)
	binary.NativeEndian.PutUint32(b, uint32(len(l.Sizes)))
	for d, n := range l.Sizes {
		binary.NativeEndian.PutUint32(b[8+4*d:], uint32(n))
	}
	for k, s := range l.Strides {
		for d, v := range s {
			binary.NativeEndian.PutUint64(b[8+4*maxDims+8*(k*maxDims+d):], uint64(v))
		}
	}
	return b
}
