// Sizedmake reports allocations of kernels whose size is not a constant and that package membudget
// does not count.
//
//	go vet -vettool=bin/sizedmake ./internal/kernels/... ./internal/opkit/...
//
// The size of such an allocation comes from an input or an attribute, so a request could take all
// memory with it. Use membudget.Make, MakeCap, Append or a Meter. A comment
// //sizedmake:ok REASON on the line, or on the one above, accepts a size that is bounded by
// something else.
package main

import "golang.org/x/tools/go/analysis/unitchecker"

func main() { unitchecker.Main(analyzer) }
