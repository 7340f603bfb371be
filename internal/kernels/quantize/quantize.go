package quantize

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const modeAttr = "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'"

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizeV2",
			Doc:  "Quantizes a float tensor to integers over a range. Also returns the range that the quantized values represent.",
			In:   []string{"input: float32", "min_range: float32", "max_range: float32"},
			Out:  []string{"output: T", "output_min: float32", "output_max: float32"},
			Attrs: []string{"T: " + quantize.Types, modeAttr, "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'",
				"narrow_range: bool = false", "axis: int = -1", "ensure_minimum_range: float = 0.009999999776482582"},
			Shape: quantizeShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.QInt8: newQuantize[tensor.QInt8Elem](math.MinInt8, math.MaxInt8), tensor.QUint8: newQuantize[tensor.QUint8Elem](0, math.MaxUint8),
			tensor.QInt16: newQuantize[tensor.QInt16Elem](math.MinInt16, math.MaxInt16), tensor.QUint16: newQuantize[tensor.QUint16Elem](0, math.MaxUint16),
			tensor.QInt32: newQuantize[tensor.QInt32Elem](math.MinInt32, math.MaxInt32),
		}),
	})
	types := map[tensor.DType]kernel.New{
		tensor.QInt8: newDequantize[tensor.QInt8Elem](math.MinInt8, math.MaxInt8), tensor.QUint8: newDequantize[tensor.QUint8Elem](0, math.MaxUint8),
		tensor.QInt16: newDequantize[tensor.QInt16Elem](math.MinInt16, math.MaxInt16), tensor.QUint16: newDequantize[tensor.QUint16Elem](0, math.MaxUint16),
		tensor.QInt32: newDequantize[tensor.QInt32Elem](math.MinInt32, math.MaxInt32),
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Dequantize", Doc: "Dequantizes a tensor that QuantizeV2 quantized.",
			In: []string{"input: T", "min_range: float32", "max_range: float32"}, Out: []string{"output: dtype"},
			Attrs: []string{"T: " + quantize.Types, modeAttr, "narrow_range: bool = false", "axis: int = -1", "dtype: {bfloat16, float32} = float32"},
			Shape: dequantizeShape,
		},
		Kernels: kernel.ByType("T", types),
	})
}

func quantizeShape(c *opdef.ShapeContext) error {
	axis := c.Attrs.Int("axis")
	if axis < -1 {
		return status.InvalidArgumentf("axis should be at least -1, got %d", axis)
	}
	limits, err := rangeShape(c, axis)
	c.Out[0], c.Out[1], c.Out[2] = c.In[0], limits, limits
	return err
}

// rangeShape checks the shapes of inputs 1 and 2, the range of input 0. With an axis, they hold one
// range per slice.
func rangeShape(c *opdef.ShapeContext, axis int) (tensor.PartialShape, error) {
	rank := 1
	if axis == -1 {
		rank = 0
	}
	if _, err := opdef.WithRank(c.In[1], rank); err != nil {
		return c.In[1], err
	}
	limits, err := opdef.WithRank(c.In[2], rank)
	if err != nil || axis == -1 {
		return limits, err
	}
	in, err := opdef.WithRankAtLeast(c.In[0], axis+1)
	if err == nil && in.Rank() >= 0 {
		_, err = opdef.MergeDims(limits.Dim(0), in.Dim(axis))
	}
	return limits, err
}

func dequantizeShape(c *opdef.ShapeContext) error {
	axis := c.Attrs.Int("axis")
	if axis < -1 {
		return status.InvalidArgumentf("axis should be at least -1, got %d", axis)
	}
	if rank := c.In[0].Rank(); rank >= 0 && axis > rank {
		return status.InvalidArgumentf("Axis must be less than input dimension(%d), got %d", rank, axis)
	}
	if axis >= math.MaxInt32 {
		return status.InvalidArgumentf("Axis cannot be >= kint32max value, got %d", axis)
	}
	_, err := rangeShape(c, axis)
	c.Out[0] = c.In[0]
	return err
}

type integer interface {
	tensor.QInt8Elem | tensor.QUint8Elem | tensor.QInt16Elem | tensor.QUint16Elem | tensor.QInt32Elem
}

// Modes of mapping a range to integers.
const (
	minCombined = "MIN_COMBINED" // the limits of the range are the smallest and the largest integer
	minFirst    = "MIN_FIRST"    // the same, with 0 moved to an integer
	scaled      = "SCALED"       // 0 is the integer 0
)

// codec converts between numbers and integers from first to last.
type codec struct {
	mode        string
	first, last float32
	narrow      bool // excludes the smallest integer
	halfToEven  bool
	least       float32 // minimum length of a range, relative to its limits
}

func newQuantize[T integer](first, last float32) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		q := codec{
			c.Attrs.String("mode"), first, last, c.Attrs.Bool("narrow_range"), c.Attrs.String("round_mode") == "HALF_TO_EVEN",
			c.Attrs.Float("ensure_minimum_range"),
		}
		axis := c.Attrs.Int("axis")
		if q.halfToEven && q.mode != scaled {
			return nil, status.InvalidArgumentf("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '%s'.", q.mode)
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			slices, err := checkSlices(ctx, axis)
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, in.Shape())
			if err != nil {
				return err
			}
			limitsShape := ctx.Input(1).Shape()
			if slices == 1 {
				limitsShape = tensor.Shape{}
			} else if q.mode == minFirst {
				return status.Unimplementedf("MIN_FIRST mode is not implemented for Quantize with axis != -1.")
			}
			var limits [2][]float32
			for i := range limits {
				t, err := ctx.Allocate(1+i, limitsShape)
				if err != nil {
					return err
				}
				limits[i] = tensor.Values[float32](t)
			}
			x, z, inner := tensor.Values[float32](in), tensor.Values[T](out), innerSize(in.Shape(), axis)
			for i := range slices {
				lo, hi := tensor.Values[float32](ctx.Input(1))[i], tensor.Values[float32](ctx.Input(2))[i]
				if hi < lo {
					return status.InvalidArgumentf("input_max_range must be larger than input_min_range.")
				}
				var encode func(float32) float32
				encode, limits[0][i], limits[1][i] = q.encoder(lo, hi)
				eachOf(len(x), slices, inner, i, func(at int) { z[at] = T(int64(encode(x[at]))) })
			}
			return nil
		}), nil
	}
}

// checkSlices checks the inputs of QuantizeV2 and returns the number of ranges.
func checkSlices(ctx *kernel.Context, axis int) (int, error) {
	in, names := ctx.Input(0), [...]string{"min_range", "max_range"}
	if axis < 0 {
		for i, name := range names {
			if n := ctx.Input(1 + i).NumElements(); n != 1 {
				return 0, status.InvalidArgumentf("If axis is not specified, %s must contain a single float element, but it contains %d elements", name, n)
			}
		}
		return 1, nil
	}
	if in.Rank() <= axis {
		return 0, status.InvalidArgumentf("Axis is on a zero-based index, so its value must always be less than number of input's dims, but given axis value was %d and input's dims was %d",
			axis, in.Rank())
	}
	for i, name := range names {
		const text = "If axis is specified, %s must be a 1-D tensor whose size matches the axis dimension of the input and output tensors, but "
		t := ctx.Input(1 + i)
		if t.Rank() != 1 {
			return 0, status.InvalidArgumentf(text+"%s dims are %d", name, name, t.Rank())
		}
		if t.Dim(0) != in.Dim(axis) {
			return 0, status.InvalidArgumentf(text+"%s is a 1-D tensor of size %d and input's axis dimension is of size %d",
				name, name, t.Dim(0), in.Dim(axis))
		}
	}
	return in.Dim(axis), nil
}

// encoder returns the function that quantizes numbers of a range, and the range that the quantized
// values represent.
func (q *codec) encoder(lo, hi float32) (encode func(float32) float32, outLo, outHi float32) {
	long := max(1, abs(lo), abs(hi)) * q.least
	lo = min(0, lo)
	hi = max(0, hi, lo+long)
	switch q.mode {
	case minFirst:
		encode := q.minFirst(lo, hi)
		return encode, lo, hi
	case minCombined:
		scale := float32((float64(q.last) - float64(q.first)) / float64(hi-lo))
		if q.last == math.MaxInt32 { // not representable as float32
			scale = float32((math.MaxInt32 - math.MinInt32) / float64(hi-lo))
		}
		half := q.half()
		return func(v float32) float32 {
			v = float32((clamp(v, lo, hi) - lo) * scale)
			if q.first == 0 {
				return v + 0.5
			}
			return round(v - half)
		}, lo, hi
	}
	first, fromLo, fromHi := q.least0(), float32(math.MaxFloat32), float32(math.MaxFloat32)
	if first*lo > 0 {
		fromLo = first / lo
	}
	if q.last*hi > 0 {
		fromHi = q.last / hi
	}
	scale := min(fromLo, fromHi)
	// TensorFlow flushes a denormal limit to zero
	if lo = first / scale; abs(lo) < leastNormal {
		lo = 0
	}
	hi = q.last / scale
	return func(v float32) float32 {
		v = float32(clamp(v, lo, hi) * scale)
		if q.halfToEven {
			return float32(math.RoundToEven(float64(v)))
		}
		return round(v)
	}, lo, hi
}

// half returns half the number of integers for signed types, and 0 for unsigned ones.
func (q *codec) half() float32 {
	if q.first == 0 {
		return 0
	}
	return -q.first
}

// least0 returns the smallest integer in use if 0 is mapped to 0.
func (q *codec) least0() float32 {
	if q.narrow {
		return q.first + 1
	}
	return q.first
}

// steps returns the number of steps between the smallest and the largest integer.
func (q *codec) steps() float64 {
	if q.last == math.MaxInt32 {
		return math.MaxUint32
	}
	return float64(q.last) - float64(q.first)
}

// minFirst returns the encoder of mode MIN_FIRST.
func (q *codec) minFirst(lo, hi float32) func(float32) float32 {
	var scale float32
	if lo != hi {
		scale = float32(q.steps() / float64(hi-lo))
	}
	offset := round(lo*scale) - q.first
	most := min(q.last, 2147483520)
	return func(v float32) float32 { return min(max(round(float32(v*scale))-offset, q.first), most) }
}

// leastNormal is the smallest normal float32.
const leastNormal = 0x1p-126

func clamp(v, lo, hi float32) float32 {
	if v > hi {
		v = hi
	}
	if v < lo {
		v = lo
	}
	return v
}

func abs(v float32) float32   { return float32(math.Abs(float64(v))) }
func round(v float32) float32 { return float32(math.Round(float64(v))) }

func newDequantize[T integer](first, last float32) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		q := codec{mode: c.Attrs.String("mode"), first: first, last: last, narrow: c.Attrs.Bool("narrow_range")}
		axis, short := c.Attrs.Int("axis"), c.Attrs.Type("dtype") == tensor.BFloat16
		if short && q.mode != minCombined {
			return nil, status.InvalidArgumentf("When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '%s'", q.mode)
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in, slices := ctx.Input(0), 1
			if axis >= in.Rank() {
				return status.InvalidArgumentf("Axis must be less than input dimension(%d), got %d", in.Rank(), axis)
			}
			if axis > -1 {
				slices = in.Dim(axis)
			}
			for i, name := range [...]string{"input_min_tensor", "input_max_tensor"} {
				if n := ctx.Input(1 + i).NumElements(); n != slices {
					return status.InvalidArgumentf("%s must have as many elements as input on the dequantization axis (%d), got %d, expected %d", name, axis, n, slices)
				}
			}
			out, err := ctx.Allocate(0, in.Shape())
			if err != nil {
				return err
			}
			if slices != 1 && q.mode == minFirst {
				return status.Unimplementedf("MIN_FIRST mode is not implemented for Dequantize with axis != -1.")
			}
			x, inner := tensor.Values[T](in), innerSize(in.Shape(), axis)
			for i := range slices {
				decode := q.decoder(tensor.Values[float32](ctx.Input(1))[i], tensor.Values[float32](ctx.Input(2))[i])
				if short {
					z := tensor.Values[tensor.BFloat16Elem](out)
					eachOf(len(x), slices, inner, i, func(at int) { z[at] = tensor.BFloat16Of(decode(float32(x[at]))) })
				} else {
					z := tensor.Values[float32](out)
					eachOf(len(x), slices, inner, i, func(at int) { z[at] = decode(float32(x[at])) })
				}
			}
			return nil
		}), nil
	}
}

// decoder returns the function that dequantizes integers to numbers of a range.
func (q *codec) decoder(lo, hi float32) func(float32) float32 {
	switch q.mode {
	case minCombined:
		scale, half := (hi-lo)/(q.last-q.first), q.half()
		return func(v float32) float32 { return float32((v+half)*scale) + lo }
	case minFirst:
		scale, zero := float32(float64(hi-lo)/q.steps()), lo
		if lo != hi {
			zero = float32(round(lo/scale) * scale)
		}
		zero -= float32(q.first * scale)
		return func(v float32) float32 { return zero + float32(v*scale) }
	}
	scale := hi / q.last
	if q.first != 0 {
		scale = max(lo/q.least0(), scale)
	}
	return func(v float32) float32 { return v * scale }
}
