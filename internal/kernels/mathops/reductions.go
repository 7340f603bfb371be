package mathops

import (
	"math"
	"sync"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const ordered = "{float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, uint64, qint8, quint8, qint32, qint16, quint16}"
	reducing("Sum", "Sums elements along dimensions.", "numbertype", numberReductions(
		sums[float32](), sums[float64](), nil))
	reducing("Mean", "Computes the mean of elements along dimensions.", "numbertype", numberReductions(
		means(sums[float32]()), means(sums[float64]()), meanOf))
	reducing("Prod", "Multiplies elements along dimensions.", "numbertype", products())
	reducing("Max", "Computes the maximum of elements along dimensions.", ordered, extremeReductions(true))
	reducing("Min", "Computes the minimum of elements along dimensions.", ordered, extremeReductions(false))
	truth("All", "Returns whether all elements along dimensions are true.", reduction[bool]{
		start: true, row: func(x []bool) bool { return every(x, true) },
		columns: func(acc, x []bool) {
			for i := range acc {
				acc[i] = acc[i] && x[i]
			}
		},
	})
	truth("Any", "Returns whether any element along dimensions is true.", reduction[bool]{
		row: func(x []bool) bool { return !every(x, false) },
		columns: func(acc, x []bool) {
			for i := range acc {
				acc[i] = acc[i] || x[i]
			}
		},
	})
}

func every(x []bool, want bool) bool {
	for _, v := range x {
		if v != want {
			return false
		}
	}
	return true
}

// reducing registers a reduction.
func reducing(name, doc, types string, table kernel.Table) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc + " keep_dims keeps them with size 1.",
			In: []string{"input: T", "reduction_indices: Tidx"}, Out: []string{"output: T"},
			Attrs: []string{"keep_dims: bool = false", "T: " + types, "Tidx: {int32, int64} = int32"}, Shape: reductionShape,
		},
		Kernels: byT(table),
	})
}

func truth(name, doc string, r reduction[bool]) {
	kernel.RegisterNew(opdef.Def{
		Name: name, Doc: doc + " keep_dims keeps them with size 1.",
		In: []string{"input: bool", "reduction_indices: Tidx"}, Out: []string{"output: bool"},
		Attrs: []string{"keep_dims: bool = false", "Tidx: {int32, int64} = int32"}, Shape: reductionShape,
	}, r.kernel())
}

// sums adds with vector code within blocks and in double precision across blocks.
func sums[T simd.Float]() reduction[T] {
	return reduction[T]{
		row:     simd.Sum[T],
		lines:   simd.SumRows[T],
		columns: func(acc, x []T) { simd.Add(acc, acc, x) },
		matrix:  simd.SumPanel[T],
	}
}

func means[T simd.Float](r reduction[T]) reduction[T] {
	r.start = T(math.NaN())
	r.finish = func(acc T, n int) T { return acc / T(n) }
	return r
}

// meanOf adds the means of integers, which are summed in 64 bits, and of complex numbers.
func meanOf(t kernel.Table) {
	signed, unsigned := mean[int64](), mean[uint64]()
	add(t, signed)
	add(t, unsigned)
	meanVia[int8](t, signed)
	meanVia[int16](t, signed)
	meanVia[int32](t, signed)
	meanVia[uint8](t, unsigned)
	meanVia[uint16](t, unsigned)
	meanVia[uint32](t, unsigned)
	add(t, reduction[complex64]{
		row: total[complex64], columns: accumulateInto[complex64],
		finish: func(acc complex64, n int) complex64 { return acc / complex(float32(max(n, 1)), 0) },
	})
	add(t, reduction[complex128]{
		row: total[complex128], columns: accumulateInto[complex128],
		finish: func(acc complex128, n int) complex128 { return acc / complex(float64(max(n, 1)), 0) },
	})
}

type wholeNumber interface {
	elementwise.Integer
	tensor.Elem
}

func mean[T wholeNumber]() reduction[T] {
	return reduction[T]{row: total[T], columns: accumulateInto[T], finish: func(acc T, n int) T { return acc / T(max(n, 1)) }}
}

func meanVia[T, W wholeNumber](t kernel.Table, r reduction[W]) {
	t[tensor.DTypeOf[T]()] = via(r, convertInts[W, T], convertInts[T, W])
}

func convertInts[D, S wholeNumber](dst []D, src []S) {
	for i, v := range src {
		dst[i] = D(v)
	}
}

func add[T tensor.Elem](t kernel.Table, r reduction[T]) { t[tensor.DTypeOf[T]()] = r.kernel() }

// numberReductions returns kernels for all numeric types. The floating-point types use the given
// reductions. The others use plain sums, or the kernels that others adds.
func numberReductions(f32 reduction[float32], f64 reduction[float64], others func(kernel.Table)) kernel.Table {
	t := kernel.Table{}
	add(t, f32)
	add(t, f64)
	t[tensor.Float16] = viaFloat32[tensor.Float16Elem](f32)
	t[tensor.BFloat16] = viaFloat32[tensor.BFloat16Elem](f32)
	if others != nil {
		others(t)
		return t
	}
	plainSum[int8](t)
	plainSum[int16](t)
	add(t, intSums[int32]())
	add(t, intSums[int64]())
	plainSum[uint8](t)
	plainSum[uint16](t)
	plainSum[uint32](t)
	plainSum[uint64](t)
	plainSum[complex64](t)
	plainSum[complex128](t)
	return t
}

func plainSum[T interface {
	elementwise.Number
	tensor.Elem
}](t kernel.Table) {
	add(t, reduction[T]{row: total[T], columns: accumulateInto[T]})
}

// intSums adds with vector code.
func intSums[T simd.Int]() reduction[T] {
	return reduction[T]{
		row: func(x []T) T {
			var sum [1]T
			simd.SumIntRows(sum[:], x, len(x))
			return sum[0]
		},
		lines:   simd.SumIntRows[T],
		columns: func(acc, x []T) { simd.AddInts(acc, acc, x) },
	}
}

// total sums in four independent accumulators.
func total[T elementwise.Number](x []T) T {
	var a, b, c, d T
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
	}
	for _, v := range x {
		a += v
	}
	return a + b + (c + d)
}

func accumulateInto[T elementwise.Number](acc, x []T) { elementwise.Sum(acc, acc, x) }

func products() kernel.Table {
	t := kernel.Table{}
	product32 := floatProducts[float32]()
	add(t, product32)
	add(t, floatProducts[float64]())
	t[tensor.Float16] = viaFloat32[tensor.Float16Elem](product32)
	t[tensor.BFloat16] = viaFloat32[tensor.BFloat16Elem](product32)
	multiplied[int8](t)
	multiplied[int16](t)
	multiplied[int32](t)
	multiplied[int64](t)
	multiplied[uint8](t)
	multiplied[uint16](t)
	multiplied[uint32](t)
	multiplied[uint64](t)
	multiplied[complex64](t)
	multiplied[complex128](t)
	return t
}

func floatProducts[T simd.Float]() reduction[T] {
	return reduction[T]{start: 1, row: simd.Prod[T], lines: simd.ProdRows[T], columns: func(acc, x []T) { simd.Mul(acc, acc, x) }}
}

func multiplied[T interface {
	elementwise.Number
	tensor.Elem
}](t kernel.Table) {
	add(t, reduction[T]{
		start: 1,
		row: func(x []T) T {
			p := T(1)
			for _, v := range x {
				p *= v
			}
			return p
		},
		columns: func(acc, x []T) { elementwise.Product(acc, acc, x) },
	})
}

func extremeReductions(largest bool) kernel.Table {
	t := kernel.Table{}
	f32, f64 := smallest[float32](), smallest[float64]()
	if largest {
		f32, f64 = greatest[float32](), greatest[float64]()
	}
	add(t, f32)
	add(t, f64)
	t[tensor.Float16] = viaFloat32[tensor.Float16Elem](f32)
	t[tensor.BFloat16] = viaFloat32[tensor.BFloat16Elem](f32)
	extreme[int8](t, largest, math.MinInt8, math.MaxInt8)
	extreme[int16](t, largest, math.MinInt16, math.MaxInt16)
	extreme[int32](t, largest, math.MinInt32, math.MaxInt32)
	extreme[int64](t, largest, math.MinInt64, math.MaxInt64)
	extreme[uint8](t, largest, 0, math.MaxUint8)
	extreme[uint16](t, largest, 0, math.MaxUint16)
	extreme[uint32](t, largest, 0, math.MaxUint32)
	extreme[uint64](t, largest, 0, math.MaxUint64)
	return t
}

func greatest[T simd.Float]() reduction[T] {
	return reduction[T]{
		start: T(math.Inf(-1)), row: simd.MaxOf[T], lines: simd.MaxRows[T],
		columns: func(acc, x []T) { simd.Max(acc, acc, x) }, matrix: simd.MaxPanel[T],
	}
}

func smallest[T simd.Float]() reduction[T] {
	return reduction[T]{
		start: T(math.Inf(1)), row: simd.MinOf[T], lines: simd.MinRows[T],
		columns: func(acc, x []T) { simd.Min(acc, acc, x) }, matrix: simd.MinPanel[T],
	}
}

func extreme[T wholeNumber](t kernel.Table, largest bool, lowest, highest T) {
	r := reduction[T]{
		start: highest,
		row: func(x []T) T {
			v := x[0]
			for _, e := range x[1:] {
				v = min(v, e)
			}
			return v
		},
		columns: func(acc, x []T) { elementwise.Least(acc, acc, x) },
	}
	if largest {
		r = reduction[T]{
			start: lowest,
			row: func(x []T) T {
				v := x[0]
				for _, e := range x[1:] {
					v = max(v, e)
				}
				return v
			},
			columns: func(acc, x []T) { elementwise.Greatest(acc, acc, x) },
		}
	}
	add(t, r)
}

// viaFloat32 returns the kernel of a reduction of a 16-bit type that computes in float32 and rounds
// once.
func viaFloat32[H elementwise.Short](r reduction[float32]) kernel.New {
	return via(r, elementwise.Widen[H], elementwise.Narrow[H])
}

// viaBlock is the number of elements that are widened at a time if rows are not longer. They fit in
// the L1 cache.
const viaBlock = 4096

// via returns the kernel of a reduction of type T that computes in the wider type W.
func via[T, W tensor.Elem](r reduction[W], widen func([]W, []T), narrow func([]T, []W)) kernel.New {
	blocks := &sync.Pool{New: func() any { return new([viaBlock]W) }}
	byRows := func(z []W, x []T, n int) {
		parallel.For(len(z), max(1, elementwise.Grain(cheap)/n), func(lo, hi int) {
			block := blocks.Get().(*[viaBlock]W)
			for step := viaBlock / n; lo < hi; lo += step {
				rows := min(step, hi-lo)
				widen(block[:rows*n], x[lo*n:(lo+rows)*n])
				r.rowRange(z[lo:lo+rows], block[:rows*n], n)
			}
			blocks.Put(block)
		})
		r.finishAll(z, n)
	}
	byColumns := func(z []W, x []T) {
		stride, n := len(z), len(x)/len(z)
		r.fold(z, n, func(z []W, lo, first, n int) {
			block := blocks.Get().(*[viaBlock]W)
			defer blocks.Put(block)
			for ; len(z) > 0; z, lo = z[min(len(z), viaBlock):], lo+viaBlock {
				acc, at := z[:min(len(z), viaBlock)], first*stride+lo
				widen(acc, x[at:at+len(acc)])
				for row, step := 1, viaBlock/len(acc); row < n; row += step {
					wide := block[:min(step, n-row)*len(acc)]
					widenRows(wide, x[at+row*stride:], len(acc), stride, widen)
					r.into(acc, wide, len(acc))
				}
			}
		})
		r.finishAll(z, n)
	}
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		keep := c.Attrs.Bool("keep_dims")
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			d, err := newDirections(in.Shape(), ctx.Input(1), keep)
			if err != nil {
				return err
			}
			if d.keepsAll() {
				return ctx.PassInput(0, 0, d.out...)
			}
			results, err := tensor.AllocShared(tensor.DTypeOf[W](), d.out)
			if err != nil {
				return err
			}
			defer results.Release()
			x, z := tensor.Values[T](in), tensor.Values[W](&results)
			if n := d.rowLength(); n > 0 && n <= viaBlock && len(x) > 0 {
				byRows(z, x, n)
			} else if d.pattern() == "rk" && len(x) > 0 {
				byColumns(z, x)
			} else {
				wide, err := tensor.AllocShared(tensor.DTypeOf[W](), in.Shape())
				if err != nil {
					return err
				}
				defer wide.Release()
				widen(tensor.Values[W](&wide), x)
				if err := r.run(&wide, &results, d); err != nil {
					return err
				}
			}
			out, err := ctx.Allocate(0, d.out)
			if err != nil {
				return err
			}
			narrow(tensor.Values[T](out), z)
			return nil
		}), nil
	}
}

// widenRows widens rows of n elements from src, where they are stride apart, to dst.
func widenRows[T, W any](dst []W, src []T, n, stride int, widen func([]W, []T)) {
	if n == stride {
		widen(dst, src[:len(dst)])
		return
	}
	for ; len(dst) > n; dst, src = dst[n:], src[stride:] {
		widen(dst[:n], src[:n])
	}
	widen(dst, src[:n])
}
