package quantize

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// uniformInputs returns the inputs of operations on two uniformly quantized tensors of type T.
func uniformInputs(t string) []string {
	return []string{
		"lhs: " + t, "rhs: " + t, "lhs_scales: float32", "lhs_zero_points: int32", "rhs_scales: float32", "rhs_zero_points: int32",
		"output_scales: float32", "output_zero_points: int32",
	}
}

// uniformAttrs returns the attributes that describe the quantization of the named tensors.
func uniformAttrs(names ...string) []string {
	var out []string
	for _, name := range names {
		//sizedmake:ok names of the definition
		out = append(out, name+"_quantization_axis: int = -1", name+"_quantization_min_val: int", name+"_quantization_max_val: int")
	}
	return out
}

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformQuantizedAdd", Doc: "Performs quantized add of lhs and rhs, with broadcasting.",
			In: uniformInputs("T"), Out: []string{"output: T"}, Attrs: append(uniformAttrs("lhs", "rhs", "output"), "T: {qint32}"),
			Shape: opdef.BroadcastShape,
		},
		Kernels: kernel.ForTypes("T", newUniformAdd, tensor.QInt32),
	})
}

// uniformAdd is the kernel of UniformQuantizedAdd.
type uniformAdd struct {
	axes   [3]int // of lhs, rhs and output
	lo, hi int32
}

func newUniformAdd(c *kernel.Construction) (kernel.Kernel, error) {
	k := &uniformAdd{
		lo: int32(c.Attrs.Int("output_quantization_min_val")), hi: int32(c.Attrs.Int("output_quantization_max_val")),
	}
	for i, name := range []string{"lhs", "rhs", "output"} {
		if k.axes[i] = c.Attrs.Int(name + "_quantization_axis"); k.axes[i] < -1 {
			return nil, status.InvalidArgumentf("lhs, rhs and output quantization_axis must be -1 or within [0, dims)")
		}
	}
	return k, nil
}

// Compute implements [kernel.Kernel].
func (k *uniformAdd) Compute(ctx *kernel.Context) error {
	shape, parts, err := k.check(ctx)
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	scales, zeros := tensor.Values[float32](ctx.Input(6)), tensor.Values[int32](ctx.Input(7))
	var terms [2]term
	for i := range terms {
		if terms[i], err = k.term(ctx, i, shape, parts, scales); err != nil {
			return err
		}
	}
	z, left, right := tensor.Values[tensor.QInt32Elem](out), terms[0].at, terms[1].at
	parallel.For(len(z), 2000, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			zero := at(zeros, i/parts[2].inner%parts[2].n)
			z[i] = tensor.QInt32Elem(clampInt(left(i)+right(i)+zero, k.lo, k.hi))
		}
	})
	return nil
}

// check returns the shape of the output, and the channels of both inputs and the output.
func (k *uniformAdd) check(ctx *kernel.Context) (shape tensor.Shape, parts [3]channels, err error) {
	lhs, rhs := ctx.Input(0).Shape(), ctx.Input(1).Shape()
	for i, s := range []tensor.Shape{lhs, rhs} {
		if parts[i], err = channelsOf(s, ctx.Input(2+2*i).Shape(), ctx.Input(3+2*i).Shape(), k.axes[i]); err != nil {
			return nil, parts, err
		}
	}
	if shape, err = elementwise.Broadcast(lhs, rhs); err != nil {
		return nil, parts, status.InvalidArgumentf("Cannot Add tensors of shapes: %v%v", lhs, rhs)
	}
	if parts[2], err = channelsOf(shape, ctx.Input(6).Shape(), ctx.Input(7).Shape(), k.axes[2]); err != nil {
		return nil, parts, err
	}
	for i, s := range []tensor.Shape{lhs, rhs} {
		if k.axes[i] >= 0 && k.axes[2] >= 0 && len(s)-k.axes[i] != len(shape)-k.axes[2] {
			return nil, parts, status.InvalidArgumentf("If %s and output is both per-axis quantized, the quantization axis must match.",
				[]string{"lhs", "rhs"}[i])
		}
	}
	for _, i := range []int{2, 4, 6} {
		if !allPositive(ctx.Input(i)) {
			return nil, parts, status.InvalidArgumentf("lhs/rhs/output scales elements must be all positive.")
		}
	}
	return shape, parts, nil
}

// term is one operand of a sum.
type term struct{ at func(i int) int32 } // operand of element i, in the output scale

func (k *uniformAdd) term(ctx *kernel.Context, side int, shape tensor.Shape, parts [3]channels, scales []float32) (term, error) {
	in := ctx.Input(side)
	x, own := tensor.Values[tensor.QInt32Elem](in), tensor.Values[float32](ctx.Input(2+2*side))
	zeros, mine, sum := tensor.Values[int32](ctx.Input(3+2*side)), parts[side], parts[2]
	// Index by the channel of the sum if it has several. The operand's own channel is 0 if it is
	// broadcast.
	n := mine.n
	if sum.n > 1 {
		n = sum.n
	}
	multipliers, err := newMultipliers(n, func(i int) float64 { return float64(at(own, i)) }, scales)
	if err != nil {
		return term{}, err
	}
	offsets := elementwise.Offsets(shape, in.Shape())
	return term{func(i int) int32 {
		channel := offsets[i] / mine.inner % mine.n
		m := channel
		if sum.n > 1 {
			m = i / sum.inner % sum.n
		}
		return multipliers[m].times(int32(x[offsets[i]]) - at(zeros, channel))
	}}, nil
}
