package nn

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "NthElement", Doc: "Returns the n-th smallest value of each row, counted from 0, or the n-th largest if reverse is true.",
			In: []string{"input: T", "n: int32"}, Out: []string{"values: T"},
			Attrs: []string{"reverse: bool = false", "T: " + realTypes}, Shape: nthElementShape,
		},
		Kernels: kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.nthElement })),
	})
}

func nthElementShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	n, err := shapefn.Dim(c, 1)
	if err != nil {
		return err
	}
	if last := in.Dim(-1); last >= 0 && n >= last {
		return status.InvalidArgumentf("Input must have last dimension > n = %d but is %d", n, last)
	}
	c.SetAll(shapefn.Sub(in, 0, -1))
	return nil
}

func newNthElement[T tensor.Elem](o order[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		reverse := c.Attrs.Bool("reverse")
		return kernel.Func(func(ctx *kernel.Context) error {
			in, index := ctx.Input(0), ctx.Input(1)
			if index.Rank() != 0 {
				return status.InvalidArgumentf("N must be scalar but has rank %d", index.Rank())
			}
			n := int(intarg.Scalar(index))
			switch {
			case n < 0:
				return status.InvalidArgumentf("n must be non-negative but is %d", n)
			case in.Rank() == 0:
				return status.InvalidArgumentf("Input must be at least rank 1 but is rank 0")
			case in.Dim(in.Rank()-1) <= n:
				return status.InvalidArgumentf("Input must have last dimension > n = %d", n)
			}
			width := in.Dim(in.Rank() - 1)
			if reverse {
				n = width - n - 1
			}
			out, err := ctx.Allocate(0, in.Shape()[:in.Rank()-1])
			if err != nil {
				return err
			}
			x, z := tensor.Values[T](in), tensor.Values[T](out)
			parallel.For(len(z), max(1, 1000/width), func(lo, hi int) {
				row := membudget.Make[T](width)
				for i := lo; i < hi; i++ {
					copy(row, x[i*width:])
					z[i] = o.nth(row, n)
				}
			})
			return nil
		}), nil
	}
}

// nth returns the element that would be at index n if the row were sorted. It reorders the row.
// If its guesses of the middle are bad, which the order of the row can make them, it takes random
// ones: otherwise the time would be the square of the length.
func (o *order[T]) nth(row []T, n int) T {
	for left := 2 * bits.Len(uint(len(row))); len(row) > 16; left-- {
		pivot := o.median(row[0], row[len(row)/2], row[len(row)-1])
		if left < 0 {
			pivot = row[rand.IntN(len(row))]
		}
		// Elements before low are less than the pivot, and elements from high on are greater.
		low, high := 0, len(row)
		for i := 0; i < high; {
			switch {
			case o.less(row[i], pivot):
				row[low], row[i] = row[i], row[low]
				low, i = low+1, i+1
			case o.less(pivot, row[i]):
				high--
				row[high], row[i] = row[i], row[high]
			default:
				i++
			}
		}
		switch {
		case n < low:
			row = row[:low]
		case n >= high:
			row, n = row[high:], n-high
		default:
			return pivot
		}
	}
	slices.SortFunc(row, func(a, b T) int {
		switch {
		case o.less(a, b):
			return -1
		case o.less(b, a):
			return 1
		}
		return 0
	})
	return row[n]
}

func (o *order[T]) median(a, b, c T) T {
	if o.less(b, a) {
		a, b = b, a
	}
	switch {
	case o.less(c, a):
		return a
	case o.less(b, c):
		return b
	}
	return c
}
