// Package quantize converts between real numbers and the quantized integers that represent them,
// evenly spaced over a range. Several families of kernels with quantized tensors share it. Results
// equal TensorFlow's bit for bit; for this there are two conversions with different rounding.
package quantize

import (
	"math"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Types is the list of quantized types in attribute definitions.
const Types = "{qint8, quint8, qint32, qint16, quint16}"

// Range holds the numbers that the smallest and the largest quantized integer represent.
type Range struct{ Min, Max float32 }

// IntType describes the values of a quantized integer type.
type IntType struct {
	First, Last int64
	bits        uint
}

// The supported integer types.
var (
	Int8  = IntType{math.MinInt8, math.MaxInt8, 8}
	Uint8 = IntType{0, math.MaxUint8, 8}
	Int32 = IntType{math.MinInt32, math.MaxInt32, 32}
)

// span returns the length of the range extended by one step after its last integer, and the number
// of steps.
func (n IntType) span(r Range) (length, steps float64) {
	steps = float64(int64(1) << n.bits)
	return float64(r.Max-r.Min) * (steps / (steps - 1)), steps
}

// Unclamped returns the integer that represents v. It is outside of n's values if v is outside of
// the range.
func (n IntType) Unclamped(v float32, r Range) int64 {
	if r.Min == r.Max {
		return n.First
	}
	length, steps := n.span(r)
	scale := steps / length
	return int64(math.Round(float64(v)*scale)-math.Round(float64(r.Min)*scale)) + n.First
}

// Of returns the integer that represents v, clamped to n's values.
func (n IntType) Of(v float32, r Range) int64 { return n.clamp(n.Unclamped(v, r)) }

func (n IntType) clamp(v int64) int64 { return min(max(v, n.First), n.Last) }

// Value returns the number that q represents.
func (n IntType) Value(q int64, r Range) float32 {
	if r.Min == r.Max {
		return r.Min
	}
	length, steps := n.span(r)
	scale := length / steps
	least := float32(math.Round(float64(r.Min/float32(scale)))) * float32(scale)
	return float32(float64(least) + float64(q-n.First)*scale)
}

// Decoder returns the function that converts integers of an array to numbers.
func (n IntType) Decoder(r Range) func(q int64) float32 {
	scale, zero := float32(float64(r.Max-r.Min)/float64(n.Last-n.First)), r.Min
	if r.Max != r.Min {
		zero = round(r.Min/scale) * scale
	}
	zero -= float32(float32(n.First) * scale)
	return func(q int64) float32 { return zero + float32(float32(q)*scale) }
}

// Encoder returns the function that converts numbers of an array to integers.
func (n IntType) Encoder(r Range) func(v float32) int64 {
	var scale float32
	if r.Max != r.Min {
		scale = float32(float64(n.Last-n.First) / float64(r.Max-r.Min))
	}
	offset := round(r.Min*scale) - float32(n.First)
	lo, hi := float32(n.First), min(float32(n.Last), 2147483520)
	return func(v float32) int64 { return int64(min(max(round(float32(v*scale))-offset, lo), hi)) }
}

func round(v float32) float32 { return float32(math.Round(float64(v))) }

// level returns the difference between the numbers of two consecutive integers.
func (n IntType) level(r Range) float32 { return (r.Max - r.Min) / float32(n.Last-n.First) }

// Product returns the range of the Int32 product of a and b, both without their zero point.
func Product(a IntType, ra Range, b IntType, rb Range) Range {
	level := a.level(ra) * b.level(rb)
	return Range{level * float32(Int32.First), level * float32(Int32.Last)}
}

// Narrow returns the function that converts Int32 in one range to Uint8 in another. It uses
// fixed-point arithmetic.
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

// Input returns the value of input i, a scalar. The error for another rank is text followed by that
// rank.
func Input(ctx *kernel.Context, i int, text string) (float32, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return 0, status.InvalidArgumentf("%s%d", text, t.Rank())
	}
	return tensor.Value[float32](t), nil
}

// InputRange returns the range with limits in inputs i and i+1. Errors name the inputs minName and
// maxName.
func InputRange(ctx *kernel.Context, i int, minName, maxName string) (r Range, err error) {
	if r.Min, err = Input(ctx, i, minName+" must be rank 0 but is rank "); err == nil {
		r.Max, err = Input(ctx, i+1, maxName+" must be rank 0 but is rank ")
	}
	return r, err
}

// SetRange sets outputs i and i+1 to the limits of a range.
func SetRange(ctx *kernel.Context, i int, r Range) {
	ctx.SetOutput(i, tensor.Scalar(r.Min))
	ctx.SetOutput(i+1, tensor.Scalar(r.Max))
}

// Shape extends a shape function: inputs from first on must be scalars, and outputs after the first
// are scalars.
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
