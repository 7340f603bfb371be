// Package gradients differentiates graphs: it adds to a graph the nodes that compute the
// derivatives of some of its outputs with respect to others, by reverse accumulation.
//
//	grads := gradients.Add(s, []op.Output{loss}, []op.Output{w, b})
//
// A gradient ([Grad]) is dense, sparse ([IndexedSlices], for the rows that were gathered from a
// large variable), or none, where the one does not depend on the other. The nodes are named as
// TensorFlow names them: below "gradients", those for operation x below "gradients/x_grad".
//
// # Loops, conditions and functions
//
// Gradients pass through the nodes of [op.WhileLoop] and [op.Cond], also in graphs that were
// imported, and through calls of functions. The gradient of a loop is a loop that goes backwards
// over the values of its iterations, which it keeps on stacks; it cannot be differentiated again,
// as in TensorFlow. The gradient of a function runs the function again for the values that it
// needs, so that one with random numbers or effects has none.
//
// # Rules
//
// A differentiable operation has a [Rule], which adds the nodes for one step of the chain rule; the
// rules of this package are in files by family. A program adds rules for operations that have none
// with [Register]:
//
//	gradients.Register(func(c *gradients.Call) []gradients.Grad {
//		return gradients.List(op.Mul(c.S, c.DY(0), op.Cos(c.S, c.In(0))))
//	}, "Sin")
//
// An operation without a rule that a gradient would have to pass is a mistake. One that is declared
// [NotDifferentiable] is taken for a constant. Rules need no shapes to be known; where TensorFlow's
// need them (decompositions, least squares), or are for real numbers only, those here do not.
//
// [Check] compares what a graph computes as its gradients with differences of its values: how the
// rules here are tested, and how to test one's own.
package gradients
