package stacking_test

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/tensor"
)

func TestStackAndRow(t *testing.T) {
	rows := []tensor.Tensor{tensor.Vector[int32](1, 2), tensor.Vector[int32](3, 4), tensor.Vector[int32](5, 6)}
	out, err := stacking.Stack(tensor.Int32, tensor.Shape{2}, rows)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{1, 2, 3, 4, 5, 6}; !slices.Equal(tensor.Values[int32](&out), want) || !out.Shape().Equal(tensor.Shape{3, 2}) {
		t.Errorf("stacked to %v", out)
	}
	row, err := stacking.Row(&out, 1)
	if err != nil || !slices.Equal(tensor.Values[int32](&row), []int32{3, 4}) || row.SharesBuffer(&out) {
		t.Errorf("row 1 is %v, error %v", row, err)
	}
}

func TestPad(t *testing.T) {
	short, _ := tensor.FromSlice(tensor.Shape{1, 2}, []string{"a", "b"})
	long, _ := tensor.FromSlice(tensor.Shape{2, 1}, []string{"c", "d"})
	empty, _ := tensor.FromSlice(tensor.Shape{0, 1}, []string{})
	out, err := stacking.Pad(tensor.String, tensor.MakePartial(-1, -1), []tensor.Tensor{short, long, empty})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "b", "", "", "c", "", "d", "", "", "", "", ""}
	if !slices.Equal(tensor.Values[string](&out), want) || !out.Shape().Equal(tensor.Shape{3, 2, 2}) {
		t.Errorf("padded to %v %q", out.Shape(), tensor.Values[string](&out))
	}
}
