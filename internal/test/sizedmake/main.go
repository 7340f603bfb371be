// Sizedmake reports allocations of kernels whose size is not a constant and that package membudget
// does not count.
//
//	go vet -vettool=bin/sizedmake ./internal/kernels/... ./internal/opkit/...
//
// The size of such an allocation comes from an input or an attribute, so a request could take all
// memory with it. Use membudget.Make, MakeCap, Append or a Meter. A comment
// //sizedmake:ok REASON on the line, or on the one above, accepts a size that is bounded by
// something else.
//
// It also reports append to a list, and assignments to entries of a map, in a loop that does not
// declare the list or map, because a kernel that adds 64 bytes for each byte of an input needs 64
// times the memory that the input is counted with. Accepted are
//
//   - loops that a constant, a shape, an array, a list of types or the number of inputs or outputs
//     bounds: these belong to the graph, which is counted
//   - one loop over a list whose elements are not smaller than what each iteration adds, also
//     within a loop whose variable the list depends on: what is added is in proportion to that list
//   - loops that ask package membudget for memory (Take, MustTake, MustTakeEntry), and lists that
//     were made with a capacity
//   - maps by type of element
//   - functions with a *opdef.ShapeContext or *kernel.Construction, and init: they run for a graph
//     or at the start
//
// It reports copies of lists and joined text (slices.Clone, slices.Concat, strings.Join, and those
// of package bytes), because many elements may share their text, and a copy is not counted with the
// input. Accepted are
//
//   - lists that are written out or are variables of a package, shapes, dimensions of a strided
//     view, lists of types, components of an element of a dataset, and parts and copies of these
//   - what is in a block that asks package membudget for memory
//   - parts of the definition of an operation, and functions for a graph or the start, as above
//
// It does not see lists that grow by a call of a method for each element, text that grows in a
// strings.Builder, and functions of other packages that return more than they get.
package main

import "golang.org/x/tools/go/analysis/unitchecker"

func main() { unitchecker.Main(analyzer) }
