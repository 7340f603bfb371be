package queue

import (
	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"component_types: list(type) >= 1", "timeout_ms: int = -1"}
	registerForms(opdef.Def{
		Name: "QueueDequeue", Doc: "Dequeues one element. Blocks while the queue is empty.",
		Out: []string{"components: component_types"}, Attrs: attrs, Shape: opdef.UnknownShape,
	}, "QueueDequeueV2", dequeueShape, access(dequeue))
	registerForms(opdef.Def{
		Name: "QueueDequeueMany",
		Doc: "Dequeues n elements and stacks them along a new first dimension. Blocks until n " +
			"elements are available.",
		In: []string{"n: int32"}, Out: []string{"components: component_types"}, Attrs: attrs, Shape: opdef.UnknownShape,
	}, "QueueDequeueManyV2", dequeueManyShape, access(dequeueMany("DequeueManyOp", false)))
	registerForms(opdef.Def{
		Name: "QueueDequeueUpTo",
		Doc: "Dequeues n elements like QueueDequeueMany. A closed queue returns the remaining " +
			"elements, at least one.",
		In: []string{"n: int32"}, Out: []string{"components: component_types"}, Attrs: attrs, Shape: opdef.UnknownShape,
	}, "QueueDequeueUpToV2", dequeueUpToShape, access(dequeueMany("DequeueUpToOp", true)))
}

func dequeueShape(c *opdef.ShapeContext) error {
	if elems := c.InHandles[0]; len(elems) == len(c.Out) {
		for i, e := range elems {
			c.Out[i] = e.Shape
		}
	}
	return nil
}

func dequeueManyShape(c *opdef.ShapeContext) error {
	n, ok := c.ScalarValue(1)
	if ok && n < 0 {
		return status.InvalidArgumentf("Input 'n' must be >= 0, but is %d", n)
	}
	if !ok {
		n = shapefn.Unknown
	}
	return batchShape(c, n)
}

func dequeueUpToShape(c *opdef.ShapeContext) error { return batchShape(c, shapefn.Unknown) }

func batchShape(c *opdef.ShapeContext, n int64) error {
	if elems := c.InHandles[0]; len(elems) == len(c.Out) {
		for i, e := range elems {
			c.Out[i] = shapefn.Concat(shapefn.Of(n), e.Shape)
		}
	}
	return nil
}

func dequeue(ctx *kernel.Context, q *Queue, done func(error)) {
	q.Dequeue(ctx.Context(), func(components []tensor.Tensor, err error) {
		for i := range components {
			ctx.SetOutput(i, components[i])
		}
		done(err)
	})
}

func dequeueMany(name string, upTo bool) func(*kernel.Context, *Queue, func(error)) {
	return func(ctx *kernel.Context, q *Queue, done func(error)) {
		n, err := batchSize(ctx, q, name)
		if err != nil {
			done(err)
			return
		}
		if n == 0 {
			done(q.outputBatch(ctx, nil))
			return
		}
		q.dequeueMany(ctx.Context(), n, upTo, func(elems []element, err error) {
			if err == nil {
				err = q.outputBatch(ctx, elems)
			}
			done(err)
		})
	}
}

func batchSize(ctx *kernel.Context, q *Queue, op string) (int, error) {
	in := ctx.Input(1)
	if in.NumElements() != 1 {
		return 0, status.InvalidArgumentf("n must be a scalar, has shape %v", in.Shape())
	}
	n := tensor.Value[int32](in)
	if n < 0 {
		return 0, status.InvalidArgumentf("%s requested %d < 0 elements", op, n)
	}
	if len(q.shapes) == 0 {
		return 0, status.InvalidArgumentf("%s's DequeueMany and DequeueUpTo require the components to have specified shapes.", q.kind.name)
	}
	return int(n), nil
}

// outputBatch batches the components of elements, which it owns, and sets them as the outputs of a
// kernel.
func (q *Queue) outputBatch(ctx *kernel.Context, elems []element) error {
	return outputElements(ctx, elems, q.types, q.shapes)
}

// outputElements batches the components of elements, which it owns, and sets them as the outputs of
// a kernel. Components have the given types and shapes. A panic is an error: the goroutine may
// belong to another step, or to none.
func outputElements(ctx *kernel.Context, elems []element, types []tensor.DType, shapes []tensor.PartialShape) error {
	return guard.Call("elements of a queue", func() error { return stackElements(ctx, elems, types, shapes) })
}

func stackElements(ctx *kernel.Context, elems []element, types []tensor.DType, shapes []tensor.PartialShape) error {
	defer func() {
		for _, e := range elems {
			e.release()
		}
	}()
	rows := membudget.Make[tensor.Tensor](len(elems))
	for i, dtype := range types {
		for r, e := range elems {
			rows[r] = e[i]
		}
		out, err := stackRows(dtype, shapes[i], rows)
		if err != nil {
			return err
		}
		ctx.SetOutput(i, out)
	}
	return nil
}

// stackRows returns a tensor with the given rows, padded to one shape if some dimensions are
// unknown.
func stackRows(dtype tensor.DType, shape tensor.PartialShape, rows []tensor.Tensor) (tensor.Tensor, error) {
	if full, ok := shape.Full(); ok {
		return stacking.Stack(dtype, full, rows)
	}
	return stacking.Pad(dtype, shape, rows)
}
