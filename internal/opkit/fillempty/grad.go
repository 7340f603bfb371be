// Package fillempty holds the gradient of the operations that fill empty rows with a default value.
// Operations on sparse and on ragged tensors share it.
package fillempty

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Grad returns the operation with the given name that computes the gradients of the operation named
// by of, which fills empty rows, with respect to its values and default.
func Grad(name, of string) kernel.Op {
	return kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: "Computes the gradients of " + of + " with respect to values and default.",
			In: []string{"reverse_index_map: int64", "grad_values: T"}, Out: []string{"d_values: T", "d_default_value: T"},
			Attrs: []string{"T: type"},
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[0], c.Out[1] = c.In[0], shapefn.Of()
				return shapefn.CheckRanks(c, 0, 1, 1)
			},
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16: grad(func(a, b tensor.Float16Elem) tensor.Float16Elem { return tensor.Float16Of(a.Float32() + b.Float32()) }),
			tensor.BFloat16: grad(func(a, b tensor.BFloat16Elem) tensor.BFloat16Elem {
				return tensor.BFloat16Of(a.Float32() + b.Float32())
			}),
			tensor.Float32: grad(sum[float32]), tensor.Float64: grad(sum[float64]),
			tensor.Int8: grad(sum[int8]), tensor.Int16: grad(sum[int16]), tensor.Int32: grad(sum[int32]), tensor.Int64: grad(sum[int64]),
			tensor.Uint8: grad(sum[uint8]), tensor.Uint16: grad(sum[uint16]), tensor.Uint32: grad(sum[uint32]), tensor.Uint64: grad(sum[uint64]),
			tensor.Complex64: grad(sum[complex64]), tensor.Complex128: grad(sum[complex128]),
		}),
	}
}

func sum[T elementwise.Number](a, b T) T { return a + b }

func grad[T tensor.Elem](add func(a, b T) T) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		reverse, grad := ctx.Input(0), ctx.Input(1)
		switch {
		case reverse.Rank() != 1:
			return status.InvalidArgumentf("reverse_index_map must be a vector, saw: %v", reverse.Shape())
		case grad.Rank() != 1:
			return status.InvalidArgumentf("grad_values must be a vector, saw: %v", grad.Shape())
		}
		out, err := ctx.Allocate(0, reverse.Shape())
		if err != nil {
			return err
		}
		var zero T
		// rest holds the gradients that belong to no value. Their sum is the gradient of the
		// default.
		d, g, rest := tensor.Values[T](out), tensor.Values[T](grad), membudget.AppendAll(nil, tensor.Values[T](grad)...)
		for i, at := range intarg.Values(reverse) {
			if at < 0 || at >= int64(len(g)) {
				return status.InvalidArgumentf("Elements in reverse index must be in [0, %d) but got %d", len(g), at)
			}
			d[i], rest[at] = g[at], zero
		}
		total := zero
		for _, v := range rest {
			total = add(total, v)
		}
		ctx.SetOutput(1, tensor.Scalar(total))
		return nil
	})
}
