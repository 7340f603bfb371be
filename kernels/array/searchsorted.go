package array

import (
	"math"

	"github.com/weft-ml/weft/internal/ints"
	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "LowerBound", Doc: "Gives, for each value, the first place in its sorted row that is not less.",
			In:    []string{"sorted_inputs: T", "values: T"},
			Out:   []string{"output: out_type"},
			Attrs: []string{"T: type", "out_type: {int32, int64} = int32"},
			Shape: searchShape,
		},
		Kernels: kernel.ByType("T", searches(false)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UpperBound", Doc: "Gives, for each value, the first place in its sorted row that is greater.",
			In:    []string{"sorted_inputs: T", "values: T"},
			Out:   []string{"output: out_type"},
			Attrs: []string{"T: type", "out_type: {int32, int64} = int32"},
			Shape: searchShape,
		},
		Kernels: kernel.ByType("T", searches(true)),
	})
}

func searchShape(c *opdef.ShapeContext) error {
	c.Out[0] = c.In[1]
	return shapes.CheckRanks(c, 0, 2, 2)
}

func searches(upper bool) kernel.Table {
	return kernel.Table{
		tensor.Int8: search(upper, same[int8]), tensor.Int16: search(upper, same[int16]), tensor.Int32: search(upper, same[int32]),
		tensor.Int64: search(upper, same[int64]), tensor.Uint8: search(upper, same[uint8]), tensor.Uint16: search(upper, same[uint16]),
		tensor.Uint32: search(upper, same[uint32]), tensor.Uint64: search(upper, same[uint64]),
		tensor.Float32: search(upper, same[float32]), tensor.Float64: search(upper, same[float64]),
		tensor.Float16: search(upper, tensor.Half.Float32), tensor.BFloat16: search(upper, tensor.BFloat.Float32),
	}
}

type ordered interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

func search[T tensor.Elem, K ordered](upper bool, key func(T) K) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		sorted, values := ctx.Input(0), ctx.Input(1)
		if err := checkSearch(sorted, values, ctx.OutputType(0)); err != nil {
			return err
		}
		out, err := ctx.Allocate(0, values.Shape())
		if err != nil {
			return err
		}
		lines, wanted := keys(tensor.Values[T](sorted), key), keys(tensor.Values[T](values), key)
		n, per := sorted.Dim(1), values.Dim(1)
		found := make([]int64, len(wanted))
		for lo := 0; lo < len(wanted); lo += per {
			line := lines[lo/per*n:][:n]
			if upper {
				upperBounds(found[lo:lo+per], line, wanted[lo:])
			} else {
				lowerBounds(found[lo:lo+per], line, wanted[lo:])
			}
		}
		ints.Set(out, found)
		return nil
	})
}

// keys returns what elements are compared by.
func keys[T tensor.Elem, K ordered](x []T, key func(T) K) []K {
	if same, ok := any(x).([]K); ok {
		return same
	}
	k := make([]K, len(x))
	for i, v := range x {
		k[i] = key(v)
	}
	return k
}

// lowerBounds finds the first element of line that is not less than each one wanted. Only the loop branches, not its body.
func lowerBounds[K ordered](found []int64, line, wanted []K) {
	for i := range found {
		at, want := 0, wanted[i]
		for n := len(line); n > 0; {
			half := (n + 1) / 2
			next := at
			if !(line[at+half-1] >= want) {
				next = at + half
			}
			at, n = next, n-half
		}
		found[i] = int64(at)
	}
}

// upperBounds finds the first element of line that is greater than each one wanted.
func upperBounds[K ordered](found []int64, line, wanted []K) {
	for i := range found {
		at, want := 0, wanted[i]
		for n := len(line); n > 0; {
			half := (n + 1) / 2
			next := at
			if !(line[at+half-1] > want) {
				next = at + half
			}
			at, n = next, n-half
		}
		found[i] = int64(at)
	}
}

func checkSearch(sorted, values *tensor.Tensor, out tensor.DType) error {
	switch {
	case sorted.Rank() != 2:
		return status.InvalidArgumentf("Shape must be rank 2 but is rank %d for `sorted_inputs` argument", sorted.Rank())
	case values.Rank() != 2:
		return status.InvalidArgumentf("Shape must be rank 2 but is rank %d for `values` argument", values.Rank())
	case sorted.Dim(0) != values.Dim(0):
		return status.InvalidArgumentf("Leading dim_size of both tensors must match.")
	case out == tensor.Int32 && values.NumElements() >= math.MaxInt32:
		return status.InvalidArgumentf("values tensor size must less than INT_MAX")
	case out == tensor.Int32 && sorted.Dim(1) >= math.MaxInt32:
		return status.InvalidArgumentf("trailing dim_size must less than INT_MAX for int32 output type, was %d", sorted.Dim(1))
	}
	return nil
}

func same[T any](v T) T { return v }
