package nn

import (
	"context"
	"math"
	"sync"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{
		"depth_radius: int = 5", "bias: float = 1.0", "alpha: float = 1.0", "beta: float = 0.5",
		"T: {float16, bfloat16, float32} = float32",
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "LRN",
			Doc:  "Computes local response normalization (Krizhevsky et al., 2012): divides each value by (bias + alpha * sqr_sum) ** beta, where sqr_sum is the sum of squares over the channels within depth_radius.",
			In:   []string{"input: T"}, Out: []string{"output: T"}, Attrs: attrs, Shape: sameAsInput(0, 4),
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float16: newLRN((*lrn).viaWide), tensor.Float32: newLRN((*lrn).forward)}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "LRNGrad", Doc: "Computes the gradient of LRN with respect to its input.",
			In: []string{"input_grads: T", "input_image: T", "output_image: T"}, Out: []string{"output: T"}, Attrs: attrs,
			Shape: func(c *opdef.ShapeContext) error {
				s, err := opdef.WithRank(c.In[0], 4)
				for i := 1; i < 3 && err == nil; i++ {
					s, err = opdef.MergeShapes(s, c.In[i])
				}
				c.SetAll(s)
				return err
			},
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float16: newLRNGrad((*lrn).viaWideGradient), tensor.Float32: newLRNGrad((*lrn).gradient)}),
	})
}

// lrn holds the attributes of a local response normalization, which works on rows of channels.
type lrn struct {
	radius            int
	bias, alpha, beta float32
	scratch           sync.Pool // *lrnRows
}

func lrnOf(attrs opdef.Attrs) (*lrn, error) {
	radius := attrs.Int("depth_radius")
	if radius < 0 || radius > math.MaxInt32 {
		return nil, status.InvalidArgumentf("depth_radius = %d larger than int max", radius)
	}
	return &lrn{radius: radius, bias: attrs.Float("bias"), alpha: attrs.Float("alpha"), beta: attrs.Float("beta")}, nil
}

func newLRN[T tensor.Elem](compute func(l *lrn, step context.Context, z, x []T, channels int)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		l, err := lrnOf(c.Attrs)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			if in.Rank() != 4 {
				return status.InvalidArgumentf("in must be 4-dimensional")
			}
			out, err := ctx.AllocateLike(0, in)
			if err != nil || out.NumElements() == 0 {
				return err
			}
			if d := device.Of(out); d != nil {
				n := int64(out.NumElements())
				return d.LaunchLine("lrn_"+source.TypeName(out.DType()), n, append([]any{out, in}, l.args(n, in.Dim(3))...)...)
			}
			z, x, n := tensor.Values[T](out), tensor.Values[T](in), in.Dim(3)
			step := ctx.Context()
			parallel.For(len(z)/n, l.rowsPerBlock(n), func(lo, hi int) { compute(l, step, z[lo*n:hi*n], x[lo*n:hi*n], n) })
			return step.Err()
		}), nil
	}
}

// lrnCost is the time per element in nanoseconds.
const lrnCost = 1

func (l *lrn) rowsPerBlock(n int) int { return max(1, elementwise.Grain(lrnCost)/n) }

func newLRNGrad[T tensor.Elem](compute func(l *lrn, step context.Context, z, g, x, y []T, channels int)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		l, err := lrnOf(c.Attrs)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			grad, image, result := ctx.Input(0), ctx.Input(1), ctx.Input(2)
			if grad.Rank() != 4 || image.Rank() != 4 {
				return status.InvalidArgumentf("inputs must be 4-dimensional")
			}
			if !image.Shape().Equal(grad.Shape()) || !result.Shape().Equal(grad.Shape()) {
				return status.InvalidArgumentf("input_grads, input_image, and out_image should have the same shape")
			}
			out, err := ctx.AllocateLike(0, grad)
			if err != nil || out.NumElements() == 0 {
				return err
			}
			if d := device.Of(out); d != nil {
				n := int64(out.NumElements())
				norms, err := d.Alloc(tensor.Float32, image.Shape())
				if err != nil {
					return err
				}
				defer norms.Release()
				name, args := "lrn_"+source.TypeName(out.DType()), l.args(n, grad.Dim(3))
				if err := d.LaunchLine(name+"_norms", n, append([]any{&norms, image}, args...)...); err != nil {
					return err
				}
				return d.LaunchLine(name+"_grad", n, append([]any{out, grad, image, result, &norms}, args...)...)
			}
			z, g, x, y := tensor.Values[T](out), tensor.Values[T](grad), tensor.Values[T](image), tensor.Values[T](result)
			n, step := grad.Dim(3), ctx.Context()
			parallel.For(len(z)/n, l.rowsPerBlock(n), func(lo, hi int) {
				lo, hi = lo*n, hi*n
				compute(l, step, z[lo:hi], g[lo:hi], x[lo:hi], y[lo:hi], n)
			})
			return step.Err()
		}), nil
	}
}

func (l *lrn) viaWide(step context.Context, z, x []tensor.Float16Elem, n int) {
	wide := membudget.Make[float32](2 * len(x))
	from, to := wide[:len(x)], wide[len(x):]
	elementwise.Widen(from, x)
	if l.ordinary() {
		l.forward(step, to, from, n)
	} else {
		l.plain(step, to, from, n, throughHalf)
	}
	elementwise.Narrow(z, to)
}

func (l *lrn) viaWideGradient(step context.Context, z, g, x, y []tensor.Float16Elem, n int) {
	k := len(z)
	wide := membudget.Make[float32](4 * k)
	elementwise.Widen(wide[k:2*k], g)
	elementwise.Widen(wide[2*k:3*k], x)
	elementwise.Widen(wide[3*k:], y)
	if l.ordinary() {
		l.gradient(step, wide[:k], wide[k:2*k], wide[2*k:3*k], wide[3*k:], n)
	} else {
		l.plainGradient(step, wide[:k], wide[k:2*k], wide[2*k:3*k], wide[3*k:], n, throughHalf)
	}
	elementwise.Narrow(z, wide[:k])
}

// lrnBlock is the number of elements that are normalized at a time, chosen such that intermediate
// results stay in the cache.
const lrnBlock = 2048

// lrnRows is the scratch memory for some rows of n channels. norm, factor and tmp have no gaps. The
// rows of apart begin stride elements apart. Zeros separate them and surround the first and the
// last one, so that no window covers elements of two rows.
type lrnRows struct {
	n, radius, stride        int
	norm, factor, tmp, apart []float32
}

// borrowRows returns scratch memory from the pool. The caller returns it to the pool.
func (l *lrn) borrowRows(channels int) *lrnRows {
	if r, ok := l.scratch.Get().(*lrnRows); ok && r.n == channels {
		return r
	}
	r := &lrnRows{n: channels, radius: min(l.radius, channels-1)}
	r.stride = channels + r.radius
	block := max(1, lrnBlock/channels)
	vals := membudget.Make[float32](3*block*channels + block*r.stride + r.radius)
	for _, s := range []*[]float32{&r.norm, &r.factor, &r.tmp} {
		*s, vals = vals[:block*channels], vals[block*channels:]
	}
	r.apart = vals
	return r
}

// sums sets z to bias + scale times the sums of a*b over the elements within the radius. A row of
// many channels takes the square of their number, so it is computed in pieces until the step ends.
func (r *lrnRows) sums(step context.Context, z, a, b []float32, scale, bias float32) {
	const least, most = 64, 1 << 24 // channels of a piece, and elements that it adds
	simd.MulRows(r.apart[r.radius:], r.stride, a, b, r.n)
	window := 2*r.radius + 1
	piece := max(least, most/window)
	if r.n <= piece {
		simd.WindowSums(z, r.n, r.apart, r.stride, window, scale, bias)
		return
	}
	for row := range len(z) / r.n {
		for lo := 0; lo < r.n && step.Err() == nil; lo += piece {
			n := min(piece, r.n-lo)
			simd.WindowSums(z[row*r.n+lo:][:n], n, r.apart[row*r.stride+lo:], r.stride, window, scale, bias)
		}
	}
}

// forward sets z, which may be x, to the normalization of rows of n channels.
func (l *lrn) forward(step context.Context, z, x []float32, n int) {
	r := l.borrowRows(n)
	defer l.scratch.Put(r)
	for lo := 0; lo < len(x); lo += len(r.norm) {
		x := x[lo:min(lo+len(r.norm), len(x))]
		norm, factor := r.norm[:len(x)], r.factor[:len(x)]
		r.sums(step, norm, x, x, l.alpha, l.bias)
		l.power(factor, norm, r.tmp)
		simd.Mul(z[lo:lo+len(x)], x, factor)
	}
}

// power sets z to x^-beta.
func (l *lrn) power(z, x, tmp []float32) {
	switch l.beta {
	case 1:
		simd.Reciprocal(z, x)
	case 0.5:
		simd.Rsqrt(z, x)
	case 0.75:
		tmp = tmp[:len(z)]
		simd.Rsqrt(z, x)
		simd.Sqrt(tmp, z)
		simd.Mul(z, z, tmp)
	default:
		simd.Log(z, x)
		simd.MulScalar(z, z, -l.beta)
		simd.Exp(z, z)
	}
}

// gradient sets z to the gradient with respect to x, where y is the output and g its gradient:
// g*norm^-beta - 2*alpha*beta*x * the sum of g*y/norm within the radius.
func (l *lrn) gradient(step context.Context, z, g, x, y []float32, n int) {
	r := l.borrowRows(n)
	defer l.scratch.Put(r)
	for lo := 0; lo < len(x); lo += len(r.norm) {
		hi := min(lo+len(r.norm), len(x))
		z, g, x, y := z[lo:hi], g[lo:hi], x[lo:hi], y[lo:hi]
		norm, factor, tmp := r.norm[:len(x)], r.factor[:len(x)], r.tmp[:len(x)]
		if !l.ordinary() {
			l.plainGradient(step, z, g, x, y, n, func(x float32) float32 { return x })
			continue
		}
		r.sums(step, norm, x, x, l.alpha, l.bias)
		l.power(factor, norm, tmp)
		simd.Mul(factor, factor, g)
		simd.Div(tmp, g, norm)
		r.sums(step, norm, tmp, y, -2*l.alpha*l.beta, 0)
		simd.Mul(norm, norm, x)
		simd.Add(z, norm, factor)
		if !allFinite(z) { // plainGradient skips zero gradients, so that 0*Inf yields no NaN
			l.plainGradient(step, z, g, x, y, n, func(x float32) float32 { return x })
		}
	}
}

func allFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// ordinary reports whether all norms are sums of positive terms.
func (l *lrn) ordinary() bool { return l.bias > 0 && l.alpha >= 0 }

// throughHalf rounds x to the nearest float16.
func throughHalf(x float32) float32 { return tensor.Float16Of(x).Float32() }

// plain is like forward, with a rounding after every operation. It ends early when the step ends.
func (l *lrn) plain(step context.Context, z, x []float32, n int, round func(float32) float32) {
	alpha, beta, bias := round(l.alpha), round(l.beta), round(l.bias)
	p := stepctx.Progress{Context: step}
	for lo := 0; lo < len(x); lo += n {
		z, x := z[lo:lo+n], x[lo:lo+n]
		for j := range x {
			if p.Pass(min(n, 2*l.radius+1)) != nil {
				return
			}
			var norm float32
			for _, v := range x[max(0, j-l.radius):min(n, j+l.radius+1)] {
				norm = round(norm + round(v*v))
			}
			norm = round(round(norm*alpha) + bias)
			switch beta {
			case 1:
				norm = round(1 / norm)
			case 0.5:
				norm = round(float32(1 / math.Sqrt(float64(norm))))
			default:
				norm = round(float32(math.Log(float64(norm))))
				norm = round(float32(math.Exp(float64(round(norm * -beta)))))
			}
			z[j] = round(x[j] * norm)
		}
	}
}

// plainGradient is like gradient, element by element and with a rounding after every operation. The
// order of operations matters when norms are negative or near 0: integral powers of negative
// numbers exist, and terms cancel almost completely. It ends early when the step ends.
func (l *lrn) plainGradient(step context.Context, z, g, x, y []float32, n int, round func(float32) float32) {
	p := stepctx.Progress{Context: step}
	alpha, beta, bias := round(l.alpha), round(l.beta), round(l.bias)
	factor := round(round(-2*alpha) * beta)
	clear(z)
	for lo := 0; lo < len(x); lo += n {
		z, g, x, y := z[lo:lo+n], g[lo:lo+n], x[lo:lo+n], y[lo:lo+n]
		for j, gj := range g {
			if gj == 0 {
				continue
			}
			first, last := max(0, j-l.radius), min(n, j+l.radius+1)
			if p.Pass(2*(last-first)) != nil {
				return
			}
			var norm float32
			for _, v := range x[first:last] {
				norm = round(norm + round(v*v))
			}
			norm = round(round(alpha*norm) + bias)
			power := round(float32(math.Pow(float64(norm), float64(-beta))))
			yj := round(factor * y[j])
			for k := first; k < last; k++ {
				d := round(round(x[k]*yj) / norm)
				if k == j {
					d = round(d + power)
				}
				z[k] = round(z[k] + round(d*gj))
			}
		}
	}
}
