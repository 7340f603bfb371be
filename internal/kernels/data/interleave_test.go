package data

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// spans is a function library. Its function returns a dataset of numbers from 100*x on, whose
// length depends on x.
type spans struct{ lengths []int64 }

func (s spans) Instantiate(opdef.Func) (kernel.Function, error)           { return s, nil }
func (s spans) InstantiateAcross(opdef.Func) (kernel.Function, error)     { return s, nil }
func (s spans) InstantiateOn(string, opdef.Func) (kernel.Function, error) { return s, nil }
func (s spans) Op() *opdef.Op                                             { return &opdef.Op{Name: "spans"} }

func (s spans) Call(_ *kernel.Context, args []tensor.Tensor, done func([]tensor.Tensor, error)) {
	x := tensor.Value[int64](&args[0])
	n := s.lengths[x]
	var numbers []int64
	for i := range n {
		numbers = append(numbers, 100*x+i)
	}
	of := spec{[]tensor.DType{tensor.Int64}, []tensor.PartialShape{tensor.MakePartial()}}
	done([]tensor.Tensor{wrap(&tensorsDataset{spec: of, tensors: element{tensor.Vector(numbers...)}, rows: true, n: n})}, nil)
}

// TestOrderedInterleave compares parallel interleaving in order with interleaving of one dataset at
// a time, with a save and a restore on the way.
func TestOrderedInterleave(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		b := newBench(t)
		lengths := make([]int64, rng.IntN(12))
		for i := range lengths {
			lengths[i] = rng.Int64N(6)
		}
		b.env.Functions = spans{lengths}
		cycle, block, calls := 1+rng.Int64N(6), 1+rng.Int64N(3), 1+rng.Int64N(4)
		attrs := b.attrs()
		attrs["f"], attrs["Targuments"] = opdef.Func{Name: "spans"}, []tensor.DType{}
		input := b.count(0, int64(len(lengths)))
		one, err := b.run("one", "InterleaveDataset", attrs, input, num(cycle), num(block))
		if err != nil {
			t.Fatal(err)
		}
		want := b.take(b.iterator("wanted", one[0]), -1)
		attrs["deterministic"] = "true"
		ahead, err := b.run("ahead", "ParallelInterleaveDatasetV3", attrs, input, num(cycle), num(block), num(calls))
		if err != nil {
			t.Fatal(err)
		}
		it := b.iterator("it", ahead[0])
		got := b.take(it, rng.IntN(len(want)+1))
		saved, err := b.run("save", "SerializeIterator", nil, it)
		if err != nil {
			t.Fatal(err)
		}
		rest := b.take(it, -1)
		other := b.iterator("other", ahead[0])
		if _, err := b.run("restore", "DeserializeIterator", nil, other, saved[0]); err != nil {
			t.Fatal(err)
		}
		again := b.take(other, -1)
		if !slices.Equal(slices.Concat(got, rest), want) || !slices.Equal(again, rest) {
			t.Fatalf("lengths %v, cycle %d, block %d: %v, then %v, after a restore %v; want %v", lengths, cycle, block, got, rest, again, want)
		}
	}
}
