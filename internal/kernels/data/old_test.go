package data

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// arithmetic is a function library: "third" reports whether its argument is a multiple of three,
// "square" returns its square and "marked" its argument and whether it is even.
type arithmetic struct{ name string }

func (f *arithmetic) Instantiate(fn opdef.Func) (kernel.Function, error) {
	return &arithmetic{fn.Name}, nil
}

func (f *arithmetic) InstantiateAcross(fn opdef.Func) (kernel.Function, error) {
	return f.Instantiate(fn)
}

func (f *arithmetic) InstantiateOn(_ string, fn opdef.Func) (kernel.Function, error) {
	return f.Instantiate(fn)
}

func (f *arithmetic) Op() *opdef.Op { return &opdef.Op{Name: f.name} }

func (f *arithmetic) Call(_ *kernel.Context, args []tensor.Tensor, done func([]tensor.Tensor, error)) {
	x := tensor.Value[int64](&args[0])
	switch f.name {
	case "third":
		done([]tensor.Tensor{tensor.Scalar(x%3 == 0)}, nil)
	case "square":
		done([]tensor.Tensor{num(x * x)}, nil)
	case "marked":
		done([]tensor.Tensor{num(x), tensor.Scalar(x%2 == 0)}, nil)
	}
}

// TestMapAndBatchV2 has the elements of TensorFlow 1.12.
func TestMapAndBatchV2(t *testing.T) {
	for drop, want := range map[bool][]int64{false: {0, 1, 4, 9, 16, 25, 36, 49, 64, 81}, true: {0, 1, 4, 9, 16, 25, 36, 49}} {
		b := newBench(t)
		b.env.Functions = &arithmetic{}
		b.shape = tensor.MakePartial(-1)
		attrs := b.attrs()
		attrs["f"], attrs["Targuments"] = opdef.Func{Name: "square"}, []tensor.DType{}
		out, err := b.run("d", "MapAndBatchDatasetV2", attrs, b.count(0, 10), num(4), num(4), tensor.Scalar(drop))
		if err != nil {
			t.Fatal(err)
		}
		if got := b.take(b.iterator("it", out[0]), -1); !slices.Equal(got, want) {
			t.Errorf("drop_remainder %v: %v, want %v", drop, got, want)
		}
	}
}

func TestFilterByLastComponent(t *testing.T) {
	b := newBench(t)
	b.env.Functions = &arithmetic{}
	attrs := opdef.Attrs{
		"f": opdef.Func{Name: "marked"}, "Targuments": []tensor.DType{},
		"output_types": []tensor.DType{tensor.Int64, tensor.Bool}, "output_shapes": []tensor.PartialShape{{}, {}},
	}
	marked, err := b.run("m", "MapDataset", attrs, b.count(0, 7))
	if err != nil {
		t.Fatal(err)
	}
	it := b.iterator("it", b.make("FilterByLastComponentDataset", marked[0]))
	if got := b.take(it, -1); !slices.Equal(got, []int64{0, 2, 4, 6}) {
		t.Errorf("elements are %v", got)
	}
	it = b.iterator("bare", b.make("FilterByLastComponentDataset", b.count(0, 3)))
	if _, err := b.run("next", "IteratorGetNext", b.attrs(), it); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("without a bool: %v", err)
	}
}

// TestSloppyInterleave compares the set of elements; their order is free.
func TestSloppyInterleave(t *testing.T) {
	b := newBench(t)
	g := newGate()
	g.blocked = -1
	b.env.Functions = g
	attrs := b.attrs()
	attrs["f"], attrs["Targuments"] = opdef.Func{Name: "twice"}, []tensor.DType{}
	out, err := b.run("d", "SloppyInterleaveDataset", attrs, b.count(0, 3), num(2), num(1))
	if err != nil {
		t.Fatal(err)
	}
	got := b.take(b.iterator("it", out[0]), -1)
	slices.Sort(got)
	if !slices.Equal(got, []int64{0, 0, 1, 1, 2, 2}) {
		t.Errorf("elements are %v", got)
	}
}
