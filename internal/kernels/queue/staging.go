package queue

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// room is the capacity and the memory use of a staging area.
type room struct {
	capacity int   // maximum number of elements, or 0 for no limit
	limit    int64 // maximum number of bytes, or 0 for no limit
	used     int64 // bytes in use
}

func roomOf(attrs opdef.Attrs) room {
	return room{capacity: attrs.Int("capacity"), limit: int64(attrs.Int("memory_limit"))}
}

// check returns an error for an element that can never fit.
func (r *room) check(bytes int64) error {
	if r.limit > 0 && bytes > r.limit {
		return status.ResourceExhaustedf("Attempted to insert tensors with combined size of '%d' bytes into Staging Area with a "+
			"memory limit of '%d'.", bytes, r.limit)
	}
	return nil
}

// fits reports whether an element of the given bytes fits in addition to n elements.
func (r *room) fits(n int, bytes int64) bool {
	return (r.capacity == 0 || n < r.capacity) && (r.limit == 0 || r.used+bytes <= r.limit)
}

func (e element) bytes() (n int64) {
	for i := range e {
		if e[i].Initialized() {
			n += e[i].ByteSize()
		}
	}
	return n
}

// stagingAttrs returns the attributes of operations on staging areas. The list of types may be
// empty if no argument uses it.
func stagingAttrs(types string, more ...string) []string {
	attrs := append([]string{"capacity: int >= 0 = 0", "memory_limit: int >= 0 = 0", types}, more...)
	return append(attrs, "container: string = ''", "shared_name: string = ''")
}

// registerStaging registers an operation on a staging area.
func registerStaging(def opdef.Def, n kernel.New) {
	const values = "values: dtypes"
	switch {
	case def.Attrs != nil:
	case slices.Contains(def.In, values) || slices.Contains(def.Out, values):
		def.Attrs = stagingAttrs("dtypes: list(type) >= 1")
	default:
		def.Attrs = stagingAttrs("dtypes: list(type)")
	}
	def.Stateful = true
	kernel.RegisterNew(def, n)
}

// staged returns the constructor of kernels that call f with the staging area named by the
// attributes. The first operation that runs creates the area. Staging areas have no handles.
func staged[T kernel.Resource](create func(room) T, f func(c *kernel.Construction, ctx *kernel.Context, area T, done func(error))) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		place, err := resource.PlaceOf(c, true)
		if err != nil {
			return nil, err
		}
		size := roomOf(c.Attrs)
		return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
			area, err := kernel.LookupOrCreateResource(ctx.Device.Resources, place.Container, place.Name,
				func() (T, error) { return create(size), nil })
			if err != nil {
				done(err)
				return
			}
			f(c, ctx, area, done)
		}), nil
	}
}

// synchronous converts a function that does not wait to one that takes a done callback.
func synchronous[T any](f func(ctx *kernel.Context, area T) error) func(*kernel.Construction, *kernel.Context, T, func(error)) {
	return func(_ *kernel.Construction, ctx *kernel.Context, area T, done func(error)) { done(f(ctx, area)) }
}

// outputStaged sets outputs, from index first on, to the components of an element, which it owns.
// mismatch is the error text for a wrong number of components.
func outputStaged(ctx *kernel.Context, first int, e element, mismatch string) error {
	if len(e) != ctx.NumOutputs()-first {
		defer e.release()
		return status.InvalidArgumentf("%s: %d vs. %d", mismatch, len(e), ctx.NumOutputs()-first)
	}
	for i := range e {
		if want := ctx.OutputType(first + i); e[i].DType() != want {
			defer e.release()
			return status.InvalidArgumentf("component %d of the staged element is %v, not %v", i, e[i].DType(), want)
		}
	}
	for i := range e {
		ctx.SetOutput(first+i, e[i])
	}
	return nil
}

// takeInputs returns the inputs from index first on, which the caller owns.
func takeInputs(ctx *kernel.Context, first int) element {
	//sizedmake:ok components of an element
	e := make(element, ctx.NumInputs()-first)
	for i := range e {
		e[i] = ctx.TakeInput(first + i)
	}
	return e
}

func (e element) retain() element {
	//sizedmake:ok components of an element
	out := make(element, len(e))
	for i := range e {
		out[i] = e[i].Retain()
	}
	return out
}

func outputCount(ctx *kernel.Context, n int) error {
	ctx.SetOutput(0, tensor.Scalar(int32(n)))
	return nil
}
