// Package op builds graphs: one documented function per operation, and the scopes that they add
// nodes to.
//
//	s := op.NewScope()
//	x := op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, 2)))
//	w := op.Const(s.Named("w"), [][]float32{{1}, {2}})
//	y := op.MatMul(s, x, w)
//	g, err := s.Finalize()
//
// # Scopes
//
// A [Scope] is a place in a graph. It carries what the nodes that are added through it have in
// common: the prefix of their names, their device, the nodes that run before them. A scope never
// changes: its methods return another scope of the same graph, so that a scope that was passed on
// cannot surprise its owner.
//
//	layer := s.SubScope("layer1").WithDevice("/job:worker/task:0")
//	h := op.Relu(layer.Named("h"), op.MatMul(layer, x, w)) // nodes "layer1/MatMul" and "layer1/h"
//
// Names are made unique as TensorFlow's Python API does it: "x", "x_1", "x_2". A name that is not
// given is that of the operation.
//
// # Conditions, loops and functions
//
// [Cond] and [WhileLoop] take functions that add the nodes of a branch or of a body, [NewFunction]
// one that adds those of a function. Values from around are used in them like any others. Results
// leave through what these return, and in no other way: a value of a body that is used outside of
// it is a mistake.
//
//	y := op.Cond(s, pred,
//		func(s *op.Scope) []op.Output { return []op.Output{op.Square(s, x)} },
//		func(s *op.Scope) []op.Output { return []op.Output{x} })[0]
//
// # Build errors
//
// Functions that add nodes return no error and never panic. One that cannot add its node records
// why, with the file and line of the caller, and returns the zero [Output]; functions that are
// given the zero Output add nothing. [Scope.Finalize] returns all errors together.
//
// Types are checked as nodes are added. Shapes are checked too in a program that links the shape
// rules, which come with the kernels: one that imports local, server or kernels. Any other program
// learns of a wrong shape from the master, with the first step that runs it.
//
// # Optional attributes
//
// Attributes that have a default are optional arguments, made by functions that start with the name
// of the operation:
//
//	y := op.MatMul(s, a, b, op.MatMulTransposeB(true))
//
// # Builders
//
// There is a function for every operation. Its documentation ends with a table of the types and
// shapes of its arguments and, below the arrow, of its results:
//
//	matrix  T  […,?,?]
//	rhs     T  […,?,?]
//	→
//	output  T  shape of rhs
//
// T is one type in all of the table; which types it may be is said below. A shape is a list of
// sizes, "?" for any; "…" stands for any number of dimensions, and nothing is said where a shape
// depends on more. "N tensors of T" are passed as a slice. A "variable of T" is a reference, as
// [VariableV2] gives it; variables of the type resource are passed by their handle. An operation
// without results returns its node, to run it or to let others wait for it.
//
// Two sets of types have names. numbertype is float32, float64, int32, uint8, int16, int8,
// complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, float16,
// uint32 and uint64. realnumbertype is numbertype without the complex and quantized types.
//
// The builders in the files *_gen.go, one for each family of kernels, are generated from the
// registry of kernels (go generate ./op) and link none of them. Operations without a builder are
// added with [Scope.Add].
package op

//go:generate go run ../cmd/internal/opgen
//go:generate go run ../cmd/internal/apilist
