// Package op builds graphs. It has a documented function, a builder, for each operation, and scopes
// through which builders add nodes.
//
//	s := op.NewScope()
//	x := op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, 2)))
//	w := op.Const(s.Named("w"), [][]float32{{1}, {2}})
//	y := op.MatMul(s, x, w)
//	g, err := s.Finalize()
//
// # Scopes
//
// A [Scope] holds what the nodes that are added through it have in common: the prefix of their
// names, their device, and their control dependencies. Scopes are immutable. Their methods return
// another scope of the same graph, so a function that receives a scope cannot change that of its
// caller.
//
//	layer := s.SubScope("layer1").WithDevice("/job:worker/task:0")
//	h := op.Relu(layer.Named("h"), op.MatMul(layer, x, w)) // nodes "layer1/MatMul" and "layer1/h"
//
// Names are made unique as in TensorFlow's Python API: "x", "x_1", "x_2". The default name of a
// node is that of its operation.
//
// # Conditions, loops and functions
//
// [Cond] and [WhileLoop] take functions that add the nodes of a branch or of a loop body, and
// [NewFunction] takes one that adds the nodes of a function body. These functions may use values of
// the surrounding graph. Their results are the only values of a branch or body that may be used
// outside of it; any other use is a build error.
//
//	y := op.Cond(s, pred,
//		func(s *op.Scope) []op.Output { return []op.Output{op.Square(s, x)} },
//		func(s *op.Scope) []op.Output { return []op.Output{x} })[0]
//
// # Build errors
//
// Builders return no error and never panic. A builder that cannot add its node records a build
// error, with the file and line of the caller, and returns the zero [Output]. Builders that receive
// the zero Output add nothing. [Scope.Finalize] returns all build errors.
//
// Types are checked as nodes are added. Shapes are checked too if the program links the kernels,
// with which the shape functions come: it imports local, server or kernels. In any other program a
// wrong shape is an error of the first step that runs the node, reported by the master.
//
// # Optional attributes
//
// Attributes with a default are optional arguments. Their functions are named after the operation
// and the attribute:
//
//	y := op.MatMul(s, a, b, op.MatMulTransposeB(true))
//
// # Builders
//
// The documentation of a builder ends with a table of the types and shapes of its arguments and,
// below the arrow, of its results:
//
//	matrix  T  […,?,?]
//	rhs     T  […,?,?]
//	→
//	output  T  shape of rhs
//
// T is the same type in the whole table; the types that it may be are listed below. A shape is a
// list of sizes, in which "?" is any size and "…" any number of dimensions. The shape is omitted if
// the table cannot express it. "N tensors of T" are passed as a slice. A "variable of T" is a
// reference, such as the result of [VariableV2]; variables of type resource are passed by their
// handle. The builder of an operation without results returns its node, for use as a target or
// control dependency.
//
// Two sets of types have names. numbertype is float32, float64, int32, uint8, int16, int8,
// complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, float16,
// uint32 and uint64. realnumbertype is numbertype without the complex and quantized types.
//
// The builders in the files *_gen.go, one for each family of kernels, are generated from the
// registry of kernels (go generate ./op) but link none of them. [Scope.Add] adds operations without
// a builder.
package op

//go:generate go run ../cmd/internal/opgen
//go:generate go run ../cmd/internal/apilist
