package array

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Pad", Doc: "Pads a tensor with zeros: paddings[i,0] before and paddings[i,1] after dimension i.",
		In:    []string{"input: T", "paddings: Tpaddings"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tpaddings: {int32, int64} = int32"},
		Shape: padShape,
	}, pad)
	kernel.RegisterFunc(opdef.Def{
		Name: "PadV2",
		Doc: "Pads a tensor with constant_values: paddings[i,0] before and paddings[i,1] after dimension " +
			"i.",
		In:    []string{"input: T", "paddings: Tpaddings", "constant_values: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tpaddings: {int32, int64} = int32"},
		Shape: padShape,
	}, pad)
}

func padShape(c *opdef.ShapeContext) error {
	in, paddings, err := padArguments(c)
	if err != nil {
		return err
	}
	given, known := shapefn.Ints(c, 1)
	if !known {
		if n := paddings.Dim(0); n >= 0 {
			c.Out[0] = tensor.UnknownDims(int(n))
		} else if in.RankKnown() {
			c.Out[0] = tensor.UnknownDims(in.Rank())
		}
		return nil
	}
	if in, err = opdef.WithRank(in, len(given)/2); err != nil {
		return err
	}
	dims := in.Dims()
	for i, d := range dims {
		before, after := given[2*i], given[2*i+1]
		if before < 0 || after < 0 {
			return status.InvalidArgumentf("Paddings must be non-negative")
		}
		dims[i] = shapefn.Add(d, before+after)
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

// padArguments checks the shapes of an input and its paddings against each other.
func padArguments(c *opdef.ShapeContext) (in, paddings shapefn.Shape, err error) {
	in = c.In[0]
	if paddings, err = opdef.WithRank(c.In[1], 2); err != nil {
		return in, paddings, err
	}
	if err = shapefn.CheckDim(paddings.Dim(1), 2); err != nil {
		return in, paddings, err
	}
	if n := paddings.Dim(0); n >= 0 {
		in, err = opdef.WithRank(in, int(n))
	}
	return in, paddings, err
}

// mostPadding is the largest padding or crop of one side of a dimension. The sum of two of them and
// of a dimension is an int64, so that it cannot be a small size.
const mostPadding = math.MaxInt64 / 4

// readPaddings reads the paddings from t. It returns them and the padded shape.
func readPaddings(t *tensor.Tensor, shape tensor.Shape) (paddings [][2]int, padded tensor.Shape, err error) {
	if t.Rank() != 2 || t.Dim(1) != 2 {
		return nil, nil, status.InvalidArgumentf("paddings must be a matrix with 2 columns: %v", t.Shape())
	}
	if t.Dim(0) != len(shape) {
		return nil, nil, status.InvalidArgumentf("The first dimension of paddings must be the rank of inputs%v %v", t.Shape(), shape)
	}
	given := intarg.Values(t)
	paddings, padded = membudget.Make[[2]int](len(shape)), make(tensor.Shape, len(shape))
	for i, d := range shape {
		before, after := given[2*i], given[2*i+1]
		if before < 0 || after < 0 {
			return nil, nil, status.InvalidArgumentf("Paddings must be non-negative: %d %d", before, after)
		}
		if before > mostPadding || after > mostPadding {
			return nil, nil, status.InvalidArgumentf("Paddings are too large: %d %d", before, after)
		}
		paddings[i] = [2]int{int(before), int(after)}
		padded[i] = before + d + after
	}
	return paddings, padded, nil
}

func pad(ctx *kernel.Context) error {
	in := ctx.Input(0)
	paddings, shape, err := readPaddings(ctx.Input(1), in.Shape())
	if err != nil {
		return err
	}
	if ctx.NumInputs() == 3 && ctx.Input(2).Rank() != 0 {
		return status.InvalidArgumentf("constant_values must be a scalar. Found: %v", ctx.Input(2).Shape())
	}
	if shape.Equal(in.Shape()) {
		return ctx.PassInput(0, 0)
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	switch {
	case ctx.NumInputs() == 3:
		splat(out, ctx.Input(2))
	case out.OnDevice():
		clearAll(out)
	default:
		clearAround(out.Bytes(), paddings, in.Shape())
	}
	strided.Copy(out, inside(shape, paddings, in.Shape()), in, strided.Of(in.Shape()))
	return nil
}

// clearAround zeroes the padding around the elements of a tensor of the given shape.
func clearAround(out []byte, paddings [][2]int, shape tensor.Shape) {
	for len(paddings) > 0 && paddings[len(paddings)-1] == [2]int{} { // unpadded dimensions
		paddings = paddings[:len(paddings)-1]
	}
	if len(paddings) == 0 || len(out) == 0 {
		return
	}
	before, n, after := paddings[0][0], int(shape[0]), paddings[0][1]
	step := len(out) / (before + n + after)
	bulk.Clear(out[:before*step])
	out = out[before*step:]
	bulk.Clear(out[n*step:])
	if len(paddings) == 1 {
		return
	}
	for i := range n {
		clearAround(out[i*step:(i+1)*step], paddings[1:], shape[1:])
	}
}

// inside returns the view of the original elements in a padded tensor.
func inside(padded tensor.Shape, paddings [][2]int, shape tensor.Shape) strided.View {
	v := strided.Of(padded)
	for i, p := range paddings {
		v.Slice(i, p[0], int(shape[i]), 1)
	}
	return v
}
