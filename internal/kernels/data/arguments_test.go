package data

import (
	"maps"
	"math"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestPassDatasetArguments(t *testing.T) {
	for _, c := range []struct {
		op   string
		in   []tensor.Tensor
		set  map[string]any
		text string
	}{
		{"MaxIntraOpParallelismDataset", []tensor.Tensor{tensor.Vector[int64](1)}, nil, "max_intra_op_parallelism must be a scalar"},
		{"MaxIntraOpParallelismDataset", []tensor.Tensor{num(-1)}, nil, "`max_intra_op_parallelism` must be >= 0"},
		{"ExperimentalPrivateThreadPoolDataset", []tensor.Tensor{num(-1)}, nil, "`num_threads` must be >= 0"},
		{"LatencyStatsDataset", []tensor.Tensor{tensor.Vector("a")}, nil, "tag must be a scalar"},
		{"OptimizeDataset", []tensor.Tensor{tensor.Scalar("a")}, nil, "optimizations must be a vector"},
		{"DenseToSparseBatchDataset", []tensor.Tensor{num(3), tensor.Vector[int64](-2)}, nil, "Dimension -2 must be >= -1"},
		{"ModelDataset", nil, map[string]any{"ram_budget": int64(-1)}, "RAM budget must be positive but is -1."},
		{"OptionsDataset", nil, map[string]any{"serialized_options": "\xff"}, "Could not parse serialized_options as valid Options."},
	} {
		b := newBench(t)
		attrs := b.attrs()
		maps.Copy(attrs, c.set)
		_, err := b.run("d", c.op, attrs, append([]tensor.Tensor{b.count(0, 3)}, c.in...)...)
		if status.CodeOf(err) != status.InvalidArgument || err.Error() != c.text {
			t.Errorf("%s: %v", c.op, err)
		}
	}
}

func TestDatasetMetadata(t *testing.T) {
	b := newBench(t)
	attrs := b.attrs()
	attrs["metadata"] = "\xff"
	if _, err := b.env.MakeNode("d", "TakeDataset", attrs); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("%v", err)
	}
	// this operation ignores metadata
	if _, err := b.env.MakeNode("one", "DatasetToSingleElement", attrs); err != nil {
		t.Errorf("%v", err)
	}
}

func TestAssertUnknownCardinality(t *testing.T) {
	b := newBench(t)
	it := b.iterator("it", b.make("AssertCardinalityDataset", b.count(0, 3), num(unknown)))
	_, err := b.run("next", "IteratorGetNext", b.attrs(), it)
	if status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("%v", err)
	}
}

func TestSelectorTypes(t *testing.T) {
	b := newBench(t)
	pairs := b.make("BatchDatasetV2", b.count(0, 2), num(2), tensor.Scalar(true))
	it := b.iterator("it", b.make("DirectedInterleaveDataset", pairs, b.count(0, 3)))
	_, err := b.run("next", "IteratorGetNext", b.attrs(), it)
	if status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("%v", err)
	}
}

func TestRangeTypes(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		types []tensor.DType
		code  status.Code
	}{
		{[]tensor.DType{tensor.Complex128}, status.OK},
		{[]tensor.DType{tensor.String}, status.InvalidArgument},
		{[]tensor.DType{tensor.Int64, tensor.Int64}, status.Internal},
	} {
		attrs := b.attrs()
		attrs["output_types"], attrs["output_shapes"] = c.types, make([]tensor.PartialShape, len(c.types))
		// the types are not checked until an iteration
		d, err := b.run("d", "RangeDataset", attrs, num(1), num(3), num(1))
		if err != nil {
			t.Fatal(err)
		}
		attrs["container"], attrs["shared_name"] = "", c.types[0].String()
		it, err := b.run("it", "IteratorV2", attrs)
		if err == nil {
			_, err = b.run("make", "MakeIterator", nil, d[0], it[0])
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := b.run("next", "IteratorGetNext", attrs, it[0])
		if status.CodeOf(err) != c.code || err == nil && tensor.Value[complex128](&out[0]) != 1 {
			t.Errorf("%v: %v", c.types, err)
		}
	}
}

func TestInfiniteRanges(t *testing.T) {
	b := newBench(t)
	out, err := b.run("n", "DatasetCardinality", nil, b.count(0, math.MaxInt64))
	if err != nil || tensor.Value[int64](&out[0]) != infinite {
		t.Errorf("%v, %v", out, err)
	}
}

func TestParallelBatchArguments(t *testing.T) {
	b := newBench(t)
	_, err := b.run("d", "ParallelBatchDataset", b.attrs(), b.count(0, 3), num(2), tensor.Vector[int64](), tensor.Scalar(false))
	if status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("%v", err)
	}
}
