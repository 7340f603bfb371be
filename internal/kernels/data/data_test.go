package data

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// bench creates datasets and iterates over them. Their elements are scalars or vectors of int64.
type bench struct {
	*testing.T
	env   *kerneltest.Env
	shape tensor.PartialShape
}

func newBench(t *testing.T) *bench {
	env := kerneltest.NewEnv()
	env.Step.Context = t.Context()
	return &bench{t, env, tensor.PartialShape{}}
}

func (b *bench) attrs() opdef.Attrs {
	return opdef.Attrs{"output_types": []tensor.DType{tensor.Int64}, "output_shapes": []tensor.PartialShape{b.shape}}
}

func (b *bench) run(node, op string, attrs opdef.Attrs, in ...tensor.Tensor) ([]tensor.Tensor, error) {
	b.Helper()
	n, err := b.env.MakeNode(node, op, attrs)
	if err != nil {
		b.Fatal(err)
	}
	return n.Run(in...)
}

// make creates a dataset.
func (b *bench) make(op string, in ...tensor.Tensor) tensor.Tensor {
	b.Helper()
	attrs := b.attrs()
	if op == "DirectedInterleaveDataset" {
		attrs["N"] = int64(len(in) - 1)
	}
	if op == "ChooseFastestDataset" {
		attrs["N"], attrs["num_experiments"] = int64(len(in)), int64(2)
	}
	if op == "ZipDataset" {
		attrs["N"] = int64(len(in))
		attrs["output_types"] = slices.Repeat([]tensor.DType{tensor.Int64}, len(in))
		attrs["output_shapes"] = make([]tensor.PartialShape, len(in))
	}
	out, err := b.run("d", op, attrs, in...)
	if err != nil {
		b.Fatalf("%s: %v", op, err)
	}
	return out[0]
}

func (b *bench) count(from, to int64) tensor.Tensor {
	return b.make("RangeDataset", tensor.Scalar(from), tensor.Scalar(to), tensor.Scalar[int64](1))
}

// iterator returns an iterator at the start of a dataset.
func (b *bench) iterator(name string, d tensor.Tensor) tensor.Tensor {
	b.Helper()
	attrs := b.attrs()
	attrs["container"], attrs["shared_name"] = "", name
	it, err := b.run(name, "IteratorV2", attrs)
	if err == nil {
		_, err = b.run("make", "MakeIterator", nil, d, it[0])
	}
	if err != nil {
		b.Fatal(err)
	}
	return it[0]
}

// take returns the numbers in the next n elements, or in all remaining ones if n is negative.
func (b *bench) take(it tensor.Tensor, n int) (all []int64) {
	b.Helper()
	for ; n != 0; n-- {
		out, err := b.run("next", "IteratorGetNext", b.attrs(), it)
		if status.CodeOf(err) == status.OutOfRange && err.Error() == "End of sequence" && n < 0 {
			return all
		}
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, tensor.Values[int64](&out[0])...)
	}
	return all
}

// noSeeds returns a placeholder for a seed generator.
func (b *bench) noSeeds() tensor.Tensor {
	b.Helper()
	out, err := b.run("seeds", "DummySeedGenerator", nil)
	if err != nil {
		b.Fatal(err)
	}
	return out[0]
}

func num(v int64) tensor.Tensor { return tensor.Scalar(v) }

// stages are datasets of numbers and their elements, batches flattened.
var stages = []struct {
	name string
	make func(b *bench) tensor.Tensor
	want []int64
	n    int64 // cardinality
}{
	{"range", func(b *bench) tensor.Tensor { return b.count(2, 5) }, []int64{2, 3, 4}, 3},
	{"take", func(b *bench) tensor.Tensor { return b.make("TakeDataset", b.count(0, 9), num(2)) }, []int64{0, 1}, 2},
	{"skip", func(b *bench) tensor.Tensor { return b.make("SkipDataset", b.count(0, 5), num(3)) }, []int64{3, 4}, 2},
	{"repeat", func(b *bench) tensor.Tensor { return b.make("RepeatDataset", b.count(0, 2), num(3)) }, []int64{0, 1, 0, 1, 0, 1}, 6},
	{"batch", func(b *bench) tensor.Tensor {
		return b.make("BatchDatasetV2", b.count(0, 5), num(2), tensor.Scalar(false))
	}, []int64{0, 1, 2, 3, 4}, 3},
	{"drop remainder", func(b *bench) tensor.Tensor {
		return b.make("BatchDatasetV2", b.count(0, 5), num(2), tensor.Scalar(true))
	}, []int64{0, 1, 2, 3}, 2},
	{"concatenate", func(b *bench) tensor.Tensor {
		return b.make("ConcatenateDataset", b.count(0, 2), b.count(7, 9))
	}, []int64{0, 1, 7, 8}, 4},
	{"prefetch", func(b *bench) tensor.Tensor {
		return b.make("PrefetchDataset", b.make("RepeatDataset", b.count(0, 3), num(2)), num(2))
	}, []int64{0, 1, 2, 0, 1, 2}, 6},
	{"shuffle", func(b *bench) tensor.Tensor { // as in TensorFlow 2.21
		return b.make("ShuffleDataset", b.count(0, 10), num(4), num(3), num(7))
	}, []int64{2, 0, 3, 1, 6, 8, 4, 9, 7, 5}, 10},
	{"shuffle without seeds", func(b *bench) tensor.Tensor { // a buffer of one element
		return b.make("ShuffleDatasetV2", b.count(2, 6), num(1), b.noSeeds())
	}, []int64{2, 3, 4, 5}, 4},
	{"global shuffle", func(b *bench) tensor.Tensor { // as in TensorFlow 2.21
		return b.make("GlobalShuffleDataset", b.count(0, 10), num(1), num(2), b.noSeeds())
	}, []int64{3, 4, 5, 9, 0, 8, 1, 7, 2, 6}, 10},
	{"global shuffle of repeat", func(b *bench) tensor.Tensor { // as in TensorFlow 2.21
		return b.make("GlobalShuffleDataset", b.make("RepeatDataset", b.count(0, 4), num(3)), num(3), num(4), b.noSeeds())
	}, []int64{2, 1, 3, 0, 2, 3, 3, 0, 1, 0, 2, 1}, 12},
	{"shuffle, repeated", func(b *bench) tensor.Tensor { // as in TensorFlow 2.21
		return b.make("RepeatDataset", b.make("ShuffleDataset", b.count(0, 4), num(4), num(3), num(7)), num(3))
	}, []int64{2, 0, 3, 1, 3, 0, 2, 1, 2, 1, 3, 0}, 12},
	{"shuffle and repeat", func(b *bench) tensor.Tensor { // as in TensorFlow 2.21
		return b.make("ShuffleAndRepeatDataset", b.count(0, 7), num(4), num(3), num(7), num(2))
	}, []int64{2, 0, 3, 1, 5, 6, 4, 3, 4, 2, 0, 5, 6, 1}, 14},
	{"sliding windows", func(b *bench) tensor.Tensor {
		return b.make("SlidingWindowDataset", b.count(0, 10), num(3), num(2), num(2))
	}, []int64{0, 2, 4, 2, 4, 6, 4, 6, 8}, 3},
	{"sliding windows, old", func(b *bench) tensor.Tensor { // as in TensorFlow 1.12
		return b.make("SlideDataset", b.count(0, 10), num(3), num(2), num(1))
	}, []int64{0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8}, 4},
	{"unique", func(b *bench) tensor.Tensor {
		return b.make("UniqueDataset", b.make("ConcatenateDataset", b.count(0, 3), b.count(1, 5)))
	}, []int64{0, 1, 2, 3, 4}, unknown},
	{"rebatch", func(b *bench) tensor.Tensor {
		in := b.make("BatchDatasetV2", b.count(0, 9), num(4), tensor.Scalar(false))
		return b.make("RebatchDatasetV2", in, tensor.Vector[int64](2, 3), tensor.Scalar(false))
	}, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}, unknown},
	{"rebatch with empty batches", func(b *bench) tensor.Tensor {
		in := b.make("BatchDatasetV2", b.count(0, 4), num(4), tensor.Scalar(false))
		return b.make("RebatchDatasetV2", in, tensor.Vector[int64](0, 3), tensor.Scalar(false))
	}, []int64{0, 1, 2, 3}, unknown},
	{"asserted cardinality", func(b *bench) tensor.Tensor { return b.make("AssertCardinalityDataset", b.count(0, 3), num(3)) }, []int64{0, 1, 2}, 3},
	{"split batches", func(b *bench) tensor.Tensor { // as in TensorFlow 2.21
		return b.make("RebatchDataset", b.make("BatchDatasetV2", b.count(0, 10), num(4), tensor.Scalar(false)), num(3))
	}, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, unknown},
	{"sampling", func(b *bench) tensor.Tensor { // as in TensorFlow 2.21
		return b.make("SamplingDataset", b.count(0, 20), tensor.Scalar[float32](0.4), num(3), num(7))
	}, []int64{2, 3, 5, 7, 16, 17, 18, 19}, unknown},
	{"choose fastest", func(b *bench) tensor.Tensor {
		return b.make("ChooseFastestDataset", b.count(0, 5), b.make("TakeDataset", b.count(0, 9), num(5)))
	}, []int64{0, 1, 2, 3, 4}, 5},
	{"directed interleave", func(b *bench) tensor.Tensor {
		choice := b.make("ConcatenateDataset", b.count(0, 2), b.make("ConcatenateDataset", b.count(0, 2), b.count(0, 2)))
		return b.make("DirectedInterleaveDataset", choice, b.count(0, 2), b.count(7, 9))
	}, []int64{0, 7, 1, 8}, unknown},
	{"cache", func(b *bench) tensor.Tensor {
		return b.make("RepeatDataset", b.make("CacheDataset", b.count(0, 3), tensor.Scalar("")), num(2))
	}, []int64{0, 1, 2, 0, 1, 2}, 6},
}

func TestElements(t *testing.T) {
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			b := newBench(t)
			d := s.make(b)
			if got := b.take(b.iterator("it", d), -1); !slices.Equal(got, s.want) {
				t.Errorf("elements are %v, want %v", got, s.want)
			}
			out, err := b.run("n", "DatasetCardinality", nil, d)
			if err != nil || tensor.Value[int64](&out[0]) != s.n {
				t.Errorf("cardinality is %v, %v, want %d", out, err, s.n)
			}
		})
	}
}

// TestSaveIterator saves each iterator after every number of elements and continues with another
// iterator.
func TestSaveIterator(t *testing.T) {
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			maxBuffered := int(s.n)
			if s.n == unknown {
				maxBuffered = 3
			}
			for n := range maxBuffered + 1 {
				b := newBench(t)
				d := s.make(b)
				it := b.iterator("it", d)
				head := b.take(it, n)
				saved, err := b.run("save", "SerializeIterator", nil, it)
				if err != nil {
					t.Fatal(err)
				}
				other := b.iterator("other", d)
				b.take(other, min(n, 1))
				if _, err := b.run("restore", "DeserializeIterator", nil, other, saved[0]); err != nil {
					t.Fatal(err)
				}
				if got := append(head, b.take(other, -1)...); !slices.Equal(got, s.want) {
					t.Errorf("after %d elements: %v, want %v", n, got, s.want)
				}
			}
		})
	}
}

func TestUninitializedIterator(t *testing.T) {
	b := newBench(t)
	attrs := b.attrs()
	attrs["container"], attrs["shared_name"] = "", ""
	it, err := b.run("it", "IteratorV2", attrs)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.run("next", "IteratorGetNext", b.attrs(), it[0])
	if status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("GetNext: %v", err)
	}
}

func TestTypesMustMatch(t *testing.T) {
	b := newBench(t)
	it := b.iterator("it", b.count(0, 3))
	attrs := b.attrs()
	attrs["output_shapes"] = []tensor.PartialShape{tensor.MakePartial(2)}
	_, err := b.run("next", "IteratorGetNext", attrs, it)
	if want := "Incompatible shapes at component 0: expected [2] but got []."; err == nil || err.Error() != want {
		t.Errorf("GetNext: %v, want %s", err, want)
	}
}

func TestGlobalShuffleNeedsRandomAccess(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		of   tensor.Tensor
		want string
	}{
		{b.count(0, 0), "`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got cardinality 0 for dataset RangeDatasetOp::Dataset"},
		{b.make("SkipDataset", b.count(0, 3), num(-1)), anyOrderText + "Global shuffling does not support empty dataset or skipping the entire dataset. Got skip(-1)."},
		{b.make("TakeDataset", b.make("RepeatDataset", b.count(0, 3), num(-1)), num(2)), anyOrderText + "`repeat(-1)` does not support random access of tf.data datasets."},
		{b.make("ShuffleDataset", b.count(0, 3), num(2), num(1), num(1)), anyOrderText + "ShuffleDataset does not support random access."},
	} {
		_, err := b.run("d", "GlobalShuffleDataset", b.attrs(), tt.of, num(1), num(2), b.noSeeds())
		if err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

const anyOrderText = "`global_shuffle` requires all upstream transformations be compatible with random access. Got: FAILED_PRECONDITION: "

func TestOptionsAreMerged(t *testing.T) {
	b := newBench(t)
	with := func(d tensor.Tensor, options string) tensor.Tensor {
		attrs := b.attrs()
		attrs["serialized_options"] = options
		out, err := b.run("o", "OptionsDataset", attrs, d)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	d := with(b.make("TakeDataset", b.make("ConcatenateDataset", with(b.count(0, 2), "\x08\x01"), with(b.count(2, 4), "\x10\x02")), num(3)), "\x18\x03")
	out, err := b.run("get", "GetOptions", nil, d)
	if err != nil || tensor.Value[string](&out[0]) != "\x08\x01\x10\x02\x18\x03" {
		t.Errorf("options are %v, %v", out, err)
	}
	if got := b.take(b.iterator("it", d), -1); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("elements are %v", got)
	}
}

// TestRandomAccessRepeat reads elements of repeated datasets of unknown size by index.
func TestRandomAccessRepeat(t *testing.T) {
	b := newBench(t)
	d := b.make("RepeatDataset", b.make("UniqueDataset", b.count(0, 3)), num(-1))
	for _, i := range []int64{0, 2, 3, 7} {
		out, err := b.run("element", "GetElementAtIndex", b.attrs(), d, num(i))
		if err != nil || tensor.Value[int64](&out[0]) != i%3 {
			t.Errorf("element %d: %v, %v", i, out, err)
		}
	}
}

// TestRandomAccessShuffle compares the order of elements read by index with TensorFlow 2.21.
func TestRandomAccessShuffle(t *testing.T) {
	b := newBench(t)
	d := b.make("ShuffleDataset", b.count(1, 8), num(10), num(87654321), num(2))
	for i, want := range []int64{5, 2, 4, 7, 1, 3, 6} {
		out, err := b.run("element", "GetElementAtIndex", b.attrs(), d, num(int64(i)))
		if err != nil || tensor.Value[int64](&out[0]) != want {
			t.Errorf("element %d: %v, %v; want %d", i, out, err, want)
		}
	}
}

// TestRandomAccessUnbatch reads rows of batches of known size by index.
func TestRandomAccessUnbatch(t *testing.T) {
	for size, code := range map[int64]status.Code{4: status.OK, -1: status.FailedPrecondition} {
		b := newBench(t)
		b.shape = tensor.MakePartial(size)
		batches := b.make("BatchDatasetV2", b.count(0, 10), num(4), tensor.Scalar(size > 0))
		b.shape = tensor.PartialShape{}
		d := b.make("UnbatchDataset", batches)
		out, err := b.run("element", "GetElementAtIndex", b.attrs(), d, num(6))
		if status.CodeOf(err) != code || err == nil && tensor.Value[int64](&out[0]) != 6 {
			t.Errorf("%v, %v", out, err)
		}
	}
}

func TestNegativePaddedShapes(t *testing.T) {
	b := newBench(t)
	attrs := b.attrs()
	attrs["Toutput_types"], attrs["N"] = attrs["output_types"], int64(1)
	delete(attrs, "output_types")
	for size, code := range map[int64]status.Code{-1: status.OK, -2: status.InvalidArgument} {
		d := b.make("BatchDataset", b.count(0, 4), num(2))
		_, err := b.run("d", "PaddedBatchDataset", attrs, d, num(2), tensor.Vector(size), num(0))
		if status.CodeOf(err) != code {
			t.Errorf("a size of %d: %v", size, err)
		}
	}
}

func TestAssertCardinality(t *testing.T) {
	for n, text := range map[int64]string{
		2:        "Input dataset was expected to contain 2 elements but contained at least 3 elements.",
		4:        "Input dataset was expected to contain 4 elements but contained only 3 elements.",
		infinite: "Input dataset was expected to contain an infinite number of elements but contained only 3 elements.",
	} {
		b := newBench(t)
		it := b.iterator("it", b.make("AssertCardinalityDataset", b.count(0, 3), num(n)))
		var err error
		for err == nil {
			_, err = b.run("next", "IteratorGetNext", b.attrs(), it)
		}
		if status.CodeOf(err) != status.FailedPrecondition || err.Error() != text {
			t.Errorf("%d: %v", n, err)
		}
	}
	b := newBench(t)
	_, err := b.run("at", "GetElementAtIndex", b.attrs(), b.make("AssertCardinalityDataset", b.count(0, 3), num(9)), num(5))
	if status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("index out of range: %v", err)
	}
}
