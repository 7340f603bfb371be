package queue

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

// registerForms registers both forms of an operation on a queue.
func registerForms(def opdef.Def, newName string, newShape opdef.ShapeFn, impl kernel.New) {
	resource.RegisterForms("handle", def, newName, newShape, impl)
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
