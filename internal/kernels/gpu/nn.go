package gpu

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/linalg"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, op := range []string{"BiasAdd", "BiasAddV1"} {
		registerNew(op, newBias, withKernel("T", "bias"))
	}
	registerNew("BiasAddGrad", newBiasGrad, withKernel("T", "sum"))
	registerNew("Softmax", typed(func(s string) compute { return softmax(s, 0) }), withKernel("T", "softmax"))
	registerNew("LogSoftmax", typed(func(s string) compute { return softmax(s, 1) }), withKernel("T", "softmax"))
	registerNew("SoftmaxCrossEntropyWithLogits", typed(crossEntropy), withKernel("T", "xent"))
	registerNew("SparseSoftmaxCrossEntropyWithLogits", func(c *kernel.Construction) (compute, error) {
		return sparseCrossEntropy("sparsexent_" + source.TypeName(c.Attrs.Type("T")) + "_" + source.TypeName(c.Attrs.Type("Tlabels"))), nil
	}, withKernel("T", "xent"), kernel.OfType("Tlabels", tensor.Int32, tensor.Int64))
}

// channelsOf returns the position of the channels in tensors of a rank.
func channelsOf(c *kernel.Construction) func(rank int) int {
	first := false
	if _, ok := c.Attrs["data_format"]; ok {
		first = c.Attrs.String("data_format") == "NCHW"
	}
	return func(rank int) int {
		if first {
			return 1
		}
		return rank - 1
	}
}

func newBias(c *kernel.Construction) (compute, error) {
	name, channels := "bias_"+source.TypeName(c.Attrs.Type("T")), channelsOf(c)
	return func(ctx *kernel.Context, d *device.Device) error {
		x, bias := *ctx.Input(0), *ctx.Input(1)
		if x.Rank() < 2 || bias.Rank() != 1 || bias.Dim(0) != x.Dim(channels(x.Rank())) || x.NumElements() >= 1<<32 {
			return errDetour
		}
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		n := int64(x.NumElements())
		_, c, inner := sides(x.Shape(), channels(x.Rank()))
		return launch(d, name, n, out, &x, &bias, n, uint32(c), uint32(inner))
	}, nil
}

func newBiasGrad(c *kernel.Construction) (compute, error) {
	channels := channelsOf(c)
	return func(ctx *kernel.Context, d *device.Device) error {
		g := *ctx.Input(0)
		if g.Rank() < 2 || g.NumElements() == 0 {
			return errDetour
		}
		at := channels(g.Rank())
		out, err := ctx.Allocate(0, tensor.Shape{g.Shape()[at]})
		if err != nil {
			return err
		}
		r := reduced{out: out.Shape(), kept: []int{at}, n: int64(g.NumElements()) / g.Shape()[at]}
		for i := range g.Rank() {
			if i != at {
				r.across = append(r.across, i)
			}
		}
		moved, a, b, err := r.layout(ctx, &g)
		if err != nil {
			return err
		}
		defer moved.Release()
		return linalg.Reduce(d, "sum", out, &moved, a, r.n, b, -1)
	}, nil
}

func softmax(suffix string, logs int32) compute {
	return func(ctx *kernel.Context, d *device.Device) error {
		x := *ctx.Input(0)
		if x.Rank() < 1 {
			return errDetour
		}
		out, err := ctx.Forward(0, 0)
		if err != nil || x.NumElements() == 0 {
			return err
		}
		cols := int64(x.Dim(x.Rank() - 1))
		n := int64(x.NumElements()) / cols
		return rows(d, "softmax_"+suffix, n, out, &x, n, cols, logs)
	}
}

func crossEntropy(suffix string) compute {
	return func(ctx *kernel.Context, d *device.Device) error {
		logits, labels := ctx.Input(0), ctx.Input(1)
		// Inputs of one row or one column are broadcast.
		if logits.Rank() != 2 || labels.Rank() != 2 {
			return errDetour
		}
		shape := tensor.Shape{1, 1}
		for i := range shape {
			a, b := logits.Shape()[i], labels.Shape()[i]
			if a != b && a != 1 && b != 1 || a == 0 || b == 0 {
				return errDetour
			}
			shape[i] = max(a, b)
		}
		loss, err := ctx.Allocate(0, shape[:1])
		if err != nil {
			return err
		}
		grad, err := ctx.Allocate(1, shape)
		if err != nil {
			return err
		}
		strides := func(t *tensor.Tensor) (row, col int64) {
			if t.Shape()[1] > 1 {
				col = 1
			}
			if t.Shape()[0] > 1 {
				row = t.Shape()[1]
			}
			return row, col
		}
		lr, lc := strides(logits)
		pr, pc := strides(labels)
		return rows(d, "xent_"+suffix, shape[0], loss, grad, logits, labels, shape[0], shape[1], lr, lc, pr, pc)
	}
}

func sparseCrossEntropy(name string) compute {
	return func(ctx *kernel.Context, d *device.Device) error {
		logits, labels := ctx.Input(0), ctx.Input(1)
		if logits.Rank() != 2 || labels.Rank() != 1 || labels.Dim(0) != logits.Dim(0) || logits.NumElements() == 0 {
			return errDetour
		}
		loss, err := ctx.Allocate(0, logits.Shape()[:1])
		if err != nil {
			return err
		}
		grad, err := ctx.AllocateLike(1, logits)
		if err != nil {
			return err
		}
		n, cols := logits.Shape()[0], logits.Shape()[1]
		return rows(d, name, n, loss, grad, logits, labels, n, cols)
	}
}
