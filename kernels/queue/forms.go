package queue

import (
	"slices"

	"github.com/weft-ml/weft/internal/resource"
	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// registerForms adds an operation whose first input is a handle in both of its forms: that of older graphs, which def
// describes and whose handle is a reference to two strings, and that with a resource handle, which has a name and a rule for
// shapes of its own.
func registerForms(def opdef.Def, newName string, newShape opdef.ShapeFn, impl kernel.New) {
	inputs := def.In
	def.In = append([]string{"handle: Ref(string)"}, inputs...)
	kernel.Register(kernel.Op{Def: def, Kernels: kernel.Any(impl)})
	def.In = append([]string{"handle: resource"}, inputs...)
	def.Name, def.Shape, def.Stateful = newName, newShape, true
	kernel.Register(kernel.Op{Def: def, Kernels: kernel.Any(impl)})
}

// sameSignature compares the types of a node's inputs and outputs with those that its resource asks for.
func sameSignature(in, out, wantIn, wantOut []tensor.DType) error {
	if slices.Equal(in, wantIn) && slices.Equal(out, wantOut) {
		return nil
	}
	return status.InvalidArgumentf("Signature mismatch, have: %s->%s expected: %s->%s",
		opdef.JoinTypes(in), opdef.JoinTypes(out), opdef.JoinTypes(wantIn), opdef.JoinTypes(wantOut))
}

// handleVectors is the rule of older operations that take nothing but a handle and give scalars.
func handleVectors(c *opdef.ShapeContext) error {
	for _, in := range c.In {
		handle, err := opdef.WithRank(in, 1)
		if err == nil {
			err = shapes.CheckDim(handle.Dim(0), 2)
		}
		if err != nil {
			return err
		}
	}
	return opdef.ScalarShape(c)
}

// onQueue returns the kernel that calls f with the queue behind input 0.
func onQueue(f func(ctx *kernel.Context, q *Queue, done func(error))) kernel.Kernel {
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		q, err := resource.Find[*Queue](ctx, 0)
		if err != nil {
			done(err)
			return
		}
		f(ctx, q, done)
	})
}
