package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "CheckNumerics",
			Doc: "Returns the input, or an error with the given message if it has NaN or infinite " +
				"elements.",
			In:       []string{"tensor: T"},
			Out:      []string{"output: T"},
			Attrs:    []string{"T: {bfloat16, float16, float32, float64}", "message: string"},
			Stateful: true,
			Shape:    opdef.SameShape,
		},
		Kernels: kernel.ByType("T", checkNumerics(describe)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "CheckNumericsV2",
			Doc: "Returns the input, or an error if it has NaN or infinite elements. The error " +
				"distinguishes positive and negative infinities.",
			In:       []string{"tensor: T"},
			Out:      []string{"output: T"},
			Attrs:    []string{"T: {bfloat16, float16, float32, float64}", "message: string"},
			Stateful: true,
			Shape:    opdef.SameShape,
		},
		Kernels: kernel.ByType("T", checkNumerics(describeSigns)),
	})
}

// anomalies is a set of kinds of non-finite elements.
type anomalies uint8

const (
	isNaN anomalies = 1 << iota
	isPlusInf
	isMinusInf
)

func describe(a anomalies) string {
	switch inf := a &^ isNaN; {
	case inf != 0 && a&isNaN != 0:
		return "Inf and NaN"
	case inf != 0:
		return "Inf"
	default:
		return "NaN"
	}
}

func describeSigns(a anomalies) string {
	text := ""
	for _, k := range []struct {
		bit  anomalies
		name string
	}{{isMinusInf, "-Inf"}, {isPlusInf, "+Inf"}, {isNaN, "NaN"}} {
		if a&k.bit == 0 {
			continue
		}
		if text != "" {
			text += " and "
		}
		text += k.name
	}
	if a == isNaN|isPlusInf|isMinusInf {
		return "-Inf, +Inf, and NaN"
	}
	return text
}

func checkNumerics(describe func(anomalies) string) kernel.Table {
	return kernel.Table{
		tensor.Float16: newCheckNumerics(describe, tensor.Float16Elem.Float32), tensor.BFloat16: newCheckNumerics(describe, tensor.BFloat16Elem.Float32),
		tensor.Float32: newCheckNumerics(describe, same[float32]), tensor.Float64: newCheckNumerics(describe, same[float64]),
	}
}

func newCheckNumerics[T tensor.Elem, F float32 | float64](describe func(anomalies) string, value func(T) F) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		message := c.Attrs.String("message")
		return kernel.Func(func(ctx *kernel.Context) error {
			if a := findAnomalies(tensor.Values[T](ctx.Input(0)), value); a != 0 {
				return status.InvalidArgumentf("%s : Tensor had %s values", message, describe(a))
			}
			return pass(ctx)
		}), nil
	}
}

func findAnomalies[T tensor.Elem, F float32 | float64](vals []T, value func(T) F) (a anomalies) {
	if own, ok := any(vals).([]F); ok && allFinite(own) {
		return 0
	}
	for _, v := range vals {
		x := value(v)
		if x-x == 0 {
			continue
		}
		switch {
		case x != x:
			a |= isNaN
		case x > 0:
			a |= isPlusInf
		default:
			a |= isMinusInf
		}
	}
	return a
}

// allFinite reports whether all elements are finite. It checks only the maximum and minimum of each
// block, which vector code computes: a block with a non-finite element has a non-finite extreme.
func allFinite[F float32 | float64](vals []F) bool {
	const blockLen = 4096 // fits in the L1 cache for the second pass
	for block := range slices.Chunk(vals, blockLen) {
		if high, low := simd.MaxOf(block), simd.MinOf(block); high-high != 0 || low-low != 0 {
			return false
		}
	}
	return true
}
