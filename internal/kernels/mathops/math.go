// Package mathops holds the arithmetic operations: elementwise functions of one and two tensors,
// comparisons, reductions, casts and matrix products.
//
// Families of operations are tables. A row has the name of an operation and a loop for each element
// type, and package elementwise or the type reduction runs the loop over whole tensors. Most loops
// for float32 and float64 are vector code.
package mathops

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// byT returns kernels that are given by the types of their only type attribute, T.
func byT(table kernel.Table) []kernel.Impl { return kernel.ByType("T", table) }

// nanoseconds per element of common loops, which decide from what size on work is shared between
// cores.
const (
	cheap  = 0.2 // bound by memory
	medium = 2   // vector code for a transcendental function
	costly = 12  // a function of Go's math package
)

// row adds a row per type to a table.
func row[T, R tensor.Elem](t kernel.Table, l elementwise.Loops[T, R]) {
	t[tensor.DTypeOf[T]()] = l.Kernel()
}
