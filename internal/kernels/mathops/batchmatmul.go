package mathops

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	adjoints := []string{"adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false", "grad_y: bool = false"}
	batch := func(name, doc, types string, shape opdef.ShapeFn) {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: doc,
				In: []string{"x: T", "y: T"}, Out: []string{"output: T"},
				Attrs: append([]string{"T: " + types}, adjoints...), Shape: shape,
			},
			Kernels: byT(kernel.Table{
				tensor.Float32:    newFloatBatchMatMul[float32],
				tensor.Float64:    newFloatBatchMatMul[float64],
				tensor.Float16:    newBatchMatMul(halfProduct[tensor.Float16Elem]),
				tensor.BFloat16:   newBatchMatMul(bfloatProduct),
				tensor.Int16:      newBatchMatMul(anyProduct[int16]),
				tensor.Int32:      newBatchMatMul(anyProduct[int32]),
				tensor.Int64:      newBatchMatMul(anyProduct[int64]),
				tensor.Uint8:      newBatchMatMul(anyProduct[uint8]),
				tensor.Uint16:     newBatchMatMul(anyProduct[uint16]),
				tensor.Uint32:     newBatchMatMul(anyProduct[uint32]),
				tensor.Uint64:     newBatchMatMul(anyProduct[uint64]),
				tensor.Complex64:  newBatchMatMul(anyProduct[complex64]),
				tensor.Complex128: newBatchMatMul(anyProduct[complex128]),
			}),
		})
	}
	batch("BatchMatMul", "Multiplies the matrices in the last two dimensions of x and y. The other dimensions must be equal.",
		"{bfloat16, float16, float32, float64, int32, int64, complex64, complex128}", batchMatMulShape)
	batch("BatchMatMulV2", "Multiplies the matrices in the last two dimensions of x and y. The other dimensions are broadcast.",
		"{bfloat16, float16, float32, float64, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
		batchMatMulV2Shape)
}

// factors holds the shapes of two stacks of matrices to multiply: their batch dimensions and their
// matrix dimensions.
type factors struct {
	x, y       shapefn.Shape
	rows, cols int64
	kx, ky     int64 // inner dimension of x and of y
}

func batchFactors(c *opdef.ShapeContext) (f factors, err error) {
	if f.x, err = opdef.WithRankAtLeast(c.In[0], 2); err != nil {
		return f, err
	}
	if f.y, err = opdef.WithRankAtLeast(c.In[1], 2); err != nil {
		return f, err
	}
	f.rows, f.kx = f.x.Dim(-2), f.x.Dim(-1)
	if c.Attrs.Bool("adj_x") {
		f.rows, f.kx = f.kx, f.rows
	}
	f.ky, f.cols = f.y.Dim(-2), f.y.Dim(-1)
	if c.Attrs.Bool("adj_y") {
		f.ky, f.cols = f.cols, f.ky
	}
	f.x, f.y = shapefn.Sub(f.x, 0, -2), shapefn.Sub(f.y, 0, -2)
	return f, nil
}

func batchMatMulShape(c *opdef.ShapeContext) error {
	f, err := batchFactors(c)
	if err != nil {
		return err
	}
	batch, err := opdef.MergeShapes(f.x, f.y)
	if err != nil {
		return err
	}
	c.Out[0] = shapefn.Concat(batch, shapefn.Of(f.rows, f.cols))
	_, err = opdef.MergeDims(f.kx, f.ky)
	return err
}

func batchMatMulV2Shape(c *opdef.ShapeContext) error {
	f, err := batchFactors(c)
	if err != nil {
		return err
	}
	if _, err := opdef.MergeDims(f.kx, f.ky); err != nil {
		return err
	}
	batch, err := opdef.BroadcastShapes(f.x, f.y)
	c.Out[0] = shapefn.Concat(batch, shapefn.Of(f.rows, f.cols))
	return err
}

func newBatchMatMul[T tensor.Elem](mul multiply[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		k := &batchMatMul[T]{mul: mul, adjX: c.Attrs.Bool("adj_x"), adjY: c.Attrs.Bool("adj_y"), broadcast: c.Op.Name != "BatchMatMul"}
		return k, nil
	}
}

func newFloatBatchMatMul[T simd.Float](c *kernel.Construction) (kernel.Kernel, error) {
	k, err := newBatchMatMul(product[T])(c)
	k.(*batchMatMul[T]).mulStack = gemm.MulStack[T]
	return k, err
}

// batchMatMul is the kernel that multiplies stacks of matrices.
type batchMatMul[T tensor.Elem] struct {
	mul multiply[T]
	// Multiplies several small matrices at once; may be nil.
	mulStack   func(c, a, b gemm.Stack[T], n int)
	adjX, adjY bool
	broadcast  bool
}

// Compute implements kernel.Kernel.
func (k *batchMatMul[T]) Compute(ctx *kernel.Context) error {
	return k.multiply(ctx, ctx.Input(0), ctx.Input(1))
}

// multiply sets output 0 to the products of x and y.
func (k *batchMatMul[T]) multiply(ctx *kernel.Context, x, y *tensor.Tensor) error {
	batch, err := k.batch(x, y)
	if err != nil {
		return err
	}
	xm, ym := x.Shape()[x.Rank()-2:], y.Shape()[y.Rank()-2:]
	rows, inner := int(xm[0]), int(xm[1])
	if k.adjX {
		rows, inner = inner, rows
	}
	innerY, cols := int(ym[0]), int(ym[1])
	if k.adjY {
		innerY, cols = cols, innerY
	}
	if inner != innerY {
		return status.InvalidArgumentf("Matrix size-incompatible: In[0]: %v, In[1]: %v %d %d", x.Shape(), y.Shape(), flag(k.adjX), flag(k.adjY))
	}
	out, err := ctx.Allocate(0, append(slices.Clone(batch), int64(rows), int64(cols)))
	if err != nil {
		return err
	}
	z := tensor.Values[T](out)
	if inner == 0 {
		clear(z)
	}
	if inner == 0 || len(z) == 0 {
		return nil
	}
	xs, ys := tensor.Values[T](x), tensor.Values[T](y)
	if k.adjX {
		xs = conjugated(xs)
	}
	if k.adjY {
		ys = conjugated(ys)
	}
	offX := elementwise.Offsets(batch, x.Shape()[:x.Rank()-2])
	offY := elementwise.Offsets(batch, y.Shape()[:y.Rank()-2])
	sizeX, sizeY, sizeZ := rows*inner, inner*cols, rows*cols
	grain := max(1, elementwise.Grain(0.02)/(sizeZ*inner+1))
	stackable := k.mulStack != nil && gemm.Stackable(rows, cols, inner)
	step := ctx.Context()
	parallel.For(len(offX), grain, func(lo, hi int) {
		p := stepctx.Progress{Context: step}
		for lo < hi && p.Pass(sizeZ*inner) == nil {
			c := gemm.Dense(z[lo*sizeZ:], rows, cols)
			a := matrix(xs[offX[lo]*sizeX:], int(xm[0]), int(xm[1]), k.adjX)
			b := matrix(ys[offY[lo]*sizeY:], int(ym[0]), int(ym[1]), k.adjY)
			if !stackable {
				if inPieces(step, k.mul, c, a, b) != nil {
					return
				}
				lo++
				continue
			}
			n, dx, dy := regularRun(offX[lo:hi], offY[lo:hi])
			k.mulStack(gemm.Stack[T]{Matrix: c, Step: sizeZ}, gemm.Stack[T]{Matrix: a, Step: dx * sizeX}, gemm.Stack[T]{Matrix: b, Step: dy * sizeY}, n)
			lo += n
		}
	})
	if len(offX) > grain || sizeZ*inner > pieceWork {
		return step.Err()
	}
	return nil
}

// regularRun returns the number of leading products whose factors are equally spaced, and the
// spacing. The spacing is not negative.
func regularRun(x, y []int) (n, dx, dy int) {
	if len(x) == 1 {
		return 1, 0, 0
	}
	dx, dy = x[1]-x[0], y[1]-y[0]
	if dx < 0 || dy < 0 {
		return 1, 0, 0
	}
	for n = 2; n < len(x) && x[n]-x[n-1] == dx && y[n]-y[n-1] == dy; n++ {
	}
	return n, dx, dy
}

func (k *batchMatMul[T]) batch(x, y *tensor.Tensor) (tensor.Shape, error) {
	if !k.broadcast && x.Rank() != y.Rank() {
		return nil, status.InvalidArgumentf("In[0] and In[1] has different ndims: %v vs. %v", x.Shape(), y.Shape())
	}
	for i, t := range []*tensor.Tensor{x, y} {
		if t.Rank() < 2 {
			return nil, status.InvalidArgumentf("In[%d] ndims must be >= 2: %d", i, t.Rank())
		}
	}
	bx, by := x.Shape()[:x.Rank()-2], y.Shape()[:y.Rank()-2]
	if !k.broadcast {
		for i := range bx {
			if bx[i] != by[i] {
				return nil, status.InvalidArgumentf("In[0].dim(%d) and In[1].dim(%d) must be the same: %v vs %v", i, i, x.Shape(), y.Shape())
			}
		}
		return bx, nil
	}
	batch, err := elementwise.Broadcast(bx, by)
	if err != nil {
		return nil, status.InvalidArgumentf("In[0] and In[1] must have compatible batch dimensions: %v vs. %v", x.Shape(), y.Shape())
	}
	return batch, nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// conjugated returns the complex conjugates of elements. With them, a transpose becomes an adjoint.
func conjugated[T tensor.Elem](x []T) []T {
	switch v := any(x).(type) {
	case []complex64:
		out := membudget.Make[complex64](len(v))
		for i, c := range v {
			out[i] = complex(real(c), -imag(c))
		}
		return any(out).([]T)
	case []complex128:
		out := membudget.Make[complex128](len(v))
		for i, c := range v {
			out[i] = complex(real(c), -imag(c))
		}
		return any(out).([]T)
	}
	return x
}
