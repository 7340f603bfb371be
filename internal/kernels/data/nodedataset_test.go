package data

import (
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// TestMeasure checks that the size of a dataset counts shared stages once for each use, and that it
// is limited.
func TestMeasure(t *testing.T) {
	of := func(s size) tensor.Tensor {
		return tensor.Scalar(tensor.VariantValue{Value: &nodeDataset{size: s}})
	}
	shared := of(size{stages: 5, depth: 3})
	got, err := measure(element{shared, tensor.Scalar(int64(1)), shared})
	if err != nil || got != (size{stages: 11, depth: 4}) {
		t.Errorf("got %v, %v", got, err)
	}
	half := of(size{stages: maxStages / 2, depth: 2})
	if _, err := measure(element{half, half}); err == nil {
		t.Error("no limit of stages")
	}
	if _, err := measure(element{of(size{stages: 2, depth: maxDepth})}); err == nil {
		t.Error("no limit of stages in a row")
	}
}
