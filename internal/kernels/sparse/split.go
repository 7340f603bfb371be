package sparse

import (
	"slices"

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
		Name: "SparseSplit",
		Doc: "Splits a sparse tensor along a dimension. If the size is not a multiple of num_split, the " +
			"first parts are larger by one.",
		In:    []string{"split_dim: int64", "indices: int64", "values: T", "shape: int64"},
		Out:   []string{"output_indices: num_split * int64", "output_values: num_split * T", "output_shape: num_split * int64"},
		Attrs: []string{"num_split: int >= 1", "T: type"},
		Shape: func(c *opdef.ShapeContext) error {
			n := len(c.Out) / 3
			for i := range n {
				c.Out[i], c.Out[i+n], c.Out[i+2*n] = shapefn.Of(shapefn.Unknown, shapefn.Count(c.In[3])), shapefn.Of(shapefn.Unknown), c.In[3]
			}
			return nil
		},
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		n := c.Attrs.Int("num_split")
		return kernel.Func(func(ctx *kernel.Context) error { return split(ctx, n) }), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "SparseSlice", Doc: "Returns a slice of a sparse tensor, clipped to the dense shape.",
		In:    []string{"indices: int64", "values: T", "shape: int64", "start: int64", "size: int64"},
		Out:   []string{"output_indices: int64", "output_values: T", "output_shape: int64"},
		Attrs: []string{"T: type"},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0], c.Out[1], c.Out[2] = shapefn.Of(shapefn.Unknown, shapefn.Count(c.In[2])), shapefn.Of(shapefn.Unknown), c.In[2]
			return nil
		},
	}, slice)
}

func split(ctx *kernel.Context, n int) error {
	s, err := splitInput(ctx)
	if err != nil {
		return err
	}
	given := intarg.Scalar(ctx.Input(0))
	axis, ok := intarg.Axis(given, s.rank)
	if !ok {
		return status.InvalidArgumentf("Input axis should be in range [%d, %d), got %d", -s.rank, s.rank, given)
	}
	if int64(n) > s.shape[axis] {
		return status.InvalidArgumentf("Input num_split should be between 1 and the splitting dimension size (%d), got %d", s.shape[axis], n)
	}
	size, more := s.shape[axis]/int64(n), s.shape[axis]%int64(n)
	// The first parts are larger by one.
	partOf := func(x int64) int64 {
		if x < more*(size+1) {
			return x / (size + 1)
		}
		return more + (x-more*(size+1))/size
	}
	orders := s.grouped(n, func(i int) int64 { return partOf(s.at(i)[axis]) })
	begin := int64(0)
	for i := range n {
		start, lens := membudget.Make[int64](s.rank), slices.Clone(s.shape)
		start[axis], lens[axis] = begin, size
		if int64(i) < more {
			lens[axis]++
		}
		begin += lens[axis]
		if err := s.putElements(ctx, orders(i), start, i, i+n); err != nil {
			return err
		}
		if err := putVector(ctx, i+2*n, lens); err != nil {
			return err
		}
	}
	return nil
}

// grouped sorts the elements into n groups. It returns a function that returns the numbers of the
// elements of a group, in order.
func (s *coo) grouped(n int, groupOf func(i int) int64) func(group int) []int64 {
	ends, order := membudget.Make[int](n+1), membudget.Make[int64](s.n)
	for i := range s.n {
		ends[groupOf(i)+1]++
	}
	for g := range n {
		ends[g+1] += ends[g]
	}
	next := membudget.AppendAll(nil, ends...)
	for i := range s.n {
		at := &next[groupOf(i)]
		order[*at] = int64(i)
		*at++
	}
	return func(group int) []int64 { return order[ends[group]:ends[group+1]] }
}

func splitInput(ctx *kernel.Context) (*coo, error) {
	axis, indices, values, shape := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	switch {
	case axis.Rank() != 0:
		return nil, status.InvalidArgumentf("Input axis should be a scalar but received shape %v", axis.Shape())
	case indices.Rank() != 2:
		return nil, status.InvalidArgumentf("Input indices should be a matrix but received shape %v", indices.Shape())
	case values.Rank() != 1:
		return nil, status.InvalidArgumentf("Input values should be a vector but received shape %v", indices.Shape())
	case shape.Rank() != 1:
		return nil, status.InvalidArgumentf("Input shape should be a vector but received shape %v", shape.Shape())
	}
	s, err := checkedCOO(indices, values, shape)
	if err == nil {
		err = s.checkBounds()
	}
	return s, err
}

// putBlock sets two outputs to the indices, relative to start, and the values of the elements in a
// block of the given size.
func (s *coo) putBlock(ctx *kernel.Context, start, size []int64, indices, values int) error {
	var order []int64
	for i := range s.n {
		hit := true
		for d, x := range s.at(i) {
			// This form avoids the overflow of start + size.
			hit = hit && x >= start[d] && x-start[d] < size[d]
		}
		if hit {
			order = membudget.Append(order, int64(i))
		}
	}
	return s.putElements(ctx, order, start, indices, values)
}

// putElements sets two outputs to the indices, relative to start, and the values of the elements
// with the given numbers.
func (s *coo) putElements(ctx *kernel.Context, order, start []int64, indices, values int) error {
	ix := s.rowsAt(order)
	for i := range ix {
		ix[i] -= start[i%s.rank]
	}
	if err := putMatrix(ctx, indices, ix, len(order), s.rank); err != nil {
		return err
	}
	return pick(ctx, values, s.values, order)
}

func slice(ctx *kernel.Context) error {
	s, err := checkedCOO(ctx.Input(0), ctx.Input(1), ctx.Input(2))
	if err != nil {
		return err
	}
	for i, name := range []string{"start", "size"} {
		t := ctx.Input(3 + i)
		if t.Rank() != 1 {
			return status.InvalidArgumentf("Input %s should be a vector but received shape %v", name, t.Shape())
		}
	}
	for i, name := range []string{"start", "size"} {
		if n := ctx.Input(3 + i).NumElements(); n != s.rank {
			return status.InvalidArgumentf("Expected %s to be a vector of length %d but got length %d", name, s.rank, n)
		}
	}
	start, size := intarg.Values(ctx.Input(3)), intarg.Values(ctx.Input(4))
	shape := make(tensor.Shape, s.rank)
	for d, have := range s.shape {
		switch {
		case start[d] < have-size[d]:
			shape[d] = size[d]
		case start[d] < have:
			shape[d] = have - start[d]
		}
		if shape[d] < 0 {
			return status.InvalidArgumentf("Expected a non-negative size, got %d", shape[d])
		}
	}
	if err := s.putBlock(ctx, start, size, 0, 1); err != nil {
		return err
	}
	return putVector(ctx, 2, shape)
}
