package gatherscatter

import (
	"fmt"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/tensor"
)

// A list whose indices are in the memory of a device has no row numbers on the host, and nothing is
// out of range for the host: a gather returns zeros for such indices, and a scatter drops them, as
// TensorFlow does on a GPU. A scatter copies a list of row numbers on the host to the device.
// Errors of the device are panics, and so errors of the step.

// scatters are the first parts of the names of kernels, by their operation.
var scatters = map[elementwise.Op]string{
	elementwise.Add: "scatteradd_", elementwise.Sub: "scattersub_", elementwise.Mul: "scattermul_", elementwise.Div: "scatterdiv_",
	elementwise.Min: "scattermin_", elementwise.Max: "scattermax_",
}

func must(d *device.Device, err error) {
	if err != nil {
		panic(fmt.Errorf("indices on %s: %w", d.Name(), err))
	}
}

// readOnDevice returns the list of indices in the memory of a device.
func readOnDevice(indices *tensor.Tensor) List { return List{indices: indices.Retain()} }

// vectorsOnDevice returns the list of the row numbers of index vectors in the memory of a device.
func vectorsOnDevice(d *device.Device, indices *tensor.Tensor, dims tensor.Shape, n int64) List {
	list, err := d.Alloc(tensor.Int64, tensor.Shape{n})
	must(d, err)
	if len(dims) == 0 {
		must(d, d.Fill(&list, 0))
		return List{indices: list}
	}
	l := source.Loop{Sizes: dims}
	must(d, d.LaunchLine("flatten_"+source.TypeName(indices.DType()), n, &list, indices, n, int32(len(dims)), l.Arg()))
	return List{indices: list}
}

func gatherOnDevice(d *device.Device, dst, src *tensor.Tensor, l List, g Layout) {
	n, index := int64(dst.NumElements()), "_"+source.TypeName(l.indices.DType())
	size := source.SizeName(dst.DType().Size())
	outer, limit, width, count := int64(g.Outer), int64(g.Rows), int64(g.Width), int64(l.indices.NumElements())
	if g.Share == 0 || g.Share == g.Outer {
		must(d, d.LaunchLine("gather_"+size+index, n, dst, src, &l.indices, outer, limit, count, width))
		return
	}
	batch := outer / int64(g.Share)
	must(d, d.LaunchLine("gatherb_"+size+index, n, dst, src, &l.indices, batch, int64(g.Share), limit, count/batch, width))
}

func scatterOnDevice(op elementwise.Op, d *device.Device, dst, updates *tensor.Tensor, l List, width int64) {
	indices, release := l.onDevice(d)
	defer release()
	n := int64(indices.NumElements())
	if n == 0 || dst.NumElements() == 0 {
		return
	}
	limit := int64(dst.NumElements()) / width
	name := scatters[op] + source.TypeName(dst.DType())
	if op == elementwise.Assign {
		name = "scatter_" + source.SizeName(dst.DType().Size())
	}
	stride := int32(1)
	if updates.NumElements() == 1 && n*width != 1 {
		stride = 0
	}
	sorted, err := Sort(d, indices, limit)
	must(d, err)
	defer sorted.Release()
	must(d, d.LaunchLine(name, n*width, dst, updates, &sorted, n, width, limit, stride))
}

// onDevice returns the indices of the list in the memory of a device. The caller calls release when
// it has queued its work.
func (l *List) onDevice(d *device.Device) (indices *tensor.Tensor, release func()) {
	if l.indices.Initialized() || len(l.Rows) == 0 {
		return &l.indices, func() {}
	}
	host, err := tensor.FromSlice(tensor.Shape{int64(len(l.Rows))}, l.Rows)
	must(d, err)
	on, err := d.ToDevice(&host)
	must(d, err)
	return &on, on.Release
}

// DivideByCounts divides each row of dst, in the memory of a device, by the number of entries of
// the list that name it, or by its square root. Rows without entries stay as they are.
func DivideByCounts(dst *tensor.Tensor, l List, root bool) {
	d, entries := device.Of(dst), int64(l.indices.NumElements())
	if d == nil || entries == 0 {
		return
	}
	rows := int64(dst.Dim(0))
	sorted, err := Sort(d, &l.indices, rows)
	must(d, err)
	defer sorted.Release()
	counts, err := d.Alloc(tensor.Int64, tensor.Shape{rows})
	must(d, err)
	defer counts.Release()
	must(d, d.Fill(&counts, 0))
	must(d, d.LaunchLine("counts", entries, &counts, &sorted, entries, rows))
	width, square := int64(dst.NumElements())/rows, int32(0)
	if root {
		square = 1
	}
	must(d, d.LaunchLine("dividerows_"+source.TypeName(dst.DType()), rows*width, dst, &counts, rows, width, square))
}

// block is the number of keys that a group of a device sorts.
const block = 1024

// Sort returns the sorted list of indices that kernels of a device take: for each index the index
// itself, or limit if it is out of range, in the upper half, and its position in the lower half.
func Sort(d *device.Device, indices *tensor.Tensor, limit int64) (tensor.Tensor, error) {
	n := int64(indices.NumElements())
	padded := SortedLen(n)
	keys, err := d.Alloc(tensor.Uint64, tensor.Shape{padded})
	if err != nil {
		return keys, err
	}
	if err := sortKeys(d, &keys, indices, n, padded, limit); err != nil {
		keys.Release()
		return tensor.Tensor{}, err
	}
	return keys, nil
}

func sortKeys(d *device.Device, keys, indices *tensor.Tensor, n, padded, limit int64) error {
	if err := d.LaunchLine("keys_"+source.TypeName(indices.DType()), padded, keys, indices, n, padded, limit); err != nil {
		return err
	}
	return SortRows(d, keys, padded, padded)
}

// SortedLen returns the number of keys that a row of n is padded to: a power of two.
func SortedLen(n int64) int64 {
	padded := int64(2)
	for padded < n {
		padded *= 2
	}
	return padded
}

// SortRows sorts each row of n keys of 64 bits that all differ. The length of a row is a power of
// two, and n a multiple of it.
func SortRows(d *device.Device, keys *tensor.Tensor, n, row int64) error {
	blocks := func(from, to int64) error {
		groups := int(min((n+block-1)/block, 1<<16))
		return d.Launch("sortblocks", [3]int{groups, 1, 1}, [3]int{256, 1, 1}, keys, n, from, to, row)
	}
	if err := blocks(2, min(row, block)); err != nil {
		return err
	}
	for stage := int64(2 * block); stage <= row; stage *= 2 {
		for distance := stage / 2; distance >= block; distance /= 2 {
			if err := d.LaunchLine("sortstep", n/2, keys, n, stage, distance, row); err != nil {
				return err
			}
		}
		if err := blocks(stage, stage); err != nil {
			return err
		}
	}
	return nil
}
