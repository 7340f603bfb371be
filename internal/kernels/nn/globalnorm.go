package nn

import (
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"T: numbertype", "variance_epsilon: float", "scale_after_normalization: bool"}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "BatchNormWithGlobalNormalization",
			Doc:  "Applies batch normalization with the mean m and the variance v, then adds beta. Multiplies the normalized tensor by gamma first if scale_after_normalization is true.",
			In:   []string{"t: T", "m: T", "v: T", "beta: T", "gamma: T"}, Out: []string{"result: T"},
			Attrs: attrs,
			Shape: func(c *opdef.ShapeContext) error { return globalNormShape(c, c.In[0], 5) },
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16: globalNorm(viaFloat32[tensor.Float16Elem]), tensor.Float32: globalNorm(itself[float32]), tensor.Float64: globalNorm(itself[float64]),
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "BatchNormWithGlobalNormalizationGrad", Doc: "Computes the gradients of BatchNormWithGlobalNormalization.",
			In: []string{"t: T", "m: T", "v: T", "gamma: T", "backprop: T"}, Out: []string{"dx: T", "dm: T", "dv: T", "db: T", "dg: T"},
			Attrs: attrs,
			Shape: func(c *opdef.ShapeContext) error {
				in, err := opdef.WithRank(c.In[0], 4)
				if err == nil {
					in, err = opdef.MergeShapes(in, c.In[4])
				}
				if err != nil {
					return err
				}
				return globalNormShape(c, in, 4)
			},
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16: globalNormGrad(viaFloat32[tensor.Float16Elem]), tensor.Float32: globalNormGrad(itself[float32]),
			tensor.Float64: globalNormGrad(itself[float64]),
		}),
	})
}

// globalNormShape checks the shapes of images in and of the vectors in inputs 1 to end.
func globalNormShape(c *opdef.ShapeContext, in tensor.PartialShape, end int) error {
	in, err := opdef.WithRank(in, 4)
	if err != nil {
		return err
	}
	channels, err := mergeVectors(c, in.Dim(3), 1, end)
	if err != nil {
		return err
	}
	c.SetAll(tensor.MakePartial(channels))
	c.Out[0] = withDim(in, 3, channels)
	return nil
}

// access returns the elements of a tensor in a type suitable for computing. store writes them back.
type access[T simd.Float] func(t *tensor.Tensor) (vals []T, store func())

func itself[T interface {
	simd.Float
	tensor.Elem
}](t *tensor.Tensor) ([]T, func()) {
	return tensor.Values[T](t), func() {}
}

func viaFloat32[H elementwise.Short](t *tensor.Tensor) ([]float32, func()) {
	h := tensor.Values[H](t)
	vals := widened(h)
	return vals, func() { elementwise.Narrow(h, vals) }
}

// checkGlobalNorm checks the ranks of the inputs: images have 4 dimensions, and vectors have one
// element per channel.
func checkGlobalNorm(ctx *kernel.Context, names ...string) error {
	channels := int64(-1)
	for i, name := range names {
		rank := 1
		if name == "input" || name == "out_backprop" {
			rank = 4
		}
		s := ctx.Input(i).Shape()
		if len(s) != rank {
			return status.InvalidArgumentf("%s must be %d-dimensional%v", name, rank, s)
		}
		if channels >= 0 && s[rank-1] != channels {
			return status.InvalidArgumentf("%s must have %d channels, got shape %v", name, channels, s)
		}
		channels = s[rank-1]
	}
	return nil
}

func globalNorm[T simd.Float](elements access[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		epsilon, scaled := T(c.Attrs.Float("variance_epsilon")), c.Attrs.Bool("scale_after_normalization")
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := checkGlobalNorm(ctx, "input", "mean", "var", "beta", "gamma"); err != nil {
				return err
			}
			out, err := ctx.AllocateLike(0, ctx.Input(0))
			if err != nil || out.NumElements() == 0 {
				return err
			}
			var in [5][]T
			for i := range in {
				in[i], _ = elements(ctx.Input(i))
			}
			l := layoutOf(out.Shape(), false)
			shift := values(l.channels, func(c int) T { return -in[1][c] })
			factor := values(l.channels, func(c int) T {
				if scaled {
					return inverseRoot(in[2][c]+epsilon) * in[4][c]
				}
				return inverseRoot(in[2][c] + epsilon)
			})
			z, store := elements(out)
			l.pieces(func(lo, hi, c int) {
				shift.add(z[lo:hi], in[0][lo:hi], c)
				factor.mul(z[lo:hi], z[lo:hi], c)
				perChannel[T](in[3]).add(z[lo:hi], z[lo:hi], c)
			})
			store()
			return nil
		}), nil
	}
}

func globalNormGrad[T simd.Float](elements access[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		epsilon, scaled := T(c.Attrs.Float("variance_epsilon")), c.Attrs.Bool("scale_after_normalization")
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := checkGlobalNorm(ctx, "input", "mean", "var", "gamma", "out_backprop"); err != nil {
				return err
			}
			if a, b := ctx.Input(0).Shape(), ctx.Input(4).Shape(); !a.Equal(b) {
				return status.InvalidArgumentf("out_backprop must have the shape of input, but they are %v and %v", b, a)
			}
			var in, out [5][]T
			for i := range in {
				in[i], _ = elements(ctx.Input(i))
			}
			l := layoutOf(ctx.Input(0).Shape(), false)
			for i := range out {
				t, err := ctx.AllocateLike(i, ctx.Input(min(i, 1)))
				if err != nil {
					return err
				}
				var store func()
				out[i], store = elements(t)
				defer store()
			}
			globalNormGradients(l, epsilon, scaled, in, out)
			return nil
		}), nil
	}
}

// globalNormGradients computes dx, dm, dv, db and dg into out. in holds x, mean, variance, gamma
// and dy.
func globalNormGradients[T simd.Float](l channelLayout, epsilon T, scaled bool, in, out [5][]T) {
	x, mean, variance, gamma, dy := in[0], in[1], in[2], in[3], in[4]
	shift := values(l.channels, func(c int) T { return -mean[c] })
	totals := floatSums[T]().byChannel(dy, l)
	products := sumsOf(l, func(tmp []T, lo, hi, c int) {
		shift.add(tmp, x[lo:hi], c)
		simd.Mul(tmp, tmp, dy[lo:hi])
	})
	factor := perChannel[T](membudget.Make[T](l.channels))
	for c := range factor {
		root, g, product := inverseRoot(variance[c]+epsilon), T(1), T(products[c])
		out[4][c] = 0
		if scaled {
			g, out[4][c] = gamma[c], product*root
		}
		factor[c] = root * g
		out[1][c], out[3][c] = -T(totals[c])*factor[c], T(totals[c])
		out[2][c] = product * root * -0.5 / (variance[c] + epsilon) * g
	}
	l.pieces(func(lo, hi, c int) { factor.mul(out[0][lo:hi], dy[lo:hi], c) })
}
