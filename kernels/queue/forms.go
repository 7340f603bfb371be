package queue

import (
	"github.com/weft-ml/weft/internal/resource"
	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

// registerForms adds an operation on a queue in both of its forms: that of older graphs, whose handle is a reference to two
// strings, and that with a resource handle, which has another rule for shapes and a name that ends in "V2".
func registerForms(def opdef.Def, old, new opdef.ShapeFn, impl kernel.New) {
	first := def
	first.In = append([]string{"handle: Ref(string)"}, def.In...)
	first.Shape = old
	kernel.Register(kernel.Op{Def: first, Kernels: kernel.Any(impl)})
	second := def
	second.Name, second.Stateful = second.Name+"V2", true
	second.In = append([]string{"handle: resource"}, def.In...)
	second.Shape = new
	kernel.Register(kernel.Op{Def: second, Kernels: kernel.Any(impl)})
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
