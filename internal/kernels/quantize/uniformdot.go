package quantize

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformQuantizedDot", Doc: "Performs quantized matrix multiplication of lhs and rhs.",
			In: uniformInputs("Tin"), Out: []string{"output: Tout"},
			Attrs: append([]string{"Tin: {qint8}", "Tout: {qint32}"}, uniformAttrs("lhs", "rhs", "output")...), Shape: dotShape,
		},
		Kernels: kernel.ForTypes("Tin", newUniformDot, tensor.QInt8),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformQuantizedDotHybrid",
			Doc:  "Performs hybrid matrix multiplication of float lhs and quantized rhs. Quantizes each row of lhs dynamically.",
			In:   []string{"lhs: Tlhs", "rhs: Trhs", "rhs_scales: float32", "rhs_zero_points: int32"}, Out: []string{"output: Tout"},
			Attrs: append([]string{"Tlhs: {float32}", "Trhs: {qint8}", "Tout: {float32}"}, uniformAttrs("rhs")...), Shape: dotShape,
		},
		Kernels: kernel.ForTypes("Trhs", newUniformDotHybrid, tensor.QInt8),
	})
}

// dotShape is the shape function of matrix products. rhs and the output may be quantized per
// channel.
func dotShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 2, 2); err != nil {
		return err
	}
	lhs, rhs := c.In[0], c.In[1]
	first, err := quantizations(c)
	if err != nil {
		return err
	}
	if _, err := opdef.MergeDims(lhs.Dim(1), rhs.Dim(0)); err != nil {
		return err
	}
	for i := first; i < len(c.In); i += 2 {
		if err := checkScales(c, rhs.Dim(1), i); err != nil {
			return err
		}
	}
	c.Out[0] = shapefn.Of(lhs.Dim(0), rhs.Dim(1))
	return nil
}

// quantizations checks the ranks of the scales and zero points that follow the operands. It returns
// the index of the first one that may be per channel. In a hybrid operation lhs has none, and
// otherwise it is quantized per tensor.
func quantizations(c *opdef.ShapeContext) (first int, err error) {
	first = 2
	if len(c.In) > 4 {
		if err := checkRanksAtMost(c, 2, 0, 0); err != nil {
			return 0, err
		}
		first = 4
	}
	for i := first; i < len(c.In); i++ {
		if err := checkRanksAtMost(c, i, 1); err != nil {
			return 0, err
		}
	}
	return first, nil
}

func checkRanksAtMost(c *opdef.ShapeContext, first int, ranks ...int) error {
	for i, rank := range ranks {
		if _, err := opdef.WithRankAtMost(c.In[first+i], rank); err != nil {
			return err
		}
	}
	return nil
}

// checkScales checks that inputs i and i+1, scales and zero points, fit the given number of
// channels.
func checkScales(c *opdef.ShapeContext, channels int64, i int) error {
	scales, zeros := c.In[i], c.In[i+1]
	switch {
	case !scales.RankKnown() || !zeros.RankKnown():
		return nil
	case scales.Rank() != zeros.Rank():
		return status.InvalidArgumentf("scales and zero_points must have same rank.")
	case scales.Rank() == 0:
		return nil
	}
	if _, err := opdef.MergeDims(scales.Dim(0), channels); err != nil {
		return err
	}
	_, err := opdef.MergeDims(zeros.Dim(0), channels)
	return err
}

func checkDotAxis(c *kernel.Construction, name string) error {
	if axis := c.Attrs.Int(name + "_quantization_axis"); axis != 1 && axis != -1 {
		return status.InvalidArgumentf("%s_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor).", name)
	}
	return nil
}

// dotShapeOf checks that matrices can be multiplied, and returns the shape of the product.
func dotShapeOf(lhs, rhs tensor.Shape) (tensor.Shape, error) {
	switch {
	case len(lhs) != 2:
		return nil, status.InvalidArgumentf("lhs rank must be 2, but given lhs shape %v", lhs)
	case len(rhs) != 2:
		return nil, status.InvalidArgumentf("rhs rank must be 2, but given rhs shape %v", rhs)
	case lhs[1] != rhs[0]:
		return nil, status.InvalidArgumentf("lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape %v and rhs shape %v", lhs, rhs)
	}
	return tensor.Shape{lhs[0], rhs[1]}, nil
}

// axisOf returns the given quantization axis if there are several scales, and -1 otherwise.
func axisOf(scales *tensor.Tensor, axis int) int {
	if scales.Rank() == 0 {
		return -1
	}
	return axis
}

// checkPositive checks the scales that are inputs of a kernel.
func checkPositive(ctx *kernel.Context, inputs map[int]string) error {
	for i := range ctx.NumInputs() {
		if name, ok := inputs[i]; ok && !allPositive(ctx.Input(i)) {
			return status.InvalidArgumentf("%s scales elements must be all positive.", name)
		}
	}
	return nil
}

// checkOne checks that inputs 2 and 3 are a single scale and zero point.
func checkOne(ctx *kernel.Context) error {
	if s, z := ctx.Input(2), ctx.Input(3); s.Rank() != 0 || z.Rank() != 0 {
		return status.InvalidArgumentf("lhs scales/zero_points must be all scalar tensors. Given: %v%v", s.Shape(), z.Shape())
	}
	return nil
}

// outcome requantizes sums of products to the output.
type outcome struct {
	multipliers []multiplier
	zeros       []int32
	lo, hi      int32
}

// newOutcome reads inputs 2 to 7, in the order of uniformInputs. The output has n channels if rhs
// is quantized per channel.
func newOutcome(ctx *kernel.Context, n int, lo, hi int32) (outcome, error) {
	lhs, rhs := float64(tensor.Value[float32](ctx.Input(2))), tensor.Values[float32](ctx.Input(4))
	if len(rhs) == 1 {
		n = 1
	}
	multipliers, err := newMultipliers(n, func(i int) float64 { return lhs * float64(rhs[i]) }, tensor.Values[float32](ctx.Input(6)))
	return outcome{multipliers, tensor.Values[int32](ctx.Input(7)), lo, hi}, err
}

func (o *outcome) of(sum int32, channel int) tensor.QInt32Elem {
	return tensor.QInt32Elem(clampInt(at(o.multipliers, channel).times(sum)+at(o.zeros, channel), o.lo, o.hi))
}

func newUniformDot(c *kernel.Construction) (kernel.Kernel, error) {
	lo, hi := int32(c.Attrs.Int("output_quantization_min_val")), int32(c.Attrs.Int("output_quantization_max_val"))
	if c.Attrs.Int("lhs_quantization_axis") != -1 {
		return nil, status.InvalidArgumentf("lhs_quantization_axis Attr must be -1 (per-tensor).")
	}
	for _, name := range []string{"rhs", "output"} {
		if err := checkDotAxis(c, name); err != nil {
			return nil, err
		}
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		lhs, rhs := ctx.Input(0), ctx.Input(1)
		if err := checkPositive(ctx, map[int]string{2: "lhs", 4: "rhs", 6: "output"}); err != nil {
			return err
		}
		shape, err := dotShapeOf(lhs.Shape(), rhs.Shape())
		if err != nil {
			return err
		}
		if err := checkOne(ctx); err != nil {
			return err
		}
		if _, err := channelsOf(rhs.Shape(), ctx.Input(4).Shape(), ctx.Input(5).Shape(), axisOf(ctx.Input(4), 1)); err != nil {
			return err
		}
		if _, err := channelsOf(shape, ctx.Input(6).Shape(), ctx.Input(7).Shape(), axisOf(ctx.Input(6), 1)); err != nil {
			return err
		}
		if ctx.Input(4).Rank() == 0 && ctx.Input(6).Rank() != 0 {
			return status.InvalidArgumentf("If rhs is per-tensor quantized, output must be also per-tensor quantized. Given rhs scales and "+
				"zero_points of shape %v but given output scales and zero_points of shape %v", ctx.Input(4).Shape(), ctx.Input(6).Shape())
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		result, err := newOutcome(ctx, rhs.Dim(1), lo, hi)
		if err != nil {
			return err
		}
		zero, zeros := tensor.Value[int32](ctx.Input(3)), tensor.Values[int32](ctx.Input(5))
		z, width := tensor.Values[tensor.QInt32Elem](out), rhs.Dim(1)
		dot(tensor.Values[tensor.QInt8Elem](lhs), tensor.Values[tensor.QInt8Elem](rhs), lhs.Dim(0), width, func(int) int32 { return zero }, zeros,
			func(row, column int, sum int32) { z[row*width+column] = result.of(sum, column) })
		return nil
	}), nil
}

// dot multiplies matrices after subtracting the zero point of each row of x and of each column of
// y.
func dot(x, y []tensor.QInt8Elem, rows, columns int, zero func(row int) int32, zeros []int32, store func(row, column int, sum int32)) {
	if columns == 0 {
		return // there is any number of rows
	}
	depth := len(y) / columns
	parallel.For(rows, max(1, 10_000/max(1, depth*columns)), func(lo, hi int) {
		sums := membudget.Make[int32](columns)
		for row := lo; row < hi; row++ {
			clear(sums)
			for d := range depth {
				a := int32(x[row*depth+d]) - zero(row)
				for j, b := range y[d*columns : (d+1)*columns] {
					sums[j] += a * (int32(b) - at(zeros, j))
				}
			}
			for j, sum := range sums {
				store(row, j, sum)
			}
		}
	})
}

// dynamic quantizes numbers to the whole range of int8, based on their minimum and maximum.
func dynamic(z []tensor.QInt8Elem, x []float32) (scale float32, zero int32) {
	const first, last = math.MinInt8, math.MaxInt8
	var least, most float32
	for _, v := range x {
		least, most = min(least, v), max(most, v)
	}
	lo, hi := float64(least), float64(most)
	scale = float32((hi - lo) / (last - first))
	inverse := float32(0)
	if hi != lo {
		inverse = float32((last - first) / (hi - lo))
	}
	if scale == 0 || math.IsInf(float64(inverse), 0) {
		clear(z)
		return 1, 0
	}
	// choose the zero point with the smaller error, derived from either end of the range
	fromLeast, fromMost := first-lo/float64(scale), last-hi/float64(scale)
	exact := fromMost
	if -first+math.Abs(lo/float64(scale)) < last+math.Abs(hi/float64(scale)) {
		exact = fromLeast
	}
	zero = int32(math.Round(min(max(exact, first), last)))
	for i, v := range x {
		z[i] = tensor.QInt8Elem(affine(v, inverse, zero, first, last))
	}
	return scale, zero
}

func newUniformDotHybrid(c *kernel.Construction) (kernel.Kernel, error) {
	if err := checkDotAxis(c, "rhs"); err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		lhs, rhs := ctx.Input(0), ctx.Input(1)
		shape, err := dotShapeOf(lhs.Shape(), rhs.Shape())
		if err != nil {
			return err
		}
		if _, err := channelsOf(rhs.Shape(), ctx.Input(2).Shape(), ctx.Input(3).Shape(), axisOf(ctx.Input(2), 1)); err != nil {
			return err
		}
		if err := checkPositive(ctx, map[int]string{2: "rhs"}); err != nil {
			return err
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		rows, depth, width := lhs.Dim(0), lhs.Dim(1), rhs.Dim(1)
		x, z := tensor.Values[float32](lhs), tensor.Values[float32](out)
		whole, rowScales, rowZeros := membudget.Make[tensor.QInt8Elem](len(x)), membudget.Make[float32](rows), membudget.Make[int32](rows)
		for i := range rows {
			rowScales[i], rowZeros[i] = dynamic(whole[i*depth:(i+1)*depth], x[i*depth:(i+1)*depth])
		}
		scales, zeros := tensor.Values[float32](ctx.Input(2)), tensor.Values[int32](ctx.Input(3))
		dot(whole, tensor.Values[tensor.QInt8Elem](rhs), rows, width, func(row int) int32 { return rowZeros[row] }, zeros,
			func(row, column int, sum int32) {
				z[row*width+column] = float32(float32(sum)*rowScales[row]) * at(scales, column)
			})
		return nil
	}), nil
}
