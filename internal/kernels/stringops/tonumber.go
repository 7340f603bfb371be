package stringops

import (
	"strings"

	"github.com/weft-ml/weft/internal/opkit/cparse"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "StringToNumber", Doc: "Converts strings to numbers.",
			In:    []string{"string_tensor: string"},
			Out:   []string{"output: out_type"},
			Attrs: []string{"out_type: {float32, float64, int32, int64, uint32, uint64} = float32"},
			Shape: opdef.SameShape,
		},
		Kernels: kernel.ByType("out_type", kernel.Table{
			tensor.Float32: toNumber(func(s string) (float32, bool) { v, ok := cparse.Float(s, 32); return float32(v), ok }),
			tensor.Float64: toNumber(func(s string) (float64, bool) { return cparse.Float(s, 64) }),
			tensor.Int32:   toNumber(func(s string) (int32, bool) { v, ok := cparse.Int(s, 32); return int32(v), ok }),
			tensor.Int64:   toNumber(func(s string) (int64, bool) { return cparse.Int(s, 64) }),
			tensor.Uint32:  toNumber(func(s string) (uint32, bool) { v, ok := cparse.Uint(s, 32); return uint32(v), ok }),
			tensor.Uint64:  toNumber(func(s string) (uint64, bool) { return cparse.Uint(s, 64) }),
		}),
	})
}

func toNumber[T tensor.Elem](parse func(string) (T, bool)) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		return eachString(ctx, func(s string) (T, error) {
			v, ok := parse(s)
			if !ok {
				text, _, _ := strings.Cut(s, "\x00")
				return v, status.InvalidArgumentf("StringToNumberOp could not correctly convert string: %s", text)
			}
			return v, nil
		})
	})
}
