// Package quantize converts between numbers of a range and the integers that stand for them, spread
// evenly over it. It is what operations on quantized tensors, in several families of kernels,
// share; their results are TensorFlow's to the bit, which is why there are two ways to convert,
// with different roundings.
package quantize

import (
	"math"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Types are what an attribute of quantized types may be.
const Types = "{qint8, quint8, qint32, qint16, quint16}"

// Range is what the least and the greatest integer stand for.
type Range struct{ Min, Max float32 }

// Ints are the integers of a type.
type Ints struct {
	First, Last int64
	bits        uint
}

// The types.
var (
	Int8  = Ints{math.MinInt8, math.MaxInt8, 8}
	Uint8 = Ints{0, math.MaxUint8, 8}
	Int32 = Ints{math.MinInt32, math.MaxInt32, 32}
)

// span is the length of a range that has a step after its last integer too.
func (n Ints) span(r Range) (length, steps float64) {
	steps = float64(int64(1) << n.bits)
	return float64(r.Max-r.Min) * (steps / (steps - 1)), steps
}

// Unclamped returns the integer for a number, which is none of n if the number is outside of the
// range.
func (n Ints) Unclamped(v float32, r Range) int64 {
	if r.Min == r.Max {
		return n.First
	}
	length, steps := n.span(r)
	scale := steps / length
	return int64(math.Round(float64(v)*scale)-math.Round(float64(r.Min)*scale)) + n.First
}

// Of returns the integer for a number.
func (n Ints) Of(v float32, r Range) int64 { return n.clamp(n.Unclamped(v, r)) }

func (n Ints) clamp(v int64) int64 { return min(max(v, n.First), n.Last) }

// Value returns the number that an integer stands for.
func (n Ints) Value(q int64, r Range) float32 {
	if r.Min == r.Max {
		return r.Min
	}
	length, steps := n.span(r)
	scale := length / steps
	least := float32(math.Round(float64(r.Min/float32(scale)))) * float32(scale)
	return float32(float64(least) + float64(q-n.First)*scale)
}

// Decoder returns the function from integers to numbers that arrays are converted with.
func (n Ints) Decoder(r Range) func(q int64) float32 {
	scale, zero := float32(float64(r.Max-r.Min)/float64(n.Last-n.First)), r.Min
	if r.Max != r.Min {
		zero = round(r.Min/scale) * scale
	}
	zero -= float32(float32(n.First) * scale)
	return func(q int64) float32 { return zero + float32(float32(q)*scale) }
}

// Encoder returns the function from numbers to integers that arrays are converted with.
func (n Ints) Encoder(r Range) func(v float32) int64 {
	var scale float32
	if r.Max != r.Min {
		scale = float32(float64(n.Last-n.First) / float64(r.Max-r.Min))
	}
	offset := round(r.Min*scale) - float32(n.First)
	least, most := float32(n.First), min(float32(n.Last), 2147483520)
	return func(v float32) int64 { return int64(min(max(round(float32(v*scale))-offset, least), most)) }
}

func round(v float32) float32 { return float32(math.Round(float64(v))) }

// level is the difference between two integers that follow each other.
func (n Ints) level(r Range) float32 { return (r.Max - r.Min) / float32(n.Last-n.First) }

// Product returns the range of products, which are Int32, of integers without their zero.
func Product(a Ints, ra Range, b Ints, rb Range) Range {
	level := a.level(ra) * b.level(rb)
	return Range{level * float32(Int32.First), level * float32(Int32.Last)}
}

// Narrow returns the function from Int32 in a range to Uint8 in another, in fixed-point arithmetic.
func Narrow(from, to Range) func(q int32) uint8 {
	const shift = 16
	in, out := from.Max-from.Min, to.Max-to.Min
	var scale, offset int64
	if out != 0 {
		center := (from.Min + from.Max) / 2
		scale = int64(255 * (1 << shift) * float64(in) / float64(out))
		offset = int64(center * float32(255/float64(out)) * (1 << shift))
		offset -= int64(math.Round((1 << shift) * (float64(to.Min) * 255) / float64(out)))
	}
	offset += 1 << (shift - 1)
	return func(q int32) uint8 { return uint8(min(max(((int64(q)*scale)>>32+offset)>>shift, 0), 255)) }
}

// Input returns the number that input i is, a scalar; text is the error for another rank and ends
// before it.
func Input(ctx *kernel.Context, i int, text string) (float32, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return 0, status.InvalidArgumentf("%s%d", text, t.Rank())
	}
	return tensor.Value[float32](t), nil
}

// InputRange returns the range that inputs i and i+1 give, whose names are those of errors.
func InputRange(ctx *kernel.Context, i int, least, most string) (r Range, err error) {
	if r.Min, err = Input(ctx, i, least+" must be rank 0 but is rank "); err == nil {
		r.Max, err = Input(ctx, i+1, most+" must be rank 0 but is rank ")
	}
	return r, err
}

// SetRange makes outputs i and i+1 a range.
func SetRange(ctx *kernel.Context, i int, r Range) {
	ctx.SetOutput(i, tensor.Scalar(r.Min))
	ctx.SetOutput(i+1, tensor.Scalar(r.Max))
}

// Shape is the shape rule of an operation whose first output is as rule says, whose inputs from
// first on are scalars, and whose further outputs are too.
func Shape(rule opdef.ShapeFn, first int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		if err := rule(c); err != nil {
			return err
		}
		for _, in := range c.In[first:] {
			if _, err := opdef.WithRank(in, 0); err != nil {
				return err
			}
		}
		for i := 1; i < len(c.Out); i++ {
			c.Out[i] = tensor.MakePartial()
		}
		return nil
	}
}
