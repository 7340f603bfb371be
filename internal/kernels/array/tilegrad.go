package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "TileGrad", Doc: "Returns the gradient of Tile: the sum of the tiles. Deprecated; graphs sum after a Reshape instead.",
			In: []string{"input: T", "multiples: int32"}, Out: []string{"output: T"}, Attrs: []string{"T: type"}, Shape: opdef.UnknownShape,
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(tileGrad), typeset.Numbers...),
	})
}

func tileGrad(ctx *kernel.Context) error {
	in, multiples := ctx.Input(0), ctx.Input(1)
	if multiples.Rank() != 1 {
		return status.InvalidArgumentf("Expected multiples to be 1-D, but got shape %v", multiples.Shape())
	}
	if multiples.NumElements() != in.Rank() {
		return status.InvalidArgumentf("Expected multiples argument to be a vector of length %d but got length %d",
			in.Rank(), multiples.NumElements())
	}
	shape := slices.Clone(in.Shape())
	for i, n := range intarg.Values(multiples) {
		if n <= 0 || shape[i]%n != 0 {
			return status.InvalidArgumentf("Expected input_dim[%d] to be divisible by multiples[%d], but %d %% %d != 0", i, i, shape[i], n)
		}
		shape[i] /= n
	}
	if shape.Equal(in.Shape()) {
		return ctx.PassInput(0, 0)
	}
	out, err := ctx.AllocateZeros(0, shape)
	if err != nil || in.NumElements() == 0 {
		return err
	}
	list, err := gatherscatter.NewList(in.NumElements())
	if err != nil {
		return err
	}
	defer list.Release()
	tiled(list.Rows, in.Shape(), shape)
	gatherscatter.Scatter(elementwise.Add, out, in, list, 1)
	return nil
}

// tiled sets rows to the positions in one tile of all elements of a tensor that consists of tiles.
func tiled(rows, shape, tile []int64) {
	at := membudget.Make[int64](len(shape))
	for i := range rows {
		pos := int64(0)
		for d, x := range at {
			pos = pos*tile[d] + x%tile[d]
		}
		rows[i] = pos
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
	}
}
