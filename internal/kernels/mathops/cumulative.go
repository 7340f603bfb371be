package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	cumulative("Cumsum", "Computes the cumulative sum of elements along an axis.", elementwise.Add, 0)
	cumulative("Cumprod", "Computes the cumulative product of elements along an axis.", elementwise.Mul, 1)
}

func cumulative(name, doc string, op elementwise.Op, start float64) {
	t := kernel.Table{}
	scan[float32](t, op, start)
	scan[float64](t, op, start)
	scan[tensor.Float16Elem](t, op, start)
	scan[tensor.BFloat16Elem](t, op, start)
	scan[int8](t, op, start)
	scan[int16](t, op, start)
	scan[int32](t, op, start)
	scan[int64](t, op, start)
	scan[uint8](t, op, start)
	scan[uint16](t, op, start)
	scan[uint32](t, op, start)
	scan[uint64](t, op, start)
	scan[complex64](t, op, start)
	scan[complex128](t, op, start)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc + " exclusive excludes the element itself, and reverse starts from the end.",
			In: []string{"x: T", "axis: Tidx"}, Out: []string{"out: T"},
			Attrs: []string{
				"exclusive: bool = false", "reverse: bool = false", "T: " + numberTypes, "Tidx: {int32, int64} = int32",
			},
			Shape: opdef.SameShape,
		},
		Kernels: byT(t),
	})
}

func scan[T tensor.Elem](t kernel.Table, op elementwise.Op, start float64) {
	dtype := tensor.DTypeOf[T]()
	t[dtype] = newScan(elementwise.Arithmetic[T](op), numbersScan[T](op), numberOf[T](dtype, start))
}

// newScan returns the kernel that combines the elements along an axis in order, one inner row at a
// time. An exclusive scan begins with first. If numbers is not nil, it scans rows of one element.
func newScan[T tensor.Elem](combine func(z, x, y []T), numbers func(b scanned[T], first T, exclusive bool), first T) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		exclusive, reverse := c.Attrs.Bool("exclusive"), c.Attrs.Bool("reverse")
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			if ctx.Input(1).Rank() != 0 {
				return status.InvalidArgumentf("ScanOp: axis must be a scalar, not %v", ctx.Input(1).Shape())
			}
			dim := intarg.Scalar(ctx.Input(1))
			axis, ok := intarg.Axis(dim, in.Rank())
			if !ok {
				return status.InvalidArgumentf("ScanOp: Expected scan axis in the range [%d, %d), but got %d", -in.Rank(), in.Rank(), dim)
			}
			out, err := ctx.AllocateLike(0, in)
			if err != nil || in.NumElements() == 0 {
				return err
			}
			n, inner := in.Dim(axis), int(in.Shape()[axis+1:].NumElements())
			x, z := tensor.Values[T](in), tensor.Values[T](out)
			parallel.For(len(x)/(n*inner), max(1, elementwise.Grain(medium)/(n*inner)), func(lo, hi int) {
				for o := lo; o < hi; o++ {
					block := scanned[T]{x[o*n*inner : (o+1)*n*inner], z[o*n*inner : (o+1)*n*inner], inner, n, reverse}
					if inner == 1 && numbers != nil {
						numbers(block, first, exclusive)
						continue
					}
					block.run(combine, first, exclusive)
				}
			})
			return nil
		}), nil
	}
}

// scanned holds n rows of elements and of results, in scan order.
type scanned[T any] struct {
	x, z     []T
	inner, n int
	reverse  bool
}

func (b scanned[T]) row(s []T, i int) []T {
	if b.reverse {
		i = b.n - 1 - i
	}
	return s[i*b.inner : (i+1)*b.inner]
}

func (b scanned[T]) run(combine func(z, x, y []T), first T, exclusive bool) {
	if exclusive {
		fill(b.row(b.z, 0), first)
	} else {
		copy(b.row(b.z, 0), b.row(b.x, 0))
	}
	for i := 1; i < b.n; i++ {
		from := i
		if exclusive {
			from--
		}
		combine(b.row(b.z, i), b.row(b.z, i-1), b.row(b.x, from))
	}
}

// numbersScan returns the scan of one-element rows for sums and products of the most common types,
// or nil.
func numbersScan[T tensor.Elem](op elementwise.Op) func(b scanned[T], first T, exclusive bool) {
	var scan any
	switch any(*new(T)).(type) {
	case float32:
		scan = numbersOf[float32](op)
	case float64:
		scan = numbersOf[float64](op)
	case int32:
		scan = numbersOf[int32](op)
	case int64:
		scan = numbersOf[int64](op)
	}
	f, _ := scan.(func(b scanned[T], first T, exclusive bool))
	return f
}

func numbersOf[T elementwise.Real](op elementwise.Op) func(b scanned[T], first T, exclusive bool) {
	if op == elementwise.Add {
		return func(b scanned[T], first T, exclusive bool) {
			i, step := b.ends()
			if exclusive {
				for range b.n {
					b.z[i] = first
					first += b.x[i]
					i += step
				}
				return
			}
			sum := b.x[i]
			for b.z[i] = sum; b.n > 1; b.n-- {
				i += step
				sum += b.x[i]
				b.z[i] = sum
			}
		}
	}
	if op == elementwise.Mul {
		return func(b scanned[T], first T, exclusive bool) {
			i, step := b.ends()
			if exclusive {
				for range b.n {
					b.z[i] = first
					first *= b.x[i]
					i += step
				}
				return
			}
			product := b.x[i]
			for b.z[i] = product; b.n > 1; b.n-- {
				i += step
				product *= b.x[i]
				b.z[i] = product
			}
		}
	}
	return nil
}

// ends returns the index of the first element of a scan of single elements, and the step to the
// next.
func (b scanned[T]) ends() (first, step int) {
	if b.reverse {
		return b.n - 1, -1
	}
	return 0, 1
}
