package gatherscatter

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Layout describes the blocks of a gather. The source has Outer blocks of Rows rows of Width
// elements. Row i of block o of the result is a row of block o of the source. Each run of Share
// consecutive blocks uses the next part of the list.
type Layout struct {
	Outer, Rows, Width int
	// Blocks per part of the list; 0 if all blocks use the same list.
	Share int
}

// Gather sets row i of each block of dst to row list[i] of the same block of src.
func Gather(dst, src *tensor.Tensor, l List, g Layout) {
	if d := device.Of(dst); d != nil && dst.NumElements() > 0 {
		gatherOnDevice(d, dst, src, l, g)
		return
	}
	if dst.NumElements() > 0 {
		move{list: l.Rows, layout: g}.run(dst, src)
	}
}

// shortBlock is the number of rows up to which a block is too short for a call of its own. Such
// blocks are gathered in one call, with row numbers that count across all blocks.
const shortBlock = 64

func gather[E any](dst, src []E, list []int64, g Layout) {
	share := g.Share
	if share == 0 {
		share = g.Outer
	}
	// Rows per block of the result.
	n := len(list) / (g.Outer / share)
	if g.Outer > 1 && g.Width > 1 && n <= shortBlock {
		if whole, err := NewList(g.Outer * n); err == nil {
			defer whole.Release()
			for o := range g.Outer {
				for i, row := range list[o/share*n:][:n] {
					if row >= 0 {
						row += int64(o * g.Rows)
					}
					whole.Rows[o*n+i] = row
				}
			}
			list, n, share = whole.Rows, g.Outer*n, 1
			g = Layout{Outer: 1, Rows: g.Outer * g.Rows, Width: g.Width}
		}
	}
	grain := max(1, 8192/g.Width)
	parallel.For(g.Outer*n, grain, func(lo, hi int) {
		for lo < hi {
			o, i := lo/n, lo%n
			k := min(n-i, hi-lo)
			block := src[o*g.Rows*g.Width : (o+1)*g.Rows*g.Width]
			pick(dst[(o*n+i)*g.Width:][:k*g.Width], block, list[o/share*n+i:][:k], g.Width)
			lo += k
		}
	})
}

// pick copies the listed rows of a block.
func pick[E any](dst, block []E, list []int64, width int) {
	switch {
	case width == 1:
		for i, row := range list {
			if row >= 0 {
				dst[i] = block[row]
			} else {
				dst[i] = *new(E)
			}
		}
	case !slices.Contains(list, skipped) && gatherWords(dst, block, list, width):
	default:
		for i, row := range list {
			bulk.SafePoint()
			out := dst[i*width : (i+1)*width]
			if row >= 0 {
				copy(out, block[int(row)*width:])
			} else {
				clear(out)
			}
		}
	}
}

// gatherWords copies rows with vector code. It reports false if there is none for the type.
func gatherWords[E any](dst, block []E, list []int64, width int) bool {
	switch dst := any(dst).(type) {
	case []uint32:
		simd.Gather(dst, any(block).([]uint32), list, width)
	case []uint64:
		simd.Gather(dst, any(block).([]uint64), list, width)
	default:
		return false
	}
	return true
}

// GatherVectors sets output 0 to the slices of params that the index vectors in the last dimension
// of indices select. Errors name node. With skip, vectors out of range yield zeros.
func GatherVectors(ctx *kernel.Context, params, indices *tensor.Tensor, node string, skip bool) error {
	if params.Rank() < 1 {
		return status.InvalidArgumentf("params must be at least a vector")
	}
	if indices.Rank() < 1 {
		return status.InvalidArgumentf("indices must be at least a vector")
	}
	depth := indices.Dim(indices.Rank() - 1)
	if depth > params.Rank() {
		return status.InvalidArgumentf("index innermost dimension length must be <= params rank; saw: %d vs. %d",
			depth, params.Rank())
	}
	shape := slices.Concat(indices.Shape()[:indices.Rank()-1], params.Shape()[depth:])
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	if params.NumElements() == 0 && indices.Shape()[:indices.Rank()-1].NumElements() > 0 {
		return status.InvalidArgumentf("Requested more than 0 entries, but params is empty.  Params shape: %v", params.Shape())
	}
	if out.NumElements() == 0 {
		return nil
	}
	list, bad, err := ReadVectors(indices, params.Shape()[:depth], skip)
	defer list.Release()
	if err != nil {
		return err
	}
	if bad >= 0 {
		return status.InvalidArgumentf("indices%s = [%s] does not index into param shape %v, node name: %s",
			intarg.Position(indices.Shape()[:indices.Rank()-1], bad), Vector(indices, bad), params.Shape(), node)
	}
	width := int(params.Shape()[depth:].NumElements())
	Gather(out, params, list, Layout{Outer: 1, Rows: params.NumElements() / width, Width: width})
	return nil
}
