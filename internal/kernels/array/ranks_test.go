package array

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The size of an input that has an element for each dimension is not known to be a rank: it can be
// any number in the graph. No memory is taken for it.
func TestImpossibleRanks(t *testing.T) {
	many := int64(1) << 40
	vector, pairs, unknown := tensor.MakePartial(many), tensor.MakePartial(many, 2), tensor.PartialShape{}
	for op, in := range map[string][]tensor.PartialShape{
		"Pad":            {unknown, pairs},
		"Slice":          {unknown, vector, vector},
		"Transpose":      {unknown, vector},
		"Reverse":        {unknown, vector},
		"SpaceToBatchND": {unknown, vector, pairs},
		"BatchToSpaceND": {unknown, vector, pairs},
	} {
		attrs := opdef.Attrs{"T": tensor.Float32, "Tpaddings": tensor.Int32, "Tperm": tensor.Int32, "Index": tensor.Int32}
		if _, err := kerneltest.Shapes(op, attrs, in, nil); err == nil {
			t.Errorf("%s accepts %d dimensions", op, many)
		}
	}
	attrs := opdef.Attrs{"batch_dims": -many, "Tparams": tensor.Float32, "Tindices": tensor.Int32, "Taxis": tensor.Int32}
	out, err := kerneltest.Shapes("GatherV2", attrs, []tensor.PartialShape{vector, vector, tensor.MakePartial()}, nil)
	if err != nil || out[0].RankKnown() {
		t.Errorf("GatherV2: got %v, %v", out, err)
	}
}

// Each of a row of nodes would double the rank.
func TestRankOfDiagonals(t *testing.T) {
	shape := tensor.MakePartial(1)
	for range 64 {
		out, err := kerneltest.Shapes("Diag", opdef.Attrs{"T": tensor.Float32}, []tensor.PartialShape{shape}, nil)
		if err != nil {
			t.Fatal(err)
		}
		shape = out[0]
	}
	if shape.RankKnown() {
		t.Errorf("got rank %d", shape.Rank())
	}
}
