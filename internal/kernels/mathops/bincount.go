package mathops

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Bincount", Doc: "Counts the occurrences of each integer below size in arr, or sums their weights.",
			In:    []string{"arr: int32", "size: int32", "weights: T"},
			Out:   []string{"bins: T"},
			Attrs: []string{"T: {int32, int64, float32, float64}"},
			Shape: func(c *opdef.ShapeContext) error { return bincountShape(c, 1) },
		},
		Kernels: byT(counters(func(c *counter) kernel.Func { return c.bincount })),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "DenseBincount",
			Doc: "Counts the occurrences of each integer below size in a vector or in each row of a " +
				"matrix, or sums their weights. With binary_output, a bin is 1 if the integer occurs.",
			In:  []string{"input: Tidx", "size: Tidx", "weights: T"},
			Out: []string{"output: T"},
			Attrs: []string{
				"Tidx: {int32, int64}",
				"T: {int32, int64, float32, float64}",
				"binary_output: bool = false",
			},
			Shape: func(c *opdef.ShapeContext) error {
				if _, err := opdef.WithRankAtMost(c.In[0], 2); err != nil {
					return err
				}
				return bincountShape(c, c.In[0].Rank())
			},
		},
		Kernels: byT(counters(func(c *counter) kernel.Func { return c.dense })),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseBincount", Doc: "Computes DenseBincount for the values of a sparse tensor.",
			In:  []string{"indices: int64", "values: Tidx", "dense_shape: int64", "size: Tidx", "weights: T"},
			Out: []string{"output: T"},
			Attrs: []string{
				"Tidx: {int32, int64}",
				"T: {int32, int64, float32, float64}",
				"binary_output: bool = false",
			},
			Shape: sparseBincountShape,
		},
		Kernels: byT(counters(func(c *counter) kernel.Func { return c.sparse })),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedBincount", Doc: "Computes DenseBincount for the rows of a ragged tensor.",
			In:  []string{"splits: int64", "values: Tidx", "size: Tidx", "weights: T"},
			Out: []string{"output: T"},
			Attrs: []string{
				"Tidx: {int32, int64}",
				"T: {int32, int64, float32, float64}",
				"binary_output: bool = false",
			},
			Shape: opdef.UnknownShape,
		},
		Kernels: byT(counters(func(c *counter) kernel.Func { return c.ragged })),
	})
}

// bincountSize returns the number of bins, a scalar input, if it is known.
func bincountSize(c *opdef.ShapeContext, input int) (int64, error) {
	if err := shapefn.CheckRanks(c, input, 0); err != nil {
		return shapefn.Unknown, err
	}
	size, known := c.ScalarValue(input)
	if !known {
		return shapefn.Unknown, nil
	}
	if size < 0 {
		return shapefn.Unknown, status.InvalidArgumentf("size (%d) must be non-negative", size)
	}
	return size, nil
}

// bincountShape is the shape function for an input of the given rank, or -1 if it is unknown.
func bincountShape(c *opdef.ShapeContext, rank int) error {
	size, err := bincountSize(c, 1)
	switch {
	case err != nil:
		return err
	case rank == 2 && size == shapefn.Unknown:
		c.Out[0] = tensor.UnknownDims(2)
	case rank == 2:
		c.Out[0] = shapefn.Of(c.In[0].Dim(0), size)
	case rank == 1 || rank == 0 && size != shapefn.Unknown:
		c.Out[0] = shapefn.Of(size)
	case rank == 0:
		c.Out[0] = shapefn.Of()
	}
	return nil
}

func sparseBincountShape(c *opdef.ShapeContext) error {
	size, err := bincountSize(c, 3)
	if err != nil {
		return err
	}
	dense, known := shapefn.Ints(c, 2)
	switch {
	case !known || size == shapefn.Unknown:
	case len(dense) == 1:
		c.Out[0] = shapefn.Of(size)
	case len(dense) == 2:
		c.Out[0] = shapefn.Of(dense[0], size)
	default:
		return status.InvalidArgumentf("Input must be less than rank 2")
	}
	return nil
}

// counter counts values, or sums their weights, in bins.
type counter struct {
	binary bool
	// add counts values lo to hi in the size bins of a row. The first negative value ends the
	// count, and add returns its position, or -1.
	add func(bins *tensor.Tensor, row, size int, values, weights *tensor.Tensor, lo, hi int) int
}

func counters(run func(*counter) kernel.Func) kernel.Table {
	t := kernel.Table{}
	counterOf[int32](t, run)
	counterOf[int64](t, run)
	counterOf[float32](t, run)
	counterOf[float64](t, run)
	return t
}

func counterOf[T elementwise.Real](t kernel.Table, run func(*counter) kernel.Func) {
	t[tensor.DTypeOf[T]()] = func(c *kernel.Construction) (kernel.Kernel, error) {
		k := &counter{binary: c.Attrs.Bool("binary_output")}
		k.add = func(bins *tensor.Tensor, row, size int, values, weights *tensor.Tensor, lo, hi int) int {
			z, w := tensor.Values[T](bins)[row*size:(row+1)*size], tensor.Values[T](weights)
			if k.binary {
				w = nil
			}
			if len(w) > 0 {
				w = w[lo:hi]
			}
			var bad int
			if values.DType() == tensor.Int32 {
				bad = count(z, tensor.Values[int32](values)[lo:hi], w, k.binary)
			} else {
				bad = count(z, tensor.Values[int64](values)[lo:hi], w, k.binary)
			}
			if bad >= 0 {
				bad += lo
			}
			return bad
		}
		return run(k), nil
	}
}

// count adds the weights, or 1 without weights, to the bins that values select. With mark it only
// sets these bins to 1. It returns the position of the first negative value, or -1.
func count[T elementwise.Real, I int32 | int64](bins []T, values []I, weights []T, mark bool) int {
	if !mark && len(weights) == 0 { // the common case, without a branch per value on weights
		for i, v := range values {
			if uint64(v) < uint64(len(bins)) {
				bins[v]++
			} else if v < 0 {
				return i
			}
		}
		return -1
	}
	for i, v := range values {
		switch {
		case uint64(v) >= uint64(len(bins)):
			if v < 0 {
				return i
			}
		case mark:
			bins[v] = 1
		default:
			bins[v] += weights[i]
		}
	}
	return -1
}

// binSize returns the number of bins.
func binSize(t *tensor.Tensor) (int64, error) {
	if t.Rank() != 0 {
		return 0, status.InvalidArgumentf("Shape must be rank 0 but is rank %d", t.Rank())
	}
	size := intarg.Scalar(t)
	if size < 0 {
		return 0, status.InvalidArgumentf("size (%d) must be non-negative", size)
	}
	return size, nil
}

func (k *counter) bincount(ctx *kernel.Context) error {
	arr, weights := ctx.Input(0), ctx.Input(2)
	size, err := binSize(ctx.Input(1))
	if err != nil {
		return err
	}
	if n := weights.NumElements(); n > 0 && n != arr.NumElements() {
		return status.InvalidArgumentf("Input indices and weights must have the same size.")
	}
	out, err := ctx.AllocateZeros(0, tensor.Shape{size})
	if err != nil {
		return err
	}
	if k.add(out, 0, int(size), arr, weights, 0, arr.NumElements()) >= 0 {
		return status.InvalidArgumentf("Input arr must be non-negative!")
	}
	return nil
}

func (k *counter) dense(ctx *kernel.Context) error {
	in, weights := ctx.Input(0), ctx.Input(2)
	if in.Rank() > 2 {
		return status.InvalidArgumentf("Shape must be at most rank 2 but is rank %d", in.Rank())
	}
	size, err := binSize(ctx.Input(1))
	if err != nil {
		return err
	}
	if !weights.Shape().Equal(in.Shape()) && weights.NumElements() > 0 {
		return status.InvalidArgumentf("`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all "+
			"weights equal to 1. Received %v", weights.Shape())
	}
	shape, n, per := tensor.Shape{size}, 1, in.NumElements()
	if in.Rank() == 2 {
		shape, n, per = tensor.Shape{in.Shape()[0], size}, in.Dim(0), in.Dim(1)
	}
	out, err := ctx.AllocateZeros(0, shape)
	if err != nil {
		return err
	}
	if in.NumElements() == 0 {
		return nil // there is any number of rows without bins
	}
	for row := range n {
		if k.add(out, row, int(size), in, weights, row*per, (row+1)*per) >= 0 {
			return status.InvalidArgumentf("Input arr must be non-negative!")
		}
	}
	return nil
}

func (k *counter) sparse(ctx *kernel.Context) error {
	indices, values, denseShape, weights := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(4)
	size, err := binSize(ctx.Input(3))
	if err != nil {
		return err
	}
	if err := checkSparse(indices, values, denseShape); err != nil {
		return err
	}
	shape, matrix := tensor.Shape{size}, denseShape.NumElements() > 1
	if matrix {
		shape = tensor.Shape{intarg.Values(denseShape)[0], size}
	}
	if err := shape.Check(); err != nil {
		return err
	}
	if err := k.checkWeights(weights, values, matrix); err != nil {
		return err
	}
	out, err := ctx.AllocateZeros(0, shape)
	if err != nil {
		return err
	}
	n := values.NumElements()
	if !matrix {
		if k.add(out, 0, int(size), values, weights, 0, n) >= 0 {
			return status.InvalidArgumentf("Input arr must be non-negative!")
		}
		return nil
	}
	positions, depth := intarg.Values(indices), indices.Dim(1)
	for lo := 0; lo < n; {
		row, hi := positions[lo*depth], lo+1
		for hi < n && positions[hi*depth] == row {
			hi++
		}
		if bad := k.add(out, int(row), int(size), values, weights, lo, hi); bad >= 0 {
			hi = bad + 1 // negative values in rows are ignored
		}
		lo = hi
	}
	return nil
}

// checkWeights checks that there is one weight per value if weights are given and used. With
// inRows, more weights than values are allowed.
func (k *counter) checkWeights(weights, values *tensor.Tensor, inRows bool) error {
	n, want := weights.NumElements(), values.NumElements()
	if k.binary || n == 0 || n == want || inRows && n > want {
		return nil
	}
	return status.InvalidArgumentf("Input indices and weights must have the same size.")
}

func (k *counter) ragged(ctx *kernel.Context) error {
	splits, values, weights := intarg.Values(ctx.Input(0)), ctx.Input(1), ctx.Input(3)
	size, err := binSize(ctx.Input(2))
	if err != nil {
		return err
	}
	n := int64(values.NumElements())
	switch {
	case len(splits) == 0:
		return status.InvalidArgumentf("Splits must be non-empty")
	case splits[0] != 0:
		return status.InvalidArgumentf("Splits must start with 0, not with %d", splits[0])
	case splits[len(splits)-1] != n:
		return status.InvalidArgumentf("Splits must end with the number of values, got %d instead of %d", splits[len(splits)-1], n)
	}
	if err := k.checkWeights(weights, values, true); err != nil {
		return err
	}
	out, err := ctx.AllocateZeros(0, tensor.Shape{int64(len(splits) - 1), size})
	if err != nil {
		return err
	}
	row := 0
	for lo := int64(0); lo < n; {
		for lo >= splits[row+1] {
			row++
		}
		hi := min(splits[row+1], n)
		if k.add(out, row, int(size), values, weights, int(lo), int(hi)) >= 0 {
			return status.InvalidArgumentf("Input must be non-negative")
		}
		lo = hi
	}
	return nil
}

// checkSparse checks the components of a sparse tensor.
func checkSparse(indices, values, shape *tensor.Tensor) error {
	switch {
	case indices.Rank() != 2:
		return status.InvalidArgumentf("Sparse indices must be rank 2 but is rank %d", indices.Rank())
	case values.Rank() != 1:
		return status.InvalidArgumentf("Sparse values must be rank 1 but is rank %d", values.Rank())
	case shape.Rank() != 1:
		return status.InvalidArgumentf("Sparse shape must be rank 1 but is rank %d", shape.Rank())
	case values.Dim(0) != indices.Dim(0):
		return status.InvalidArgumentf("Number of elements in indices (%d) and values (%d) do not match", indices.Dim(0), values.Dim(0))
	case shape.NumElements() != indices.Dim(1):
		return status.InvalidArgumentf("Index rank (%d) and shape rank (%d) do not match", indices.Dim(1), shape.NumElements())
	}
	dims, positions := intarg.Values(shape), intarg.Values(indices)
	for i, at := range positions {
		if at < 0 || at >= dims[i%len(dims)] {
			row := i / len(dims)
			return status.InvalidArgumentf("Sparse index tuple indices[%d, :] = [%s] is out of bounds", row, gatherscatter.Vector(indices, row))
		}
	}
	return nil
}
