package queue

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"Tcomponents: list(type) >= 1", "timeout_ms: int = -1"}
	registerForms(opdef.Def{
		Name: "QueueEnqueue", Doc: "Enqueues one element, whose components are the inputs. Blocks while the queue is full.",
		In: []string{"components: Tcomponents"}, Attrs: attrs, Shape: opdef.UnknownShape,
	}, "QueueEnqueueV2", opdef.UnknownShape, access(enqueue))
	registerForms(opdef.Def{
		Name: "QueueEnqueueMany", Doc: "Enqueues one element for each row of the inputs. Blocks while the queue is full.",
		In: []string{"components: Tcomponents"}, Attrs: attrs, Shape: opdef.UnknownShape,
	}, "QueueEnqueueManyV2", opdef.UnknownShape, access(enqueueMany))
}

// access returns the kernel of an operation that enqueues or dequeues elements.
func access(f func(*kernel.Context, *Queue, func(error))) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		if c.Attrs.Int("timeout_ms") != -1 {
			return nil, status.InvalidArgumentf("Timeout not supported yet.")
		}
		in, out := c.Inputs, c.Outputs
		return onQueue(func(ctx *kernel.Context, q *Queue, done func(error)) {
			if err := checkSignature(q, in, out); err != nil {
				done(err)
				return
			}
			f(ctx, q, done)
		}), nil
	}
}

// checkSignature compares the dtypes of a node's inputs and outputs with the components of a queue.
// Components that are not outputs are the last inputs.
func checkSignature(q *Queue, in, out []tensor.DType) error {
	wantIn, wantOut := in, q.types
	if len(out) == 0 {
		wantIn, wantOut = slices.Concat(in[:1], q.types), nil
	}
	return resource.CheckSignature(in, out, wantIn, wantOut)
}

func enqueue(ctx *kernel.Context, q *Queue, done func(error)) {
	for i, want := range q.shapes {
		if err := checkComponent(ctx, i, want); err != nil {
			done(err)
			return
		}
	}
	//sizedmake:ok components of an element
	e := make(element, len(q.types))
	for i := range e {
		e[i] = ctx.TakeInput(1 + i)
	}
	q.enqueue(ctx.Context(), []element{e}, done)
}

func checkComponent(ctx *kernel.Context, i int, want tensor.PartialShape) error {
	if got := ctx.Input(1 + i).Shape(); !want.CompatibleWith(got) {
		return status.InvalidArgumentf("Shape mismatch in tuple component %d. Expected %v, got %v", i, want, got)
	}
	return nil
}

// rowsBetween is the number of rows between two looks at the context.
const rowsBetween = 1 << 10

func enqueueMany(ctx *kernel.Context, q *Queue, done func(error)) {
	n, err := countRows(ctx, q)
	if err != nil || n == 0 {
		done(err)
		return
	}
	elems := membudget.Make[element](n)
	for i := range elems {
		if i%rowsBetween == 0 { // there may be a hundred million without elements
			err = ctx.Context().Err()
		}
		if err == nil {
			elems[i], err = rowsOf(ctx, q, i)
		}
		if err != nil {
			done(err)
			return
		}
	}
	q.enqueue(ctx.Context(), elems, done)
}

// countRows returns the number of elements in the inputs.
func countRows(ctx *kernel.Context, q *Queue) (int, error) {
	for i := range q.types {
		if ctx.Input(1+i).Rank() == 0 && (i == 0 || len(q.shapes) == 0) {
			return 0, status.InvalidArgumentf("component %d of QueueEnqueueMany is a scalar, which has no rows", i)
		}
	}
	n := ctx.Input(1).Dim(0)
	for i, shape := range q.shapes {
		if err := checkComponent(ctx, i, shapefn.Concat(shapefn.Of(int64(n)), shape)); err != nil {
			return 0, err
		}
	}
	for i := range q.types {
		if have := ctx.Input(1 + i).Dim(0); have != n {
			return 0, status.InvalidArgumentf("All input tensors must have the same size in the 0th dimension. "+
				"Component %d has %d, and should have %d", i, have, n)
		}
	}
	return n, nil
}

// rowsOf returns row i of each component.
func rowsOf(ctx *kernel.Context, q *Queue, i int) (element, error) {
	//sizedmake:ok components of an element
	e := make(element, len(q.types))
	for c := range e {
		var err error
		if e[c], err = paidRow(resource.Account(ctx), ctx.Input(1+c), i); err != nil {
			e.release()
			return nil, err
		}
	}
	return e, nil
}

// paidRow returns row i of a tensor, for which an account pays.
func paidRow(a *membudget.Account, t *tensor.Tensor, i int) (tensor.Tensor, error) {
	row, err := stacking.Row(t, i)
	if err == nil {
		err = resource.Charge(a, &row)
	}
	return row, err
}
