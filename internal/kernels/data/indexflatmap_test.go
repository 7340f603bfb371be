package data

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// pairs adds a dataset of the pairs x, x+10 for the numbers x below n. The element of a row is its
// index divided by 2, and the offset is the result of op on the index and 2.
func (p *program) pairs(op string, n int64) string {
	two, binary := constantNode("two", 2), opdef.Attrs{"T": tensor.Int64}
	number := []opdef.Arg{{Name: "x", DType: tensor.Int64}}
	p.Library = append(p.Library, graph.FunctionDef{
		Signature: opdef.Op{Name: "row", Inputs: number, Outputs: []opdef.Arg{{Name: "y", DType: tensor.Int64}}},
		Nodes: []graph.NodeDef{
			constantNode("ten", 10), {Name: "more", Op: "AddV2", Inputs: []string{"x", "ten:output:0"}, Attrs: binary},
			{Name: "both", Op: "Pack", Inputs: []string{"x", "more:z:0"}, Attrs: opdef.Attrs{"T": tensor.Int64, "N": int64(2), "axis": int64(0)}},
		},
		Ret: map[string]string{"y": "both:output:0"},
	}, graph.FunctionDef{
		Signature: opdef.Op{Name: "place", Inputs: number, Outputs: []opdef.Arg{{Name: "row", DType: tensor.Int64}, {Name: "column", DType: tensor.Int64}}},
		Nodes: []graph.NodeDef{
			two, {Name: "q", Op: "FloorDiv", Inputs: []string{"x", "two:output:0"}, Attrs: binary},
			{Name: "r", Op: op, Inputs: []string{"x", "two:output:0"}, Attrs: binary},
		},
		Ret: map[string]string{"row": "q:z:0", "column": "r:z:0"},
	})
	none := []tensor.DType{}
	return p.add("pairs", "IndexFlatMapDataset", numbersSpec(opdef.Attrs{
		"map_func": opdef.Func{Name: "row"}, "index_map_func": opdef.Func{Name: "place"}, "Tmap_func_args": none, "Tindex_map_func_args": none,
	}), p.count("numbers", n), p.constant("size", num(2*n)))
}

func TestIndexFlatMap(t *testing.T) {
	p := &program{}
	d := p.pairs("FloorMod", 3)
	got, err := p.elements(t, d, 6)
	if want := []int64{0, 10, 1, 11, 2, 12}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	at, err := p.run(t, p.add("at", "GetElementAtIndex", numbersSpec(nil), d, p.constant("i", num(3))), tensor.Int64)
	if err != nil || tensor.Value[int64](&at) != 11 {
		t.Errorf("element 3: %v, %v", at, err)
	}

	p = &program{}
	shuffled := p.add("shuffled", "GlobalShuffleDataset", numbersSpec(opdef.Attrs{"reshuffle_each_iteration": false}), p.pairs("FloorMod", 3),
		p.constant("seed", num(1)), p.constant("seed2", num(2)), p.add("seeds", "DummySeedGenerator", nil))
	got, err = p.elements(t, shuffled, 6)
	slices.Sort(got)
	if want := []int64{0, 1, 2, 10, 11, 12}; err != nil || !slices.Equal(got, want) {
		t.Errorf("shuffled: %v, %v; want %v", got, err, want)
	}

	p = &program{}
	_, err = p.elements(t, p.pairs("Mul", 3), 6)
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "which returns offset 2, but the input element has 2 elements") {
		t.Errorf("no such row: %v", err)
	}
}

func TestWeightedFlatMap(t *testing.T) {
	b := newBench(t)
	attrs := b.attrs()
	maps.Copy(attrs, opdef.Attrs{"N": int64(3), "M": int64(3)})
	weighted := func(d tensor.Tensor, weights ...float64) (tensor.Tensor, error) {
		in := []tensor.Tensor{d, b.count(10, 20), b.count(20, 30)}
		for _, w := range weights {
			in = append(in, tensor.Scalar(w))
		}
		out, err := b.run("weighted", "WeightedFlatMapDataset", attrs, in...)
		if err != nil {
			return tensor.Tensor{}, err
		}
		return out[0], nil
	}
	d, err := weighted(b.count(0, 10), 1, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	// as in TensorFlow 2.21
	want := []int64{0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29}
	if got := b.take(b.iterator("it", d), -1); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for text, make := range map[string]func() (tensor.Tensor, error){
		"needs to have at least": func() (tensor.Tensor, error) { return weighted(b.count(0, 100), 1, 10, 10) },
		"must be greater":        func() (tensor.Tensor, error) { return weighted(b.count(0, 10), 0, 1, 1) },
		"INFINITE": func() (tensor.Tensor, error) {
			return weighted(b.make("RepeatDataset", b.count(0, 10), num(-1)), 1, 1, 1)
		},
	} {
		if _, err := make(); status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// TestFastestBranch tries two branches with the same elements. No element is lost, whichever branch
// is chosen.
func TestFastestBranch(t *testing.T) {
	b := func(trial, denominator int64) ([]int64, error) {
		p := &program{}
		branch := func(name string, more ...graph.NodeDef) opdef.Func {
			p.Library = append(p.Library, graph.FunctionDef{
				Signature: opdef.Op{
					Name: name, Inputs: []opdef.Arg{{Name: "x", DType: tensor.Variant}}, Outputs: []opdef.Arg{{Name: "y", DType: tensor.Variant}},
				},
				Nodes: append([]graph.NodeDef{constantNode("n", 2)}, more...), Ret: map[string]string{"y": "y:handle:0"},
			})
			return opdef.Func{Name: name}
		}
		branches := []opdef.Func{
			branch("same", graph.NodeDef{Name: "y", Op: "PrefetchDataset", Inputs: []string{"x", "n:output:0"}, Attrs: numbersSpec(nil)}),
			branch("all", graph.NodeDef{Name: "least", Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.Int64, "value": num(-1)}},
				graph.NodeDef{Name: "y", Op: "TakeDataset", Inputs: []string{"x", "least:output:0"}, Attrs: numbersSpec(nil)}),
		}
		d := p.add("fastest", "ChooseFastestBranchDataset", numbersSpec(opdef.Attrs{
			"Targuments": []tensor.DType{}, "num_elements_per_branch": trial, "branches": branches, "other_arguments_lengths": []int64{0, 0},
		}), p.count("numbers", 10), p.constant("one", num(1)), p.constant("of", num(denominator)))
		return p.elements(t, d, 10)
	}
	got, err := b(3, 1)
	if want := []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := b(3, 2); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("3 elements, not a multiple of 2: %v", err)
	}
}
