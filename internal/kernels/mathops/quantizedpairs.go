package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, o := range []struct {
		name, doc string
		scalars   int // first input that must be a scalar
		pairs     quantizedPairs
	}{
		{"QuantizedAdd", "Adds quantized tensors.", 2, quantizedPairs{
			compute: addQuantized, rank: "`%s` must be rank 0 but is rank %d",
			empty: [2]string{"max_x must be larger than min_x.", "max_y must be larger than min_y."}, none: "Must have some elements to add",
		}},
		{"QuantizedMul", "Multiplies quantized tensors.", 6, quantizedPairs{
			compute: mulQuantized, rank: "%s must be a scalar",
			empty: [2]string{"max_x must be larger than min_a.", "max_x must be larger than min_b."}, none: "vector must have at least 1 element",
		}},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: o.name, Doc: o.doc + " One shape must be a suffix of the other.",
				In:    []string{"x: T1", "y: T2", "min_x: float32", "max_x: float32", "min_y: float32", "max_y: float32"},
				Out:   []string{"z: Toutput", "min_z: float32", "max_z: float32"},
				Attrs: []string{"T1: " + quantizedTypes, "T2: " + quantizedTypes, "Toutput: " + quantizedTypes + " = qint32"},
				Shape: quantize.Shape(opdef.BroadcastShape, o.scalars),
			},
			Kernels: []kernel.Impl{{
				Types: []kernel.Constraint{kernel.OfType("T1", tensor.QUint8), kernel.OfType("T2", tensor.QUint8), kernel.OfType("Toutput", tensor.QInt32)},
				New:   kernel.Stateless(o.pairs.run),
			}},
		})
	}
}

// quantizedPairs is an elementwise operation on two quantized tensors, with its error texts.
type quantizedPairs struct {
	compute func(x, y quantizedOperand) (element func(x, y tensor.QUint8Elem) int32, r quantize.Range)
	rank    string
	empty   [2]string // errors for empty ranges
	none    string    // error for tensors without elements
}

// quantizedOperand is a quantized tensor: its integers and their range.
type quantizedOperand struct {
	q []tensor.QUint8Elem
	r quantize.Range
}

func (o quantizedPairs) run(ctx *kernel.Context) error {
	var limits [4]float32
	for i, name := range []string{"min_x", "max_x", "min_y", "max_y"} {
		t := ctx.Input(2 + i)
		if t.Rank() != 0 {
			if o.rank == "%s must be a scalar" {
				return status.InvalidArgumentf(o.rank, name)
			}
			return status.InvalidArgumentf(o.rank, name, t.Rank())
		}
		limits[i] = tensor.Value[float32](t)
	}
	a, b := ctx.Input(0), ctx.Input(1)
	shape, err := elementwise.Broadcast(a.Shape(), b.Shape())
	if err != nil {
		return status.InvalidArgumentf("Incompatible shapes: %v vs. %v", a.Shape(), b.Shape())
	}
	x := quantizedOperand{tensor.Values[tensor.QUint8Elem](a), quantize.Range{Min: limits[0], Max: limits[1]}}
	y := quantizedOperand{tensor.Values[tensor.QUint8Elem](b), quantize.Range{Min: limits[2], Max: limits[3]}}
	for i, p := range []quantizedOperand{x, y} {
		if !(p.r.Max > p.r.Min) {
			return status.InvalidArgumentf("%s", o.empty[i])
		}
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	repeated := len(x.q) != len(y.q) && len(x.q) != 1 && len(y.q) != 1
	switch {
	case repeated && min(len(x.q), len(y.q)) == 0:
		return status.InvalidArgumentf("%s", o.none)
	case out.NumElements() != max(len(x.q), len(y.q)) || repeated && !endsLike(a.Shape(), b.Shape()):
		return status.Unimplementedf("Broadcast between %v and %v is not supported yet.", a.Shape(), b.Shape())
	}
	f, r := o.compute(x, y)
	z := tensor.Values[tensor.QInt32Elem](out)
	parallel.For(len(z), 10_000, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			z[i] = tensor.QInt32Elem(f(x.q[i%len(x.q)], y.q[i%len(y.q)]))
		}
	})
	quantize.SetRange(ctx, 1, r)
	return nil
}

// endsLike reports whether the shorter shape, without leading ones, is a suffix of the longer one.
func endsLike(a, b tensor.Shape) bool {
	if a.NumElements() > b.NumElements() {
		a, b = b, a
	}
	for len(a) > 0 && a[0] == 1 {
		a = a[1:]
	}
	return len(a) <= len(b) && a.Equal(b[len(b)-len(a):])
}

// addQuantized adds in a range that is large enough for the sums. As in TensorFlow, the operands
// are mapped linearly with the distance between the images of 0 and 1 as the step. A single integer
// is converted by itself.
func addQuantized(x, y quantizedOperand) (func(x, y tensor.QUint8Elem) int32, quantize.Range) {
	lo, hi := min(x.r.Min, y.r.Min), max(x.r.Max, y.r.Max)
	top := max(lo, -lo, hi, -hi) * (1 << 14)
	sum := quantize.Range{Min: -top, Max: top}
	table := func(p quantizedOperand, alone bool) (to [256]int32) {
		if alone {
			to[p.q[0]] = int32(quantize.Int32.Of(quantize.Uint8.Value(int64(p.q[0]), p.r), sum))
			return to
		}
		zero := quantize.Int32.Unclamped(quantize.Uint8.Value(0, p.r), sum)
		step := int64(int32(quantize.Int32.Unclamped(quantize.Uint8.Value(1, p.r), sum) - zero))
		for q := range to {
			to[q] = int32(min(max(zero+int64(q)*step, quantize.Int32.First), quantize.Int32.Last))
		}
		return to
	}
	ofX, ofY := table(x, len(x.q) == 1), table(y, len(y.q) == 1 && len(x.q) != 1)
	return func(x, y tensor.QUint8Elem) int32 { return ofX[x] + ofY[y] }, sum
}

func mulQuantized(x, y quantizedOperand) (func(x, y tensor.QUint8Elem) int32, quantize.Range) {
	zeroX, zeroY := int32(quantize.Uint8.Unclamped(0, x.r)), int32(quantize.Uint8.Unclamped(0, y.r))
	return func(x, y tensor.QUint8Elem) int32 { return (int32(x) - zeroX) * (int32(y) - zeroY) },
		quantize.Product(quantize.Uint8, x.r, quantize.Uint8, y.r)
}
