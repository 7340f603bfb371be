package sparse

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// wideRow returns the attributes and inputs of SparseCrossV2 for two columns of n values of 1 KiB,
// all in one row.
func wideRow(n int) (attrs opdef.Attrs, inputs []tensor.Tensor) {
	text := kerneltest.SharedText(n, 1<<10)
	column, err := text.WithShape(tensor.Shape{1, int64(n)})
	if err != nil {
		panic(err)
	}
	attrs = opdef.Attrs{"N": int64(0), "sparse_types": []tensor.DType{}, "dense_types": []tensor.DType{tensor.String, tensor.String}}
	return attrs, []tensor.Tensor{column, column, tensor.Scalar("_")}
}

// Columns of 1,000 values have 1,000,000 combinations, of 2 KiB each.
func TestMemoryOfCrosses(t *testing.T) {
	attrs, inputs := wideRow(1000)
	kerneltest.WantExhausted(t, 512<<20, "SparseCrossV2", attrs, inputs...)
}

// Combinations end with their step.
func TestCrossEndsWithStep(t *testing.T) {
	attrs, inputs := wideRow(10)
	kerneltest.WantCancelled(t, "SparseCrossV2", attrs, inputs...)
}
