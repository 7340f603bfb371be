// Package gradients differentiates graphs: it adds to a graph the nodes that compute the
// derivatives of some of its outputs with respect to others, by reverse accumulation.
//
//	grads := gradients.Compute(s, []op.Output{loss}, []op.Output{w, b})
//
// A gradient ([Grad]) is dense, sparse ([IndexedSlices], for the rows that were gathered from a
// large variable), or none, where the one does not depend on the other. The nodes are named as
// TensorFlow names them: below "gradients", those for operation x below "gradients/x_grad".
//
// # Loops, conditions and functions
//
// Gradients pass through the nodes of [op.WhileLoop] and [op.Cond], also in imported graphs, and
// through calls of functions. The gradient of a loop is a loop that runs backwards over the values
// of the iterations, which the forward loop saves on stacks. It cannot be differentiated again, as
// in TensorFlow. The gradient of a function runs the function again for the values that it needs,
// so a function with random numbers or side effects has none.
//
// # Rules
//
// A differentiable operation has a [Rule], which adds the nodes for one step of the chain rule. The
// rules of this package are in files by family. A program adds rules for other operations with
// [Register]:
//
//	gradients.Register(func(c *gradients.Call) []gradients.Grad {
//		return gradients.List(op.Mul(c.S, c.DY(0), op.Cos(c.S, c.In(0))))
//	}, "Sin")
//
// A gradient that would have to pass through an operation without a rule is a build error. An
// operation that is declared [NotDifferentiable] counts as a constant. Rules need no known shapes
// and accept complex numbers, also where TensorFlow's do not (decompositions, least squares).
//
// [Check] compares the gradients of a graph with finite differences. The rules of this package are
// tested with it, and a program can test its own.
package gradients
