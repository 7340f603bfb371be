package queue

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerForms(opdef.Def{
		Name: "QueueClose", Doc: "Closes a queue. Pending enqueue operations complete first, unless " +
			"cancel_pending_enqueues is set.",
		Attrs: []string{"cancel_pending_enqueues: bool = false"}, Shape: resource.ByNamesShape,
	}, "QueueCloseV2", nil, newClose)
	registerForms(opdef.Def{
		Name: "QueueIsClosed", Doc: "Returns true if the queue is closed.",
		Out: []string{"is_closed: bool"}, Shape: opdef.ScalarShape,
	}, "QueueIsClosedV2", opdef.ScalarShape, query(func(q *Queue) tensor.Tensor { return tensor.Scalar(q.isClosed()) }))
	registerForms(opdef.Def{
		Name: "QueueSize", Doc: "Returns the number of elements in a queue.",
		Out: []string{"size: int32"}, Shape: resource.ByNamesShape,
	}, "QueueSizeV2", opdef.SameShape, query(func(q *Queue) tensor.Tensor { return tensor.Scalar(int32(q.size())) }))
	kernel.RegisterFunc(opdef.Def{
		Name: "FakeQueue", Doc: "Returns a string reference to the queue behind a resource handle, for older operations.",
		In: []string{"resource: resource"}, Out: []string{"handle: Ref(string)"}, Stateful: true, Shape: resource.NamesShape,
	}, fakeQueue)
}

func newClose(c *kernel.Construction) (kernel.Kernel, error) {
	cancel := c.Attrs.Bool("cancel_pending_enqueues")
	return onQueue(func(ctx *kernel.Context, q *Queue, done func(error)) { q.close(ctx.Context(), cancel, done) }), nil
}

// query returns the kernel that outputs the tensor f returns for a queue.
func query(f func(*Queue) tensor.Tensor) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		q, err := resource.Find[*Queue](ctx, 0)
		if err == nil {
			ctx.SetOutput(0, f(q))
		}
		return err
	})
}

func fakeQueue(ctx *kernel.Context) error {
	h, err := resource.Handle(ctx, 0)
	if err != nil {
		return err
	}
	names := kernel.NewVariable()
	names.Store(tensor.Vector(h.Container, h.Name))
	ctx.SetOutputRef(0, names)
	return nil
}
