package stringops

import (
	"fmt"
	"strconv"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "AsString", Doc: "Converts elements to strings. Numbers are formatted as by C's printf.",
		In:  []string{"input: T"},
		Out: []string{"output: string"},
		Attrs: []string{
			"T: {realnumbertype, complex64, complex128, bool, variant, string}",
			"precision: int = -1",
			"scientific: bool = false",
			"shortest: bool = false",
			"width: int = -1",
			"fill: string = ''",
		},
		Shape: opdef.SameShape,
	}, newAsString)
}

func newAsString(c *kernel.Construction) (kernel.Kernel, error) {
	f, err := newFormat(c)
	if err != nil {
		return nil, err
	}
	text, ok := elementTexts[c.Attrs.Type("T")]
	if !ok {
		return nil, status.InvalidArgumentf("Type not supported: %v", c.Attrs.Type("T"))
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.DType() == tensor.String && f.width <= 0 {
			return ctx.PassInput(0, 0)
		}
		out, err := ctx.AllocateLike(0, in)
		if err == nil {
			text(tensor.Values[string](out), in, f)
		}
		return err
	}), nil
}

// newFormat reads and checks the attributes.
func newFormat(c *kernel.Construction) (cFormat, error) {
	dtype := c.Attrs.Type("T")
	f := cFormat{width: c.Attrs.Int("width"), precision: c.Attrs.Int("precision"), verb: 'f'}
	scientific, shortest, fill := c.Attrs.Bool("scientific"), c.Attrs.Bool("shortest"), c.Attrs.String("fill")
	if !dtype.IsFloating() && !dtype.IsComplex() && dtype != tensor.String {
		if scientific || shortest {
			return f, status.InvalidArgumentf("scientific and shortest format not supported for datatype %v", dtype)
		}
		if f.precision >= 0 {
			return f, status.InvalidArgumentf("precision not supported for datatype %v", dtype)
		}
	}
	switch {
	case len(fill) > 1:
		return f, status.InvalidArgumentf("Fill string must be one or fewer characters")
	case scientific && shortest:
		return f, status.InvalidArgumentf("Cannot select both scientific and shortest notation")
	case max(f.width, f.precision) > maxWidth:
		return f, status.InvalidArgumentf("a text of %d characters is too wide", max(f.width, f.precision))
	case scientific:
		f.verb = 'e'
	case shortest:
		f.verb = 'g'
	}
	if fill != "" {
		switch f.flag = fill[0]; f.flag {
		case ' ', '+', '-', '0', '#':
		default:
			return f, status.InvalidArgumentf("Fill argument not supported: \"%s\"", fill)
		}
	}
	return f, nil
}

// elementTexts holds functions that format the elements of a tensor, by dtype.
var elementTexts = map[tensor.DType]func(dst []string, t *tensor.Tensor, f cFormat){
	tensor.Int8: texts(signed[int8]), tensor.Int16: texts(signed[int16]), tensor.Int32: texts(signed[int32]), tensor.Int64: texts(signed[int64]),
	tensor.Uint8: texts(unsigned[uint8]), tensor.Uint16: texts(unsigned[uint16]), tensor.Uint32: texts(unsigned[uint32]),
	tensor.Uint64:   texts(unsigned[uint64]),
	tensor.Float16:  texts(func(f cFormat, v tensor.Float16Elem) string { return f.float(float64(v.Float32())) }),
	tensor.BFloat16: texts(func(f cFormat, v tensor.BFloat16Elem) string { return f.float(float64(v.Float32())) }),
	tensor.Float32:  texts(func(f cFormat, v float32) string { return f.float(float64(v)) }),
	tensor.Float64:  texts(cFormat.float),
	tensor.Complex64: texts(func(f cFormat, v complex64) string {
		return "(" + f.float(float64(real(v))) + "," + f.float(float64(imag(v))) + ")"
	}),
	tensor.Complex128: texts(func(f cFormat, v complex128) string { return "(" + f.float(real(v)) + "," + f.float(imag(v)) + ")" }),
	tensor.Bool:       texts(func(_ cFormat, v bool) string { return strconv.FormatBool(v) }),
	tensor.String:     texts(cFormat.string),
	tensor.Variant:    texts(variantText),
}

func texts[T tensor.Elem](text func(cFormat, T) string) func([]string, *tensor.Tensor, cFormat) {
	return func(dst []string, t *tensor.Tensor, f cFormat) {
		var meter membudget.Meter
		for i, v := range tensor.Values[T](t) {
			dst[i] = text(f, v)
			meter.MustTake(len(dst[i]))
		}
	}
}

func signed[T int8 | int16 | int32 | int64](f cFormat, v T) string {
	return f.number(strconv.FormatInt(int64(v), 10), true)
}

func unsigned[T uint8 | uint16 | uint32 | uint64](f cFormat, v T) string {
	return f.number(strconv.FormatUint(uint64(v), 10), false)
}

func variantText(_ cFormat, v tensor.VariantValue) string {
	e, err := v.Encode()
	if err != nil {
		return fmt.Sprintf("Variant<type: %T>", v.Value)
	}
	return fmt.Sprintf("Variant<type: %s value: %v>", e.TypeName, v.Value)
}
