package nn

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A master of TensorFlow with oneDNN replaces groups of nodes by these operations.
func init() {
	for _, op := range []struct {
		name, doc, types string
		loop             func(z, x []float32)
	}{
		{"_MklSwish", "Computes features * sigmoid(features). Created by graph optimizers.", "{float32, bfloat16, float16} = float32", swish[float32]},
		{"_MklFusedMish", "Computes features * tanh(softplus(features)). Created by graph optimizers.", "{bfloat16, float32, float16}", mish[float32]},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: op.doc, In: []string{"features: T"}, Out: []string{"activations: T"},
				Attrs: []string{"T: " + op.types}, Shape: opdef.SameShape,
			},
			Kernels: kernel.ByType("T", kernel.Table{
				tensor.Float16:  elementwise.Unary(10, elementwise.Via32[tensor.Float16Elem](op.loop)),
				tensor.BFloat16: elementwise.Unary(10, elementwise.Via32[tensor.BFloat16Elem](op.loop)),
				tensor.Float32:  elementwise.Unary(5, op.loop),
			}),
		})
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "_MklLayerNorm", Doc: "Normalizes over the last dimension, then scales and shifts. Created by graph optimizers.",
			In: []string{"x: T", "scale: T", "offset: T"}, Out: []string{"y: T"},
			Attrs: []string{"T: {float32, bfloat16, float16}", "epsilon: float = 0.0010000000474974513"}, Shape: opdef.SameShape,
		},
		Kernels: norms(func(c *kernel.Construction, rank int) ([]int64, error) { return []int64{int64(rank) - 1}, nil }),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "_MklFusedInstanceNorm",
			Doc:  "Normalizes over reduction_axes, then scales, shifts and optionally applies an activation function. Created by graph optimizers.",
			In:   []string{"x: T", "gamma: T", "beta: T"}, Out: []string{"y: T"},
			Attrs: []string{
				"T: {float32, bfloat16, float16}", "fused_ops: list(string) = []", "epsilon: float = 9.999999747378752e-05",
				"leakyrelu_alpha: float = 0.20000000298023224", "reduction_axes: list(int)",
			},
			Shape: opdef.SameShape,
		},
		Kernels: norms(instanceAxes),
	})
}

func swish[T simd.Float](z, x []T) {
	tmp := membudget.Make[T](len(x))
	simd.Sigmoid(tmp, x)
	simd.Mul(z, x, tmp)
}

// mish uses tanh(log(1+e)) = (e^2+2e) / (e^2+2e+2) for e = exp(x).
func mish[T simd.Float](z, x []T) {
	for i, v := range x {
		e := math.Exp(min(float64(v), 20)) // the quotient is 1 beyond
		n := e * (e + 2)
		z[i] = T(float64(v) * (n / (n + 2)))
	}
}

// instanceAxes returns the dimensions that are normalized together: all but the first one and that
// of the channels, which is the second or the last one.
func instanceAxes(c *kernel.Construction, rank int) ([]int64, error) {
	axes := slices.Clone(c.Attrs.Ints("reduction_axes"))
	for i, a := range axes {
		if a < 0 {
			axes[i] += int64(rank)
		}
	}
	slices.Sort(axes)
	for _, first := range []int64{1, 2} { // channels last, channels second
		//sizedmake:ok a rank
		want := make([]int64, 0, rank)
		for a := first; a < int64(rank)+first-2; a++ {
			want = append(want, a)
		}
		if slices.Equal(axes, want) {
			return axes, nil
		}
	}
	return nil, status.InvalidArgumentf("reduction_axes must be all dimensions but the first one and that of the channels, got %v of %d", axes, rank)
}

// norms returns the kernels of a normalization. axes returns the dimensions that are normalized
// together, which are neighbors. The scale belongs to the dimension before or after them, or to
// them if they are the last ones of a layer.
func norms(axes func(c *kernel.Construction, rank int) ([]int64, error)) []kernel.Impl {
	return kernel.ByType("T", kernel.Table{
		tensor.Float16:  newNorm(axes, shortBias[tensor.Float16Elem]()),
		tensor.BFloat16: newNorm(axes, shortBias[tensor.BFloat16Elem]()),
		tensor.Float32:  newNorm(axes, floatBias[float32]()),
	})
}

func newNorm[E tensor.Elem](axes func(*kernel.Construction, int) ([]int64, error), e biasEngine[float32, E]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		epsilon := float64(c.Attrs.Float("epsilon"))
		layer := c.Op.Name == "_MklLayerNorm"
		activate := func([]float32, []float32) {}
		if !layer {
			fused := c.Attrs.Strings("fused_ops")
			if len(fused) > 1 || len(fused) == 1 && !slices.Contains(activations, fused[0]) {
				return nil, status.Unimplementedf("Fusion is not implemented: %v", fused)
			}
			if len(fused) == 1 {
				activate = activation[float32](fused[0], float64(c.Attrs.Float("leakyrelu_alpha")))
			}
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in, scale, offset := ctx.Input(0), ctx.Input(1), ctx.Input(2)
			if in.Rank() == 0 || !layer && in.Rank() < 3 {
				return status.InvalidArgumentf("input must have more dimensions, got shape %v", in.Shape())
			}
			over, err := axes(c, in.Rank())
			if err != nil {
				return err
			}
			lo, hi := int(over[0]), int(over[len(over)-1])+1
			g := groups{outer: int(in.Shape()[:lo].NumElements()), size: int(in.Shape()[lo:hi].NumElements()), inner: int(in.Shape()[hi:].NumElements())}
			g.channels = g.inner
			switch {
			case layer:
				g.channels, g.perElement = g.size, true
			case hi == in.Rank():
				g.channels = in.Dim(lo - 1)
			}
			if scale.NumElements() != g.channels || offset.NumElements() != g.channels {
				return status.InvalidArgumentf("scale and offset must have %d elements, got %v and %v", g.channels, scale.Shape(), offset.Shape())
			}
			out, err := ctx.AllocateLike(0, in)
			if err != nil || out.NumElements() == 0 {
				return err
			}
			z, done := e.output(tensor.Values[E](out))
			g.normalize(z, e.wide(tensor.Values[E](in)), e.wide(tensor.Values[E](scale)), e.wide(tensor.Values[E](offset)), epsilon)
			activate(z, z)
			done()
			return nil
		}), nil
	}
}

// groups describes which elements of [outer, size, inner] are normalized together: those of one
// outer and one inner index.
type groups struct {
	outer, size, inner int
	channels           int
	perElement         bool // each element of a group has its own scale
}

func (g *groups) normalize(z, x, scale, offset []float32, epsilon float64) {
	for o := range g.outer {
		for i := range g.inner {
			first := o*g.size*g.inner + i
			var sum, squares float64
			for k := range g.size {
				sum += float64(x[first+k*g.inner])
			}
			mean := sum / float64(g.size)
			for k := range g.size {
				d := float64(x[first+k*g.inner]) - mean
				squares += d * d
			}
			factor := 1 / math.Sqrt(squares/float64(g.size)+epsilon)
			for k := range g.size {
				c := i
				switch {
				case g.perElement:
					c = k
				case g.inner == 1:
					c = o % g.channels
				}
				at := first + k*g.inner
				z[at] = float32((float64(x[at])-mean)*factor*float64(scale[c]) + float64(offset[c]))
			}
		}
	}
}
