package parsing

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "DecodeRaw", Doc: "Reinterprets the bytes of strings of equal length as numbers, along a new last dimension.",
		In:  []string{"bytes: string"},
		Out: []string{"output: out_type"},
		Attrs: []string{
			"out_type: {float16, float32, float64, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}",
			"little_endian: bool = true",
		},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = shapefn.Concat(c.In[0], shapefn.Of(shapefn.Unknown))
			return nil
		},
	}, newDecodeRaw)
	kernel.RegisterNew(opdef.Def{
		Name: "DecodePaddedRaw", Doc: "Reinterprets the bytes of strings, truncated or zero-padded to a fixed length, " +
			"as numbers, along a new last dimension.",
		In:  []string{"input_bytes: string", "fixed_length: int32"},
		Out: []string{"output: out_type"},
		Attrs: []string{
			"out_type: {float16, float32, float64, int32, uint16, uint8, int16, int8, int64, bfloat16}",
			"little_endian: bool = true",
		},
		Shape: paddedShape,
	}, newDecodePadded)
}

func paddedShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 0); err != nil {
		return err
	}
	width := shapefn.Unknown
	if n, ok := c.ScalarValue(1); ok {
		size := int64(c.Attrs.Type("out_type").Size())
		switch {
		case n <= 0:
			return status.InvalidArgumentf("`fixed_length` must be greater than 0, got %d", n)
		case n%size != 0:
			return status.InvalidArgumentf("`fixed_length` must evenly divide `width`, got %d mod %d = %d", n, size, n%size)
		}
		width = n / size
	}
	c.Out[0] = shapefn.Concat(c.In[0], shapefn.Of(width))
	return nil
}

// word returns the size in bytes of the units whose byte order is swapped, or 1 if none.
func word(c *kernel.Construction) int {
	if c.Attrs.Bool("little_endian") {
		return 1
	}
	t := c.Attrs.Type("out_type")
	if t.IsComplex() {
		return t.Size() / 2
	}
	return t.Size()
}

// swap reverses the bytes of every word of b.
func swap(b []byte, word int) {
	if word == 1 {
		return
	}
	for w := range slices.Chunk(b, word) {
		slices.Reverse(w)
	}
}

func newDecodeRaw(c *kernel.Construction) (kernel.Kernel, error) {
	dtype, word := c.Attrs.Type("out_type"), word(c)
	return kernel.Func(func(ctx *kernel.Context) error {
		in := tensor.Values[string](ctx.Input(0))
		length := 0
		if len(in) > 0 {
			length = len(in[0])
		}
		for i, s := range in {
			if len(s) != length {
				return status.InvalidArgumentf("DecodeRaw requires input strings to all be the same size, but element %d has size %d != %d", i, length, len(s))
			}
		}
		if length%dtype.Size() != 0 {
			return status.InvalidArgumentf("Input to DecodeRaw has length %d that is not a multiple of %d, the size of %v", length, dtype.Size(), dtype)
		}
		out, err := ctx.Allocate(0, slices.Concat(ctx.Input(0).Shape(), tensor.Shape{int64(length / dtype.Size())}))
		if err != nil {
			return err
		}
		dst := out.Bytes()
		for i, s := range in {
			copy(dst[i*length:], s)
		}
		swap(dst, word)
		return nil
	}), nil
}

func newDecodePadded(c *kernel.Construction) (kernel.Kernel, error) {
	size, word := int64(c.Attrs.Type("out_type").Size()), word(c)
	return kernel.Func(func(ctx *kernel.Context) error {
		if s := ctx.Input(1).Shape(); len(s) != 0 {
			return status.InvalidArgumentf("k must be scalar, got shape %v", s)
		}
		length := intarg.Scalar(ctx.Input(1))
		switch {
		case length%size != 0:
			return status.InvalidArgumentf("fixed_length (%d) must be a multiple of the size of out_type (%d)", length, size)
		case length <= 0:
			return status.InvalidArgumentf("fixed_length (%d) must be greater than zero.", length)
		}
		out, err := ctx.AllocateZeros(0, slices.Concat(ctx.Input(0).Shape(), tensor.Shape{length / size}))
		if err != nil {
			return err
		}
		dst, n := out.Bytes(), int(length)
		for i, s := range tensor.Values[string](ctx.Input(0)) {
			copy(dst[i*n:(i+1)*n], s)
		}
		swap(dst, word)
		return nil
	}), nil
}
