package ioops

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerRead(opdef.Def{
		Name: "ReaderRead", Doc: "Returns the next record of a reader. At the end of a file the reader dequeues " +
			"the next file name.",
		Out: []string{"key: string", "value: string"}, Shape: opdef.ScalarShape,
	}, readOne)
	registerRead(opdef.Def{
		Name: "ReaderReadUpTo", Doc: "Returns up to num_records records of a reader. At the end of a file it returns " +
			"fewer, but at least one.",
		In: []string{"num_records: int64"}, Out: []string{"keys: string", "values: string"}, Shape: readManyShape,
	}, readMany)
}

// registerRead registers both forms of an operation with handles of a reader and a queue. shape is
// the shape function of the remaining inputs and outputs.
func registerRead(def opdef.Def, compute kernel.AsyncFunc) {
	inputs, shape := def.In, def.Shape
	impl := kernel.Any(func(*kernel.Construction) (kernel.Kernel, error) { return compute, nil })

	def.In = append([]string{"reader_handle: Ref(string)", "queue_handle: Ref(string)"}, inputs...)
	def.Shape = after(resource.CheckNames, shape)
	kernel.Register(kernel.Op{Def: def, Kernels: impl})

	def.Name, def.Stateful = def.Name+"V2", true
	def.In = append([]string{"reader_handle: resource", "queue_handle: resource"}, inputs...)
	def.Shape = after(func(c *opdef.ShapeContext, i int) error { return shapefn.CheckRanks(c, i, 0) }, shape)
	kernel.Register(kernel.Op{Def: def, Kernels: impl})
}

// after returns the shape function that checks two handles and then calls shape.
func after(check func(*opdef.ShapeContext, int) error, shape opdef.ShapeFn) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		for i := range 2 {
			if err := check(c, i); err != nil {
				return err
			}
		}
		return shape(c)
	}
}

func readManyShape(c *opdef.ShapeContext) error {
	c.SetAll(shapefn.Of(shapefn.Unknown))
	return shapefn.CheckRanks(c, 2, 0)
}

// source returns the reader and the queue of the first two inputs.
func source(ctx *kernel.Context) (*Reader, workQueue, error) {
	r, err := resource.Find[*Reader](ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	q, err := resource.FindAs[workQueue](ctx, 1, "N10tensorflow14QueueInterfaceE")
	return r, q, err
}

func readOne(ctx *kernel.Context, done func(error)) {
	r, q, err := source(ctx)
	if err != nil {
		done(err)
		return
	}
	r.use(ctx.Context(), done, func() error {
		got, err := r.read(ctx.Context(), q, 1)
		if err != nil {
			return err
		}
		ctx.SetOutput(0, tensor.Scalar(got[0].key))
		ctx.SetOutput(1, tensor.Scalar(got[0].value))
		return nil
	})
}

func readMany(ctx *kernel.Context, done func(error)) {
	r, q, err := source(ctx)
	if err != nil {
		done(err)
		return
	}
	num := ctx.Input(2)
	if num.Rank() != 0 || tensor.Value[int64](num) < 0 {
		done(status.InvalidArgumentf("num_records must be a scalar that is not negative, got %v", *num))
		return
	}
	n := tensor.Value[int64](num)
	r.use(ctx.Context(), done, func() error {
		got, err := r.read(ctx.Context(), q, n)
		if err != nil {
			return err
		}
		keys, values := membudget.Make[string](len(got)), membudget.Make[string](len(got))
		for i, rec := range got {
			keys[i], values[i] = rec.key, rec.value
		}
		ctx.SetOutput(0, tensor.Vector(keys...))
		ctx.SetOutput(1, tensor.Vector(values...))
		return nil
	})
}
