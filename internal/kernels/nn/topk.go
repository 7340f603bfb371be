package nn

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Returns the k largest values of each row, in descending order, and their indices. Equal values are ordered by index."
	table := kernel.Table{
		tensor.Float16:  topK(func(a, b tensor.Float16Elem) bool { return a.Float32() < b.Float32() }),
		tensor.BFloat16: topK(func(a, b tensor.BFloat16Elem) bool { return a.Float32() < b.Float32() }),
		tensor.Float32:  topK(less[float32]), tensor.Float64: topK(less[float64]),
		tensor.Int8: topK(less[int8]), tensor.Int16: topK(less[int16]),
		tensor.Int32: topK(less[int32]), tensor.Int64: topK(less[int64]),
		tensor.Uint8: topK(less[uint8]), tensor.Uint16: topK(less[uint16]),
		tensor.Uint32: topK(less[uint32]), tensor.Uint64: topK(less[uint64]),
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "TopK", Doc: doc,
			In: []string{"input: T"}, Out: []string{"values: T", "indices: int32"},
			Attrs: []string{"k: int >= 0", "sorted: bool = true", "T: realnumbertype"}, Shape: topKShape,
		},
		Kernels: kernel.ByType("T", table),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "TopKV2", Doc: doc,
			In: []string{"input: T", "k: Tk"}, Out: []string{"values: T", "indices: index_type"},
			Attrs: []string{
				"sorted: bool = true", "T: realnumbertype", "Tk: {int16, int32, int64} = int32",
				"index_type: {int16, int32, int64} = int32",
			},
			Shape: topKShape,
		},
		Kernels: kernel.ByType("T", table),
	})
}

func less[T interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | float32 | float64
}](a, b T) bool {
	return a < b
}

func topKShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	k := int64(c.Attrs.Int("k"))
	if len(c.In) > 1 {
		if k, err = shapefn.Dim(c, 1); err != nil {
			return err
		}
	}
	if last := in.Dim(-1); last >= 0 && k > last {
		return status.InvalidArgumentf("input must have last dimension >= k = %d but is %d", k, last)
	}
	c.SetAll(shapefn.Concat(shapefn.Sub(in, 0, -1), shapefn.Of(k)))
	return nil
}

func topK[T tensor.Elem](less func(a, b T) bool) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		attr, isInput := int64(c.Attrs.Int("k")), len(c.Inputs) > 1
		return kernel.Func(func(ctx *kernel.Context) error {
			k := attr
			if isInput {
				if in := ctx.Input(1); in.Rank() != 0 {
					return status.InvalidArgumentf("k must be scalar, got shape %v", in.Shape())
				}
				k = intarg.Scalar(ctx.Input(1))
			}
			return computeTopK(ctx, k, less)
		}), nil
	}
}

// indexLimits holds the largest position that each index type can represent.
var indexLimits = map[tensor.DType]int{tensor.Int16: math.MaxInt16, tensor.Int32: math.MaxInt32, tensor.Int64: math.MaxInt64}

func computeTopK[T tensor.Elem](ctx *kernel.Context, k int64, less func(a, b T) bool) error {
	in := ctx.Input(0)
	if err := checkTopK(in.Shape(), k, indexLimits[ctx.OutputType(1)]); err != nil {
		return err
	}
	shape := slices.Clone(in.Shape())
	n := int(shape[len(shape)-1])
	shape[len(shape)-1] = k
	values, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	indices, err := ctx.Allocate(1, shape)
	if err != nil || values.NumElements() == 0 {
		return err
	}
	if d := device.Of(values); d != nil {
		return topKOnDevice(d, values, indices, in, k)
	}
	x, z, size := tensor.Values[T](in), tensor.Values[T](values), int(k)
	found := membudget.Make[int64](len(z))
	parallel.For(len(z)/size, max(1, 10_000/n), func(lo, hi int) {
		var keys []uint64
		if size > n/8 {
			keys = membudget.Make[uint64](2 * n)
		}
		for i := lo; i < hi; i++ {
			row, at := x[i*n:(i+1)*n], found[i*size:(i+1)*size]
			if keys == nil || !sortByKeys(at, row, keys) {
				largest(at, row, less)
			}
			for j, p := range at {
				z[i*size+j] = row[p]
			}
		}
	})
	intarg.Set(indices, found)
	return nil
}

func checkTopK(shape tensor.Shape, k int64, limit int) error {
	if k < 0 {
		return status.InvalidArgumentf("Need k >= 0, got %d", k)
	}
	if len(shape) == 0 {
		return status.InvalidArgumentf("input must be >= 1-D, got shape %v", shape)
	}
	n, rows := shape[len(shape)-1], shape[:len(shape)-1].NumElements()
	switch {
	case n < k:
		return status.InvalidArgumentf("input must have at least k columns. Had %d, needed %d", n, k)
	case rows > int64(limit):
		return status.InvalidArgumentf("First dimension of flattened input must be <= %d, got %d", limit, rows)
	case n > int64(limit):
		return status.InvalidArgumentf("Second dimension of flattened input must be <= %d, got %d", limit, n)
	}
	return nil
}

// largest sets at to the positions of the largest values of a row, in order. It keeps the best
// values found so far in a heap with the worst of them on top.
func largest[T tensor.Elem](at []int64, row []T, less func(a, b T) bool) {
	better := func(a, b int64) bool {
		if less(row[b], row[a]) {
			return true
		}
		return !less(row[a], row[b]) && a < b
	}
	k := len(at)
	for i := range at {
		at[i] = int64(i)
	}
	if k < len(row) {
		for i := k/2 - 1; i >= 0; i-- {
			sink(at, i, better)
		}
		for i := k; i < len(row); i++ {
			if less(row[at[0]], row[i]) {
				at[0] = int64(i)
				sink(at, 0, better)
			}
		}
	}
	slices.SortFunc(at, func(a, b int64) int {
		switch {
		case better(a, b):
			return -1
		case better(b, a):
			return 1
		}
		return 0
	})
}

// keyLen is the number of elements that sortByKeys supports: the lower half of a key holds a
// position.
const keyLen = 1 << 32

// sortByKeys is like largest, for the most common types. It sorts integer keys whose order is that
// of the elements and, for equal elements, of their positions. It returns false if it does not
// support the row. scratch has two elements for each element of the row.
func sortByKeys[T tensor.Elem](at []int64, row []T, scratch []uint64) bool {
	if uint64(len(row)) >= keyLen {
		return false
	}
	keys, spare := scratch[:len(row)], scratch[len(row):]
	switch row := any(row).(type) {
	case []float32:
		for i, v := range row {
			if v != v {
				return false
			}
			// Order-preserving bits: positive numbers above negative ones, whose bits are inverted.
			// Adding 0 turns -0 into 0.
			b := math.Float32bits(v + 0)
			b ^= uint32(int32(b)>>31) | 1<<31
			keys[i] = uint64(^b)<<32 | uint64(i)
		}
	case []int32:
		for i, v := range row {
			keys[i] = uint64(^(uint32(v)^1<<31))<<32 | uint64(i)
		}
	default:
		return false
	}
	if len(keys) < fewKeys {
		slices.Sort(keys)
	} else {
		keys = sortUpper(keys, spare)
	}
	for i := range at {
		at[i] = int64(keys[i] & (keyLen - 1))
	}
	return true
}

// fewKeys is the number of keys below which the counting passes of sortUpper do not pay off.
const fewKeys = 100

// sortUpper sorts keys by their upper halves with a stable radix sort, byte by byte from the lowest
// one. It avoids the unpredictable branches of comparisons. The result shares memory with keys or
// spare.
func sortUpper(keys, spare []uint64) []uint64 {
	var counts [4][256]uint32
	for _, k := range keys {
		counts[0][byte(k>>32)]++
		counts[1][byte(k>>40)]++
		counts[2][byte(k>>48)]++
		counts[3][byte(k>>56)]++
	}
	for i := range counts {
		count, shift := &counts[i], 32+8*i
		if count[byte(keys[0]>>shift)] == uint32(len(keys)) {
			continue // all keys have the same byte
		}
		place := uint32(0)
		for b, n := range count {
			count[b] = place
			place += n
		}
		for _, k := range keys {
			b := byte(k >> shift)
			spare[count[b]] = k
			count[b]++
		}
		keys, spare = spare, keys
	}
	return keys
}

// sink restores the order of a heap in which only element i may be better than its children.
func sink(heap []int64, i int, better func(a, b int64) bool) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && better(heap[child], heap[child+1]) {
			child++
		}
		if !better(heap[i], heap[child]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
