package array

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Reverse", Doc: "Reverses the dimensions for which dims is true.",
		In:  []string{"tensor: T", "dims: bool"},
		Out: []string{"output: T"},
		Attrs: []string{
			"T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, float16, float32, float64, complex64, complex128, string}",
		},
		Shape: reverseShape,
	}, reverse)
	kernel.RegisterFunc(opdef.Def{
		Name: "ReverseV2", Doc: "Reverses the dimensions in axis.",
		In:  []string{"tensor: T", "axis: Tidx"},
		Out: []string{"output: T"},
		Attrs: []string{
			"Tidx: {int32, int64} = int32",
			"T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, float16, float32, float64, complex64, complex128, string}",
		},
		Shape: reverseV2Shape,
	}, reverseV2)
	kernel.RegisterNew(opdef.Def{
		Name:  "ReverseSequence",
		Doc:   "Reverses the first seq_lengths[i] elements along seq_dim in slice i of batch_dim.",
		In:    []string{"input: T", "seq_lengths: Tlen"},
		Out:   []string{"output: T"},
		Attrs: []string{"seq_dim: int", "batch_dim: int = 0", "T: type", "Tlen: {int32, int64} = int64"},
		Shape: reverseSequenceShape,
	}, newReverseSequence)
}

func reverseShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	dims, err := opdef.WithRank(c.In[1], 1)
	if err != nil {
		return err
	}
	if n := dims.Dim(0); n >= 0 {
		if in, err = opdef.WithRank(in, int(n)); err != nil {
			return err
		}
	}
	if in.Rank() > 8 {
		return status.InvalidArgumentf("reverse does not work on tensors with more than 8 dimensions")
	}
	c.Out[0] = in
	return nil
}

func reverse(ctx *kernel.Context) error {
	in, dims := ctx.Input(0), ctx.Input(1)
	if in.Rank() > 0 && dims.Rank() != 1 {
		return status.InvalidArgumentf("'dims' must be 1-dimension, not %d", dims.Rank())
	}
	if in.Rank() > 0 && in.Rank() != dims.NumElements() {
		return status.InvalidArgumentf("'dims' must have the same number of values as 'input' has dimensions. "+
			"'input' has %d'dims' has %d values", in.Rank(), dims.NumElements())
	}
	return reverseAxes(ctx, tensor.Values[bool](dims))
}

// reverseAxes sets output 0 to the input with the marked axes reversed.
func reverseAxes(ctx *kernel.Context, reversed []bool) error {
	in := ctx.Input(0)
	if in.Rank() > 8 {
		return status.Unimplementedf("reverse is not implemented for tensors of rank > 8.")
	}
	v := strided.Of(in.Shape())
	same := true
	for i := range in.Shape() {
		if reversed[i] && in.Dim(i) > 1 {
			v.Reverse(i)
			same = false
		}
	}
	if same {
		return ctx.PassInput(0, 0)
	}
	return copyView(ctx, in, v, in.Shape())
}

func reverseV2Shape(c *opdef.ShapeContext) error {
	in := c.In[0]
	if _, err := opdef.WithRank(c.In[1], 1); err != nil {
		return err
	}
	if in.Rank() > 8 {
		return status.InvalidArgumentf("reverse does not work on tensors with more than 8 dimensions")
	}
	c.Out[0] = in
	if axes, known := shapefn.Ints(c, 1); known && in.RankKnown() {
		_, err := reversedAxes(axes, in.Rank())
		return err
	}
	return nil
}

func reversedAxes(axes []int64, rank int) ([]bool, error) {
	reversed := membudget.Make[bool](rank)
	for i, given := range axes {
		axis, ok := intarg.Axis(given, rank)
		if !ok {
			return nil, status.InvalidArgumentf("'axis'[%d] = %d is out of valid range [0, %d", i, given, rank-1)
		}
		if reversed[axis] {
			return nil, status.InvalidArgumentf("axis %d specified more than once.", axis)
		}
		reversed[axis] = true
	}
	return reversed, nil
}

func reverseV2(ctx *kernel.Context) error {
	in, axes := ctx.Input(0), ctx.Input(1)
	if in.Rank() == 0 || in.NumElements() == 0 { // TensorFlow does not check the axes here
		return ctx.PassInput(0, 0)
	}
	if axes.Rank() != 1 {
		return status.InvalidArgumentf("'dims' must be 1-dimension, not %d", axes.Rank())
	}
	reversed, err := reversedAxes(intarg.Values(axes), in.Rank())
	if err != nil {
		return err
	}
	return reverseAxes(ctx, reversed)
}

func reverseSequenceShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	lengths, err := opdef.WithRank(c.In[1], 1)
	if err != nil || !in.RankKnown() {
		return err
	}
	batch, seq := c.Attrs.Int("batch_dim"), c.Attrs.Int("seq_dim")
	switch {
	case batch >= in.Rank():
		return status.InvalidArgumentf("batch_dim must be < input rank: %d vs. %d", batch, in.Rank())
	case seq >= in.Rank():
		return status.InvalidArgumentf("seq_dim must be < input rank: %d vs. %d", seq, in.Rank())
	case batch < 0:
		return status.InvalidArgumentf("batch_dim must be >=0, got %d", batch)
	}
	n, err := opdef.MergeDims(in.Dim(batch), lengths.Dim(0))
	if err != nil {
		return err
	}
	c.Out[0] = shapefn.Replace(in, batch, n)
	return nil
}

func newReverseSequence(c *kernel.Construction) (kernel.Kernel, error) {
	batch, seq := c.Attrs.Int("batch_dim"), c.Attrs.Int("seq_dim")
	return kernel.Func(func(ctx *kernel.Context) error {
		in, lengths := ctx.Input(0), ctx.Input(1)
		if err := checkSequences(in, lengths, batch, seq); err != nil {
			return err
		}
		out, err := ctx.AllocateLike(0, in)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		if d := device.Of(out); d != nil {
			return reverseOnDevice(d, out, in, lengths, batch, seq)
		}
		lens := intarg.Values(lengths)
		whole := strided.Of(in.Shape())
		strided.Copy(out, whole, in, whole)
		p := stepctx.Progress{Context: ctx.Context(), Each: 256}
		each := out.NumElements() / (in.Dim(batch) * in.Dim(seq)) // in an element of a sequence
		for i, n := range lens {
			if n < 2 {
				continue
			}
			if err := p.Pass(int(n) * each); err != nil {
				return err
			}
			v := whole.Clone()
			v.Slice(batch, i, 1, 1)
			v.Slice(seq, 0, int(n), 1)
			turned := v.Clone()
			turned.Reverse(seq)
			strided.Copy(out, v, in, turned)
		}
		return nil
	}), nil
}

func checkSequences(in, lengths *tensor.Tensor, batch, seq int) error {
	if lengths.Rank() != 1 {
		return status.InvalidArgumentf("seq_lengths must be 1-dim, not %d", lengths.Rank())
	}
	switch {
	case batch == seq:
		return status.InvalidArgumentf("batch_dim == seq_dim == %d", seq)
	case seq >= in.Rank():
		return status.InvalidArgumentf("seq_dim must be < input rank ( %d vs. %d)", seq, in.Rank())
	case batch >= in.Rank():
		return status.InvalidArgumentf("batch_dim must be < input rank ( %d vs. %d)", batch, in.Rank())
	case batch < 0:
		return status.InvalidArgumentf("batch_dim must be >= 0, but got %d", batch)
	case seq < 0:
		return status.InvalidArgumentf("seq_dim must be >= 0, but got %d", seq)
	case lengths.NumElements() != in.Dim(batch):
		return status.InvalidArgumentf("Length of seq_lengths != input.dims(%d), (%d vs. %d)", batch, lengths.NumElements(), in.Dim(batch))
	}
	if lengths.OnDevice() { // the host has no lengths to check
		return nil
	}
	for i, n := range intarg.Values(lengths) {
		if n < 0 {
			return status.InvalidArgumentf("seq_lens(%d) < 0", i)
		}
		if n > int64(in.Dim(seq)) {
			return status.InvalidArgumentf("seq_lens(%d) > input.dims(%d)", i, seq)
		}
	}
	return nil
}

// reverseOnDevice queues ReverseSequence. A length beyond the dimension counts as the whole
// dimension, and a negative one as 0.
func reverseOnDevice(d *device.Device, out, in, lengths *tensor.Tensor, batch, seq int) error {
	n, v := int64(out.NumElements()), strided.Of(in.Shape())
	name := "reverseseq_" + source.SizeName(in.DType().Size()) + "_" + source.TypeName(lengths.DType())
	return d.LaunchLine(name, n, out, in, lengths, n, in.Shape()[seq], int64(v.Strides[seq]), in.Shape()[batch], int64(v.Strides[batch]))
}
