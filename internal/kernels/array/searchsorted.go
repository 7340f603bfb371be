package array

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "LowerBound",
			Doc: "Returns, for each value, the index of the first element in its sorted row that is not " +
				"less than the value.",
			In:    []string{"sorted_inputs: T", "values: T"},
			Out:   []string{"output: out_type"},
			Attrs: []string{"T: type", "out_type: {int32, int64} = int32"},
			Shape: searchShape,
		},
		Kernels: kernel.ByType("T", searches(false)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UpperBound",
			Doc: "Returns, for each value, the index of the first element in its sorted row that is " +
				"greater than the value.",
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
	return shapefn.CheckRanks(c, 0, 2, 2)
}

func searches(upper bool) kernel.Table {
	return kernel.Table{
		tensor.Int8: search(upper, same[int8]), tensor.Int16: search(upper, same[int16]), tensor.Int32: search(upper, same[int32]),
		tensor.Int64: search(upper, same[int64]), tensor.Uint8: search(upper, same[uint8]), tensor.Uint16: search(upper, same[uint16]),
		tensor.Uint32: search(upper, same[uint32]), tensor.Uint64: search(upper, same[uint64]),
		tensor.Float32: search(upper, same[float32]), tensor.Float64: search(upper, same[float64]),
		tensor.Float16: search(upper, tensor.Float16Elem.Float32), tensor.BFloat16: search(upper, tensor.BFloat16Elem.Float32),
	}
}

func search[T tensor.Elem, K elementwise.Ordered](upper bool, key func(T) K) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		sorted, values := ctx.Input(0), ctx.Input(1)
		if err := checkSearch(sorted, values, ctx.OutputType(0)); err != nil {
			return err
		}
		out, err := ctx.Allocate(0, values.Shape())
		if err != nil {
			return err
		}
		rows, probes := keys(tensor.Values[T](sorted), key), keys(tensor.Values[T](values), key)
		if out.DType() == tensor.Int32 {
			searchRows(upper, tensor.Values[int32](out), rows, probes, sorted.Dim(1), values.Dim(1))
		} else {
			searchRows(upper, tensor.Values[int64](out), rows, probes, sorted.Dim(1), values.Dim(1))
		}
		return nil
	})
}

// searchRows searches each sorted row of n elements for the corresponding row of per probes.
func searchRows[K elementwise.Ordered, I int32 | int64](upper bool, found []I, rows, probes []K, n, per int) {
	for lo := 0; lo < len(probes); lo += per {
		row := rows[lo/per*n:][:n]
		if upper {
			elementwise.UpperBounds(found[lo:lo+per], row, probes[lo:])
		} else {
			elementwise.LowerBounds(found[lo:lo+per], row, probes[lo:])
		}
	}
}

// keys returns the comparison keys of elements.
func keys[T tensor.Elem, K elementwise.Ordered](x []T, key func(T) K) []K {
	if same, ok := any(x).([]K); ok {
		return same
	}
	k := membudget.Make[K](len(x))
	for i, v := range x {
		k[i] = key(v)
	}
	return k
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
