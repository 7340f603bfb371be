package gpu

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/tensor"
)

// broadcastLoop returns the loop over a shape to which operands are broadcast. ok is false if no
// kernel can do it.
func broadcastLoop(shape tensor.Shape, operands ...tensor.Shape) (l source.Loop, ok bool) {
	strides := make([][]int64, len(operands)) //sizedmake:ok dimensions of the inputs of a node
	for k, o := range operands {
		strides[k] = make([]int64, len(shape)) //sizedmake:ok dimensions of the inputs of a node
		step, lead := int64(1), len(shape)-len(o)
		for i, n := range slices.Backward(o) {
			if n != 1 {
				strides[k][lead+i] = step
			}
			step *= n
		}
	}
	return source.NewLoop(shape, strides...)
}
