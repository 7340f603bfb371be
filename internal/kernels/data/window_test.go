package data

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestWindowErrors has an error for every odd number. Windows of even numbers succeed, others
// fail.
func TestWindowErrors(t *testing.T) {
	for first, code := range map[int64]status.Code{0: status.OK, 1: status.InvalidArgument} {
		p := &program{}
		p.Library = append(p.Library, graph.FunctionDef{
			Signature: opdef.Op{
				Name: "even", Inputs: []opdef.Arg{{Name: "x", DType: tensor.Int64}}, Outputs: []opdef.Arg{{Name: "y", DType: tensor.Int64}},
			},
			// Reshape to two rows fails for an odd number of elements.
			Nodes: []graph.NodeDef{
				constantNode("zero", 0), constantNode("one", 1), constantNode("two", 2),
				{Name: "below", Op: "Range", Inputs: []string{"zero:output:0", "x", "one:output:0"}, Attrs: opdef.Attrs{"Tidx": tensor.Int64}},
				{Name: "least", Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.Int64, "value": tensor.Vector[int64](2, -1)}},
				{Name: "rows", Op: "Reshape", Inputs: []string{"below:output:0", "least:output:0"}, Attrs: opdef.Attrs{"T": tensor.Int64, "Tshape": tensor.Int64}},
				{Name: "size", Op: "Size", Inputs: []string{"rows:output:0"}, Attrs: opdef.Attrs{"T": tensor.Int64, "out_type": tensor.Int64}},
			},
			Ret: map[string]string{"y": "size:output:0"},
		})
		numbers := p.add("numbers", "RangeDataset", numbersSpec(nil), p.constant("first", num(first)), p.constant("stop", num(7)), p.constant("step", num(1)))
		mapped := p.add("mapped", "MapDataset", numbersSpec(opdef.Attrs{"f": opdef.Func{Name: "even"}, "Targuments": []tensor.DType{}}), numbers)
		windows := p.add("windows", "WindowDataset", opdef.Attrs{
			"output_types": []tensor.DType{tensor.Variant}, "output_shapes": []tensor.PartialShape{tensor.MakePartial()},
		}, mapped, p.constant("size", num(2)), p.constant("shift", num(2)), p.constant("stride", num(2)), p.constant("whole", tensor.Scalar(true)))
		d := p.add("flat", "FlatMapDataset", numbersSpec(opdef.Attrs{"f": p.identity("same", tensor.Invalid), "Targuments": []tensor.DType{}}), windows)
		got, err := p.elements(t, d, 9)
		if status.CodeOf(err) != code || err == nil && !slices.Equal(got, []int64{0, 2, 2, 4, 4, 6}) {
			t.Errorf("from %d: %v, %v", first, got, err)
		}
	}
}

// TestSaveShuffleBeforeFirstElement restores a state from before the first element.
// The rounds have the same order.
func TestSaveShuffleBeforeFirstElement(t *testing.T) {
	b := newBench(t)
	it := b.iterator("it", b.make("RepeatDataset", b.make("ShuffleDataset", b.count(0, 20), num(20), num(0), num(0)), num(2)))
	saved, err := b.run("save", "SerializeIterator", nil, it)
	if err != nil {
		t.Fatal(err)
	}
	want := b.take(it, -1)
	if _, err := b.run("restore", "DeserializeIterator", nil, it, saved[0]); err != nil {
		t.Fatal(err)
	}
	if got := b.take(it, -1); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
