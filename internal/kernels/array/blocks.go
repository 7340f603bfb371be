package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "SpaceToBatchND",
		Doc: "Pads with zeros, divides the spatial dimensions into blocks, and moves the positions " +
			"within a block to the batch dimension.",
		In:    []string{"input: T", "block_shape: Tblock_shape", "paddings: Tpaddings"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tblock_shape: {int32, int64} = int32", "Tpaddings: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error { return spaceToBatchShape(c, c.In[1], c.Value(1), 2) },
	}, func(ctx *kernel.Context) error { return spaceToBatch(ctx, ctx.Input(1), ctx.Input(2)) })
	kernel.RegisterNew(opdef.Def{
		Name: "SpaceToBatch", Doc: "Computes SpaceToBatchND for images with square blocks.",
		In:    []string{"input: T", "paddings: Tpaddings"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tpaddings: {int32, int64} = int32", "block_size: int >= 2"},
		Shape: squareBlocks(spaceToBatchShape),
	}, newSquareBlocks(spaceToBatch))
	kernel.RegisterFunc(opdef.Def{
		Name: "BatchToSpaceND",
		Doc: "Moves parts of the batch dimension to positions within blocks of the spatial dimensions, " +
			"and crops.",
		In:    []string{"input: T", "block_shape: Tblock_shape", "crops: Tcrops"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tblock_shape: {int32, int64} = int32", "Tcrops: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error { return batchToSpaceShape(c, c.In[1], c.Value(1), 2) },
	}, func(ctx *kernel.Context) error { return batchToSpace(ctx, ctx.Input(1), ctx.Input(2)) })
	kernel.RegisterNew(opdef.Def{
		Name: "BatchToSpace", Doc: "Computes BatchToSpaceND for images with square blocks.",
		In:    []string{"input: T", "crops: Tidx"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "block_size: int >= 2", "Tidx: {int32, int64} = int32"},
		Shape: squareBlocks(batchToSpaceShape),
	}, newSquareBlocks(batchToSpace))
}

type blockRule func(c *opdef.ShapeContext, blockShape shapefn.Shape, block *tensor.Tensor, edges int) error

// squareBlocks returns the shape function of an operation on images with square blocks, whose size
// is an attribute.
func squareBlocks(rule blockRule) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		if err := shapefn.CheckRanks(c, 0, 4); err != nil {
			return err
		}
		size := int64(c.Attrs.Int("block_size"))
		block := tensor.Vector(size, size)
		return rule(c, block.Shape().Partial(), &block, 1)
	}
}

func newSquareBlocks(f func(ctx *kernel.Context, block, edges *tensor.Tensor) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		size := int64(c.Attrs.Int("block_size"))
		if size <= 1 {
			return nil, status.InvalidArgumentf("Block size should be > 1: %d", size)
		}
		block := tensor.Vector(size, size)
		return kernel.Func(func(ctx *kernel.Context) error {
			if rank := ctx.Input(0).Rank(); rank != 4 {
				return status.InvalidArgumentf("Input rank should be: 4instead of: %d", rank)
			}
			return f(ctx, &block, ctx.Input(1))
		}), nil
	}
}

// blockArguments checks the arguments that both directions share and returns the number of blocked
// dimensions.
func blockArguments(c *opdef.ShapeContext, block shapefn.Shape, edges int) (n int, err error) {
	if block.Rank() != 1 {
		return 0, status.InvalidArgumentf("block_shape must have rank 1.")
	}
	if block.Dim(0) < 0 {
		return 0, status.InvalidArgumentf("block_shape must have known size.")
	}
	if block.Dim(0) >= tensor.MaxRank {
		return 0, status.InvalidArgumentf("block_shape has %d elements, but a shape has at most %d dimensions", block.Dim(0), tensor.MaxRank)
	}
	n = int(block.Dim(0))
	if _, err = opdef.WithRankAtLeast(c.In[0], n+1); err != nil {
		return n, err
	}
	_, err = opdef.MergeShapes(c.In[edges], shapefn.Of(int64(n), 2))
	return n, err
}

// knownEdges returns the paddings or crops, if they are known. Negative values are an error.
func knownEdges(c *opdef.ShapeContext, input int, what string) ([]int64, bool, error) {
	vals, known := shapefn.Ints(c, input)
	for _, v := range vals {
		if v < 0 {
			return nil, false, status.InvalidArgumentf("%s cannot be negative", what)
		}
	}
	return vals, known && len(vals) > 0, nil
}

func knownBlock(block *tensor.Tensor) ([]int64, bool, error) {
	if block == nil {
		return nil, false, nil
	}
	vals := intarg.Values(block)
	for _, v := range vals {
		if v < 1 {
			return nil, false, status.InvalidArgumentf("block_shape must be positive")
		}
	}
	return vals, true, nil
}

func spaceToBatchShape(c *opdef.ShapeContext, blockShape shapefn.Shape, blockTensor *tensor.Tensor, edges int) error {
	n, err := blockArguments(c, blockShape, edges)
	if err != nil {
		return err
	}
	in := c.In[0]
	block, blockKnown, err := knownBlock(blockTensor)
	if err != nil {
		return err
	}
	pads, padsKnown, err := knownEdges(c, edges, "paddings")
	if err != nil {
		return err
	}
	dims := tensor.UnknownDims(n + 1).Dims()
	if blockKnown || n == 0 {
		dims[0] = in.Dim(0)
		for _, b := range block {
			dims[0] = shapefn.Times(dims[0], b)
		}
	}
	for i := range n {
		if !blockKnown || !padsKnown {
			break
		}
		padded := shapefn.Add(in.Dim(i+1), pads[2*i]+pads[2*i+1])
		if dims[i+1], err = shapefn.Divide(padded, block[i]); err != nil {
			return err
		}
	}
	c.Out[0] = shapefn.Concat(shapefn.Of(dims...), shapefn.From(in, n+1))
	return nil
}

func batchToSpaceShape(c *opdef.ShapeContext, blockShape shapefn.Shape, blockTensor *tensor.Tensor, edges int) error {
	n, err := blockArguments(c, blockShape, edges)
	if err != nil {
		return err
	}
	in := c.In[0]
	block, blockKnown, err := knownBlock(blockTensor)
	if err != nil {
		return err
	}
	dims := tensor.UnknownDims(n + 1).Dims()
	if blockKnown || n == 0 {
		dims[0] = in.Dim(0)
		for _, b := range block {
			if dims[0], err = shapefn.Divide(dims[0], b); err != nil {
				return err
			}
		}
	}
	crops, cropsKnown, err := knownEdges(c, edges, "crops")
	if err != nil {
		return err
	}
	for i := range n {
		if !blockKnown || !cropsKnown {
			break
		}
		size := shapefn.Times(in.Dim(i+1), block[i])
		if size, err = shapefn.Minus(size, crops[2*i]); err != nil {
			return err
		}
		if dims[i+1], err = shapefn.Minus(size, crops[2*i+1]); err != nil {
			return err
		}
	}
	c.Out[0] = shapefn.Concat(shapefn.Of(dims...), shapefn.From(in, n+1))
	return nil
}

// blockInputs checks the inputs that both directions share. It returns the block sizes and the
// edges, two per blocked dimension.
func blockInputs(in, block, edges *tensor.Tensor, what string) (sizes, ends []int64, product int64, err error) {
	if block.Rank() != 1 {
		return nil, nil, 0, status.InvalidArgumentf("block_shape rank should be 1 instead of %d", block.Rank())
	}
	n := block.NumElements()
	if in.Rank() < 1+n {
		return nil, nil, 0, status.InvalidArgumentf("input rank should be >= %d instead of %d", 1+n, in.Rank())
	}
	if edges.Rank() != 2 || edges.Dim(0) != n || edges.Dim(1) != 2 {
		return nil, nil, 0, status.InvalidArgumentf("%s should have shape [%d, 2] instead of %v", what, n, edges.Shape())
	}
	sizes, ends, product = intarg.Values(block), intarg.Values(edges), 1
	for i, b := range sizes {
		if b <= 0 {
			return nil, nil, 0, status.InvalidArgumentf("All values in block_shape must be positive, got value, %d at index %d.", b, i)
		}
		if product > (1<<62)/b {
			return nil, nil, 0, status.InvalidArgumentf("Product of block sizes must be positive, got %d", product*b)
		}
		product *= b
	}
	return sizes, ends, product, nil
}

func spaceToBatch(ctx *kernel.Context, block, paddings *tensor.Tensor) error {
	in := ctx.Input(0)
	sizes, pads, product, err := blockInputs(in, block, paddings, "paddings")
	if err != nil {
		return err
	}
	padded, shape := slices.Clone(in.Shape()), slices.Clone(in.Shape())
	shape[0] *= product
	edges := membudget.Make[[2]int](in.Rank())
	for i, b := range sizes {
		before, after := pads[2*i], pads[2*i+1]
		if before < 0 || after < 0 {
			return status.InvalidArgumentf("Paddings must be non-negative")
		}
		if before > mostPadding || after > mostPadding {
			return status.InvalidArgumentf("Paddings are too large: %d %d", before, after)
		}
		edges[i+1] = [2]int{int(before), int(after)}
		padded[i+1] += before + after
		if padded[i+1]%b != 0 {
			return status.InvalidArgumentf("padded_shape[%d]=%d is not divisible by block_shape[%d]=%d", i, padded[i+1], i, b)
		}
		shape[i+1] = padded[i+1] / b
	}
	work := in.Retain()
	defer work.Release()
	if !padded.Equal(in.Shape()) {
		work.Release()
		if work, err = ctx.Scratch(in.DType(), padded); err != nil {
			return err
		}
		clearAll(&work)
		strided.Copy(&work, inside(padded, edges, in.Shape()), in, strided.Of(in.Shape()))
	}
	return copyView(ctx, &work, blocked(padded, sizes), shape)
}

// blocked returns the view of space with the positions within a block first, then the batch, then
// the blocks.
func blocked(space tensor.Shape, sizes []int64) strided.View {
	v := strided.Of(space)
	var places, rest []int
	rest = append(rest, 0)
	for i, b := range sizes {
		v = v.Split(1+2*i, int(b))
		places, rest = append(places, 2+2*i), append(rest, 1+2*i)
	}
	for i := 1 + 2*len(sizes); i < len(v.Dims); i++ {
		//sizedmake:ok dimensions
		rest = append(rest, i)
	}
	//sizedmake:ok dimensions
	return v.Permute(slices.Concat(places, rest))
}

func batchToSpace(ctx *kernel.Context, block, crops *tensor.Tensor) error {
	in := ctx.Input(0)
	sizes, ends, product, err := blockInputs(in, block, crops, "crops")
	if err != nil {
		return err
	}
	if in.Shape()[0]%product != 0 {
		return status.InvalidArgumentf("Input batch dimension (%d) is not divisible by product of block sizes (%d)", in.Dim(0), product)
	}
	space, shape := slices.Clone(in.Shape()), slices.Clone(in.Shape())
	space[0] /= product
	shape[0] = space[0]
	edges := membudget.Make[[2]int](in.Rank())
	for i, b := range sizes {
		before, after := ends[2*i], ends[2*i+1]
		if before < 0 || after < 0 {
			return status.InvalidArgumentf("Crops must be non-negative")
		}
		if before > mostPadding || after > mostPadding {
			return status.InvalidArgumentf("Crops are too large: %d %d", before, after)
		}
		edges[i+1] = [2]int{int(before), int(after)}
		space[i+1] *= b
		shape[i+1] = space[i+1] - before - after
		if shape[i+1] < 0 {
			return status.InvalidArgumentf("cropped_shape[%d]=%d must be non-negative", i, shape[i+1])
		}
	}
	if space.Equal(shape) {
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		unblock(out, in, sizes)
		return nil
	}
	work, err := ctx.Scratch(in.DType(), space)
	if err != nil {
		return err
	}
	defer work.Release()
	unblock(&work, in, sizes)
	return copyView(ctx, &work, inside(space, edges, shape), shape)
}

// unblock copies a batch with block positions as its outer dimension to space.
func unblock(space, batch *tensor.Tensor, sizes []int64) {
	to := blocked(space.Shape(), sizes)
	dense := make(tensor.Shape, len(to.Dims))
	for i, d := range to.Dims {
		dense[i] = int64(d)
	}
	strided.Copy(space, to, batch, strided.Of(dense))
}
