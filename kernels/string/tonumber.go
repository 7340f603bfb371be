package string

import (
	"errors"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "StringToNumber", Doc: "Reads numbers from text.",
			In:    []string{"string_tensor: string"},
			Out:   []string{"output: out_type"},
			Attrs: []string{"out_type: {float32, float64, int32, int64, uint32, uint64} = float32"},
			Shape: opdef.SameShape,
		},
		Kernels: kernel.ByType("out_type", kernel.Table{
			tensor.Float32: toNumber(func(s string) (float32, bool) { v, ok := parseFloat(s, 32); return float32(v), ok }),
			tensor.Float64: toNumber(func(s string) (float64, bool) { return parseFloat(s, 64) }),
			tensor.Int32:   toNumber(func(s string) (int32, bool) { v, ok := parseInt(s, 32); return int32(v), ok }),
			tensor.Int64:   toNumber(func(s string) (int64, bool) { return parseInt(s, 64) }),
			tensor.Uint32:  toNumber(func(s string) (uint32, bool) { v, ok := parseUint(s, 32); return uint32(v), ok }),
			tensor.Uint64:  toNumber(func(s string) (uint64, bool) { return parseUint(s, 64) }),
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

// space are the bytes that count as space in the language C.
const space = " \t\n\v\f\r"

func parseInt(s string, bits int) (int64, bool) {
	s = strings.Trim(s, space)
	if strings.ContainsRune(s, '_') {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, bits)
	return v, err == nil
}

func parseUint(s string, bits int) (uint64, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.Trim(s, space), "+"), 10, bits)
	return v, err == nil
}

// parseFloat reads decimal and hexadecimal numbers, infinities and NaN. What is too large is infinite.
func parseFloat(s string, bits int) (float64, bool) {
	s = strings.Trim(s, space)
	if strings.ContainsRune(s, '_') {
		return 0, false
	}
	if digits := strings.ToLower(strings.TrimLeft(s, "+-")); strings.HasPrefix(digits, "0x") && !strings.Contains(digits, "p") {
		s += "p0" // Go wants an exponent
	}
	v, err := strconv.ParseFloat(s, bits)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}
