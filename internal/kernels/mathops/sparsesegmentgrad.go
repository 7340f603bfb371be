package mathops

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func registerSegmentGrads(name string, scale segmentScale) {
	in := []string{"grad: T", "indices: Tidx", "segment_ids: Tsegmentids"}
	attrs := []string{"T: " + floats, "Tidx: {int32, int64} = int32", "Tsegmentids: {int32, int64} = int32"}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name + "Grad", Doc: "Computes the gradient of " + name + " with respect to its data, which has output_dim0 rows.",
			In: append(slices.Clone(in), "output_dim0: int32"), Out: []string{"output: T"}, Attrs: attrs,
			Shape: func(c *opdef.ShapeContext) error {
				n, err := rowCount(c, "output_dim0")
				if err != nil {
					return err
				}
				return sparseSegmentShape(c, n)
			},
		},
		Kernels: byT(segmentGradTable(scale, gradForm{gradDense, sparseSegmentGradOnDevice})),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name + "GradV2", Doc: "Computes the gradient of " + name + " with respect to its data: the nonzero rows and their indices.",
			In: append(slices.Clone(in), "dense_output_dim0: int32"), Out: []string{"output: T", "sorted_unique_indices: Tidx"}, Attrs: attrs,
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[1] = shapefn.Of(shapefn.Unknown)
				if err := shapefn.CheckRanks(c, 3, 0); err != nil {
					return err
				}
				return sparseSegmentShape(c, shapefn.Unknown)
			},
		},
		Kernels: byT(segmentGradTable(scale, gradForm{gradUnique, uniqueSegmentGradOnDevice})),
	})
}

// segmentGrad is the input of both forms of the gradient. Entry i adds the gradient of segment
// ids[i] to row targets[i] of the output.
type segmentGrad struct {
	targets, ids []int64
	scales       []float64 // factor of each segment
	width        int
	progress     stepctx.Progress
}

// A gradForm is a form of the gradient.
type gradForm struct {
	// prepare checks the inputs and allocates the outputs. It returns nil if there is nothing to
	// add.
	prepare func(*kernel.Context, segmentScale) (*segmentGrad, *tensor.Tensor, error)
	// onDevice is the kernel for devices.
	onDevice func(*kernel.Context, *device.Device, segmentScale) error
}

func segmentGradTable(scale segmentScale, form gradForm) kernel.Table {
	return kernel.Table{
		tensor.Float32:  form.kernel(scale, addSegments[float32]),
		tensor.Float64:  form.kernel(scale, addSegments[float64]),
		tensor.Float16:  form.kernel(scale, addShortSegments[tensor.Float16Elem]),
		tensor.BFloat16: form.kernel(scale, addShortSegments[tensor.BFloat16Elem]),
	}
}

// kernel returns the kernel for the type of add, which adds the gradients x to out on the host.
func (f gradForm) kernel(scale segmentScale, add func(g *segmentGrad, out, x *tensor.Tensor) error) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		if d := ctx.GPU(); d != nil {
			return f.onDevice(ctx, d, scale)
		}
		g, out, err := f.prepare(ctx, scale)
		if err == nil && g != nil {
			g.progress = stepctx.Progress{Context: ctx.Context(), Each: 16}
			err = add(g, out, ctx.Input(0))
		}
		return err
	})
}

func addSegments[T elementwise.Float](g *segmentGrad, out, x *tensor.Tensor) error {
	return addScaled(g, tensor.Values[T](out), tensor.Values[T](x))
}

// addShortSegments sums in float32 and rounds once.
func addShortSegments[H elementwise.Short](g *segmentGrad, out, x *tensor.Tensor) error {
	z, v := tensor.Values[H](out), tensor.Values[H](x)
	sum, grad := membudget.Make[float32](len(z)), membudget.Make[float32](len(v))
	elementwise.Widen(grad, v)
	err := addScaled(g, sum, grad)
	elementwise.Narrow(z, sum)
	return err
}

// addScaled adds the gradients until the step ends. The entries of a large row may be many.
func addScaled[T elementwise.Float](g *segmentGrad, z, x []T) error {
	for i, target := range g.targets {
		if err := g.progress.Pass(g.width); err != nil {
			return err
		}
		id := g.ids[i]
		to, from, f := z[int(target)*g.width:int(target+1)*g.width], x[int(id)*g.width:int(id+1)*g.width], T(g.scales[id])
		for k, v := range from {
			to[k] += v * f
		}
	}
	return nil
}

// gradLists reads and checks the inputs of a gradient with n rows, the value of the input named
// rows. ok is false if there is nothing to add.
func gradLists(ctx *kernel.Context, scale segmentScale, rows string) (g *segmentGrad, n int64, ok bool, err error) {
	grad, indices, ids, dim := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	switch {
	case indices.Rank() != 1:
		return nil, 0, false, status.InvalidArgumentf("indices should be a vector.")
	case ids.Rank() != 1:
		return nil, 0, false, status.InvalidArgumentf("segment_ids should be a vector.")
	case dim.Rank() != 0:
		return nil, 0, false, status.InvalidArgumentf("%s should be a scalar.", rows)
	case indices.NumElements() != ids.NumElements():
		return nil, 0, false, status.InvalidArgumentf("segment_ids and indices should have same size.")
	}
	n = intarg.Scalar(dim)
	if grad.Rank() < 1 || n < 0 {
		return nil, 0, false, status.InvalidArgumentf("Dimension %d must be >= 0", n)
	}
	g = &segmentGrad{targets: intarg.Values(indices), ids: intarg.Values(ids), width: int(grad.Shape()[1:].NumElements())}
	if n == 0 || len(g.ids) == 0 {
		return g, n, false, nil
	}
	return g, n, true, g.check(n, int64(grad.Dim(0)), scale)
}

// check checks all entries and computes the scales.
func (g *segmentGrad) check(rows, count int64, scale segmentScale) error {
	if g.ids[len(g.ids)-1]+1 > count {
		return status.InvalidArgumentf("Invalid number of segments")
	}
	sizes := membudget.Make[int](count)
	for i, target := range g.targets {
		if target < 0 || target >= rows {
			return status.InvalidArgumentf("Index %d out of range [0, %d).", target, rows)
		}
		if id := g.ids[i]; id < 0 || id >= count {
			return status.InvalidArgumentf("Segment id %d out of range [0, %d).", id, count)
		}
		sizes[g.ids[i]]++
	}
	g.scales = membudget.Make[float64](count)
	for i, size := range sizes {
		g.scales[i] = scale.factor(size)
	}
	return nil
}

func gradDense(ctx *kernel.Context, scale segmentScale) (*segmentGrad, *tensor.Tensor, error) {
	g, n, ok, err := gradLists(ctx, scale, "output_dim0")
	if err != nil {
		return nil, nil, err
	}
	out, err := ctx.AllocateZeros(0, append(tensor.Shape{n}, ctx.Input(0).Shape()[1:]...))
	if err != nil || !ok {
		return nil, out, err
	}
	return g, out, nil
}

func gradUnique(ctx *kernel.Context, scale segmentScale) (*segmentGrad, *tensor.Tensor, error) {
	g, _, ok, err := gradLists(ctx, scale, "dense_output_dim0")
	if err != nil {
		return nil, nil, err
	}
	var unique []int64
	if ok {
		unique, g.targets = uniqueRows(g.targets)
	}
	list, err := ctx.Allocate(1, tensor.Shape{int64(len(unique))})
	if err != nil {
		return nil, nil, err
	}
	intarg.Set(list, unique)
	out, err := ctx.AllocateZeros(0, append(tensor.Shape{int64(len(unique))}, ctx.Input(0).Shape()[1:]...))
	if err != nil || !ok {
		return nil, out, err
	}
	return g, out, nil
}

// uniqueRows returns the different rows of a list in ascending order, and the position of each
// element of the list among them.
func uniqueRows(list []int64) (unique, positions []int64) {
	unique = membudget.AppendAll(unique, list...)
	slices.Sort(unique)
	unique = slices.Compact(unique)
	at := map[int64]int64{}
	var meter membudget.Meter
	for i, row := range unique {
		meter.MustTakeEntry(0)
		at[row] = int64(i)
	}
	positions = membudget.AppendAll(positions, list...)
	for i, row := range positions {
		positions[i] = at[row]
	}
	return unique, positions
}
