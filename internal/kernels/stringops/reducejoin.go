package stringops

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ReduceJoin", Doc: "Joins strings along the given axes; the first axis varies fastest.",
		In:    []string{"inputs: string", "reduction_indices: int32"},
		Out:   []string{"output: string"},
		Attrs: []string{"keep_dims: bool = false", "separator: string = ''"},
		Shape: func(c *opdef.ShapeContext) error {
			s, err := shapefn.Reduce(c, c.Attrs.Bool("keep_dims"))
			c.SetAll(s)
			return err
		},
	}, newReduceJoin)
	kernel.RegisterNew(opdef.Def{
		Name: "UnsortedSegmentJoin", Doc: "Joins the strings of each segment.",
		In:  []string{"inputs: string", "segment_ids: Tindices", "num_segments: Tnumsegments"},
		Out: []string{"output: string"},
		Attrs: []string{
			"separator: string = ''", "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = int32",
		},
		Shape: func(c *opdef.ShapeContext) error {
			s, err := shapefn.Segments(c)
			c.SetAll(s)
			return err
		},
	}, newSegmentJoin)
}

func newReduceJoin(c *kernel.Construction) (kernel.Kernel, error) {
	keep, separator := c.Attrs.Bool("keep_dims"), c.Attrs.String("separator")
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		axes, err := joinAxes(ctx.Input(1), in.Rank())
		if err != nil {
			return err
		}
		joined := membudget.Make[bool](in.Rank())
		for _, axis := range axes {
			joined[axis] = true
		}
		var kept []int
		shape := tensor.Shape{}
		for i, j := range joined {
			switch {
			case !j:
				kept, shape = append(kept, i), append(shape, in.Shape()[i])
			case keep:
				shape = append(shape, 1)
			}
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		reduceJoin(tensor.Values[string](out), in, kept, axes, separator)
		return nil
	}), nil
}

// joinAxes returns the axes to join along, from the slowest to the fastest.
func joinAxes(t *tensor.Tensor, rank int) ([]int, error) {
	given := intarg.Values(t)
	axes := membudget.Make[int](len(given))
	seen := membudget.Make[bool](rank)
	for i, a := range given {
		axis, ok := intarg.Axis(a, rank)
		if !ok {
			return nil, status.OutOfRangef("Invalid reduction dimension %d for input with %d dimension(s)", a, rank)
		}
		if seen[axis] {
			return nil, status.InvalidArgumentf("Duplicate reduction dimension %d", a)
		}
		seen[axis] = true
		axes[len(given)-1-i] = axis
	}
	return axes, nil
}

func reduceJoin(dst []string, in *tensor.Tensor, kept, axes []int, separator string) {
	vals, strides := tensor.Values[string](in), membudget.Make[int](in.Rank())
	for i, stride := in.Rank()-1, 1; i >= 0; i-- {
		strides[i] = stride
		stride *= in.Dim(i)
	}
	// offset returns the position of element n among those spanned by axes.
	offset := func(axes []int, n int) int {
		at := 0
		for _, axe := range slices.Backward(axes) {
			size := in.Dim(axe)
			at += strides[axe] * (n % size)
			n /= size
		}
		return at
	}
	count := 1
	for _, axis := range axes {
		count *= in.Dim(axis)
	}
	parts := membudget.Make[string](count)
	var meter membudget.Meter
	for i := range dst {
		base := offset(kept, i)
		for j := range parts {
			parts[j] = vals[base+offset(axes, j)]
		}
		dst[i] = meter.Join(parts, separator)
	}
}

func newSegmentJoin(c *kernel.Construction) (kernel.Kernel, error) {
	// TensorFlow's separator ends at a NUL byte, in this operation only
	separator, _, _ := strings.Cut(c.Attrs.String("separator"), "\x00")
	return kernel.Func(func(ctx *kernel.Context) error {
		in, ids := ctx.Input(0), ctx.Input(1)
		n, err := segmentCount(in, ids, ctx.Input(2))
		if err != nil {
			return err
		}
		shape := append(tensor.Shape{n}, in.Shape()[ids.Rank():]...)
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		row := int(in.Shape()[ids.Rank():].NumElements())
		segments := intarg.Values(ids)
		members := membudget.Make[[]int](n)
		for i, id := range segments {
			if id < 0 || id >= n {
				return status.InvalidArgumentf("segment_ids are not allowed to exceed num_segments or to have negative values.")
			}
			members[id] = membudget.Append(members[id], i)
		}
		vals, dst := tensor.Values[string](in), tensor.Values[string](out)
		var meter membudget.Meter
		for id, rows := range members {
			parts := membudget.Make[string](len(rows))
			for column := range row {
				for k, r := range rows {
					parts[k] = vals[r*row+column]
				}
				first := 0
				// no separator follows leading empty strings
				for first < len(parts)-1 && parts[first] == "" {
					first++
				}
				dst[id*row+column] = meter.Join(parts[first:], separator)
			}
		}
		return nil
	}), nil
}

// segmentCount checks the inputs of UnsortedSegmentJoin and returns the number of segments.
func segmentCount(in, ids, count *tensor.Tensor) (int64, error) {
	switch {
	case count.NumElements() == 0:
		return 0, status.InvalidArgumentf("Number of segments cannot be empty.")
	case count.Rank() != 0:
		return 0, status.InvalidArgumentf("Number of segments must be a scalar")
	}
	n := intarg.Scalar(count)
	switch {
	case n < 0:
		return 0, status.InvalidArgumentf("Number of segments must be non-negative but got %d", n)
	case ids.Rank() == 0:
		return 0, status.InvalidArgumentf("Segment_id cannot have rank 0")
	case ids.Rank() > in.Rank():
		return 0, status.OutOfRangef("Invalid segment_id rank %d for input with %d dimension(s)", ids.Rank(), in.Rank())
	}
	for i, d := range ids.Shape() {
		if d != in.Shape()[i] {
			return 0, status.InvalidArgumentf("Segment dimension is %d while input dimension is %d in rank %d", d, in.Rank(), i)
		}
	}
	return n, nil
}
