package mathops

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Operations on segments in the memory of a device. Where the shape of the result depends on the
// segment ids, they are copied to the host and checked there. For a list with an error, the CPU's
// kernel runs and returns it. Rows out of range are zero for a gather and are skipped by a scatter,
// as in TensorFlow on a GPU.

// segmentsOnDevice combines the rows of data by segment id. Segments without rows have the value
// first, from which the others start.
func segmentsOnDevice(op elementwise.Op, out, data, ids *tensor.Tensor, first tensor.Tensor) error {
	if out.NumElements() == 0 {
		return nil
	}
	strided.Splat(out, &first)
	return scatterSegments(op, out, data, ids)
}

// idsOnHost copies ids to the host.
func idsOnHost(d *device.Device, ids *tensor.Tensor) ([]int64, error) {
	host, err := d.Host(ids)
	if err != nil {
		return nil, err
	}
	defer host.Release()
	return membudget.AppendAll[int64](nil, intarg.Values(&host)...), nil
}

// runsOnDevice is the kernel of sorted segments.
func runsOnDevice(ctx *kernel.Context, d *device.Device, op elementwise.Op, blank tensor.Tensor, mean bool) error {
	data, segmentIDs := ctx.Input(0), ctx.Input(1)
	ids, err := idsOnHost(d, segmentIDs)
	if err != nil {
		return err
	}
	if checkSorted(data, segmentIDs, ids) != nil {
		return kernel.ErrDetour
	}
	out, err := ctx.Allocate(0, sortedResult(data, ids))
	if err != nil {
		return err
	}
	if op == elementwise.Max || op == elementwise.Min {
		// blank is no start, but any row of the segment is
		if err := segmentsOnDevice(elementwise.Assign, out, data, segmentIDs, blank); err != nil {
			return err
		}
		return scatterSegments(op, out, data, segmentIDs)
	}
	if err := segmentsOnDevice(op, out, data, segmentIDs, blank); err != nil || !mean {
		return err
	}
	return divideSegments(out, segmentIDs, scaleMean)
}

// scatterSegments combines the rows of data into the rows of out that ids name.
func scatterSegments(op elementwise.Op, out, data, ids *tensor.Tensor) error {
	list, err := gatherscatter.ReadUnchecked(ids)
	if err != nil {
		return err
	}
	defer list.Release()
	if n := ids.NumElements(); n > 0 {
		gatherscatter.Scatter(op, out, data, list, data.NumElements()/n)
	}
	return nil
}

// divideSegments divides each row of out by what scale makes of the number of its segment's ids.
func divideSegments(out, ids *tensor.Tensor, scale segmentScale) error {
	if scale == scaleSum {
		return nil
	}
	list, err := gatherscatter.ReadUnchecked(ids)
	if err != nil {
		return err
	}
	defer list.Release()
	gatherscatter.DivideByCounts(out, list, scale == scaleSqrtN)
	return nil
}

// sparseSegmentsOnDevice is the kernel of sparse segments.
func sparseSegmentsOnDevice(ctx *kernel.Context, d *device.Device, scale segmentScale) error {
	data, indices, segmentIDs := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	if data.Rank() < 1 || checkLists(indices, segmentIDs) != nil {
		return kernel.ErrDetour
	}
	ids, err := idsOnHost(d, segmentIDs)
	if err != nil {
		return err
	}
	count, err := segmentCount(ctx, indices.DType(), ids)
	s := sparseSegments{ids: gatherscatter.List{Rows: ids}, count: int(count)}
	if err != nil || s.check() != nil {
		return kernel.ErrDetour
	}
	shape := append(tensor.Shape{count}, data.Shape()[1:]...)
	out, err := ctx.AllocateZeros(0, shape)
	if err != nil || out.NumElements() == 0 || len(ids) == 0 || data.NumElements() == 0 {
		return err
	}
	rows, err := gatherRows(d, data, indices)
	if err != nil {
		return err
	}
	defer rows.Release()
	if err := scatterSegments(elementwise.Add, out, &rows, segmentIDs); err != nil {
		return err
	}
	return divideSegments(out, segmentIDs, scale)
}

// gatherRows returns the rows of x that indices select. The caller releases them.
func gatherRows(d *device.Device, x, indices *tensor.Tensor) (tensor.Tensor, error) {
	shape := slices.Clone(x.Shape())
	shape[0] = int64(indices.NumElements())
	rows, err := d.Alloc(x.DType(), shape)
	if err != nil {
		return rows, err
	}
	list, err := gatherscatter.ReadUnchecked(indices)
	if err != nil {
		rows.Release()
		return tensor.Tensor{}, err
	}
	defer list.Release()
	gatherscatter.Gather(&rows, x, list, gatherscatter.Layout{Outer: 1, Rows: x.Dim(0), Width: int(shape[1:].NumElements())})
	return rows, nil
}

// sparseSegmentGradOnDevice is the kernel of the gradient of sparse segments.
func sparseSegmentGradOnDevice(ctx *kernel.Context, d *device.Device, scale segmentScale) error {
	grad, indices, dim := ctx.Input(0), ctx.Input(1), ctx.Input(3)
	if dim.Rank() != 0 || grad.Rank() < 1 || checkLists(indices, ctx.Input(2)) != nil || intarg.Scalar(dim) < 0 {
		return kernel.ErrDetour
	}
	out, err := ctx.AllocateZeros(0, append(tensor.Shape{intarg.Scalar(dim)}, grad.Shape()[1:]...))
	if err != nil {
		return err
	}
	return addSegmentGrads(ctx, d, out, indices, scale)
}

// addSegmentGrads adds the scaled gradient of each segment to the rows of out that indices name.
func addSegmentGrads(ctx *kernel.Context, d *device.Device, out, indices *tensor.Tensor, scale segmentScale) error {
	grad, segmentIDs := ctx.Input(0), ctx.Input(2)
	if out.NumElements() == 0 || grad.NumElements() == 0 || indices.NumElements() == 0 {
		return nil
	}
	scaled := grad.Retain()
	defer func() { scaled.Release() }()
	if scale != scaleSum {
		own, err := d.Clone(grad)
		if err != nil {
			return err
		}
		scaled.Release()
		scaled = own
		if err := divideSegments(&scaled, segmentIDs, scale); err != nil {
			return err
		}
	}
	rows, err := gatherRows(d, &scaled, segmentIDs)
	if err != nil {
		return err
	}
	defer rows.Release()
	return scatterSegments(elementwise.Add, out, &rows, indices)
}

// uniqueSegmentGradOnDevice is the kernel of the gradient that has the rows with entries alone.
func uniqueSegmentGradOnDevice(ctx *kernel.Context, d *device.Device, scale segmentScale) error {
	grad, indices, segmentIDs, dim := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	if dim.Rank() != 0 || grad.Rank() < 1 || checkLists(indices, segmentIDs) != nil {
		return kernel.ErrDetour
	}
	targets, err := idsOnHost(d, indices)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if target < 0 || target >= intarg.Scalar(dim) {
			return kernel.ErrDetour
		}
	}
	unique, positions := uniqueRows(targets)
	if err := setUnique(ctx, d, indices.DType(), unique); err != nil {
		return err
	}
	out, err := ctx.AllocateZeros(0, append(tensor.Shape{int64(len(unique))}, grad.Shape()[1:]...))
	if err != nil {
		return err
	}
	host, err := tensor.FromSlice(tensor.Shape{int64(len(positions))}, positions)
	if err != nil {
		return err
	}
	at, err := d.ToDevice(&host)
	if err != nil {
		return err
	}
	defer at.Release()
	return addSegmentGrads(ctx, d, out, &at, scale)
}

// setUnique sets output 1 to a list.
func setUnique(ctx *kernel.Context, d *device.Device, dtype tensor.DType, unique []int64) error {
	host, err := tensor.Alloc(dtype, tensor.Shape{int64(len(unique))})
	if err != nil {
		return err
	}
	defer host.Release()
	intarg.Set(&host, unique)
	list, err := d.ToDevice(&host)
	if err != nil {
		return err
	}
	ctx.SetOutput(1, list)
	return nil
}
