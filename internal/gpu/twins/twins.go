// Package twins has the kernels of package source a second time, in Go, for devices that exist in
// software only (package hostgpu). Importing it registers them. They take the same arguments in the
// same order.
//
// Elementwise kernels call the CPU's kernel of the operation, which the program must have
// registered. The others are plain loops: floating-point types compute in float64 and round once.
package twins

import (
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/internal/gpu/source"
)

// dims is the number of dimensions of a Loop in the kernels' source.
const dims = 12

// loop is the argument of kernels that traverse several dimensions.
type loop struct {
	Rank, _ uint32
	Size    [dims]uint32
	Stride  [4][dims]int64
}

// offset returns the offset of operand k for element i.
func (l *loop) offset(k int, i int64) int64 {
	var at int64
	for d := int(l.Rank) - 1; d >= 0; d-- {
		n := int64(l.Size[d])
		at += i % n * l.Stride[k][d]
		i /= n
	}
	return at
}

// number is a type that kernels compute with.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float64
}

// elem is an element type: its name in the names of kernels, and the conversions between elements
// and the type for computing.
type elem[S, C number] struct {
	name  string
	load  func(S) C
	store func(C) S
	float bool
	// lowest and highest are the identities of maximum and minimum.
	lowest, highest C
}

// half and bfloat are elements of 16 bits.
type half = uint16

// float32Bits is a float32 that is stored as its bits, so that all stored types are integers or
// float64.
type float32Bits = uint32

func register(name string, f func(a *hostgpu.Args)) { hostgpu.RegisterKernel(name, f) }

// dtypes are the element types by their names in the names of kernels.
var dtypes = source.TypesByName
