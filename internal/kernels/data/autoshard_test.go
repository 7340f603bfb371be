package data

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func (b *bench) autoShard(d tensor.Tensor, workers, index int64, attrs opdef.Attrs) (tensor.Tensor, error) {
	b.Helper()
	all := b.attrs()
	maps.Copy(all, attrs)
	out, err := b.run("shard", "AutoShardDataset", all, d, num(workers), num(index))
	if err != nil {
		return tensor.Tensor{}, err
	}
	return out[0], nil
}

func TestShardElements(t *testing.T) {
	for name, c := range map[string]struct {
		make   func(b *bench) tensor.Tensor
		policy shardPolicy
		want   []int64
		lastOp string // operation that created the result
	}{
		"by default":         {func(b *bench) tensor.Tensor { return b.count(0, 5) }, shardAuto, []int64{1, 3}, "ShardDataset"},
		"off":                {func(b *bench) tensor.Tensor { return b.count(0, 3) }, shardOff, []int64{0, 1, 2}, "RangeDataset"},
		"before prefetching": {func(b *bench) tensor.Tensor { return b.make("PrefetchDataset", b.count(0, 5), num(2)) }, shardElements, []int64{1, 3}, "PrefetchDataset"},
		"rebatched": {func(b *bench) tensor.Tensor {
			b.shape = tensor.MakePartial(2)
			in := b.make("BatchDatasetV2", b.count(0, 9), num(4), tensor.Scalar(false))
			return b.make("RebatchDatasetV2", in, tensor.Vector[int64](2), tensor.Scalar(false))
		}, shardElements, []int64{2, 3, 6, 7}, "ShardDataset"},
		"shard hint": {func(b *bench) tensor.Tensor {
			return b.make("TakeDataset", b.make("ShardDataset", b.count(0, 9), num(shardHint), num(0)), num(2))
		}, shardHints, []int64{1, 3}, "TakeDataset"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := c.make(b)
			b.shape = tensor.PartialShape{}
			got, err := b.autoShard(d, 2, 1, opdef.Attrs{"auto_shard_policy": int64(c.policy), "num_replicas": int64(2)})
			if err != nil {
				t.Fatal(err)
			}
			if op := nodeDatasetOf(&got).op(); op != c.lastOp {
				t.Errorf("the last dataset is a %s", op)
			}
			if elems := b.take(b.iterator("it", got), -1); !slices.Equal(elems, c.want) {
				t.Errorf("elements are %v", elems)
			}
		})
	}
}

func TestShardErrors(t *testing.T) {
	b := newBench(t)
	files := opdef.Attrs{"auto_shard_policy": int64(shardFiles)}
	for _, c := range []struct {
		d              tensor.Tensor
		workers, index int64
		attrs          opdef.Attrs
		code           status.Code
		text           string
	}{
		{b.count(0, 1), 0, 0, nil, status.InvalidArgument, "num_workers must be greater than zero."},
		{b.count(0, 1), 2, 2, nil, status.InvalidArgument, "index must be between 0 and 1"},
		{b.count(0, 1), 2, 0, opdef.Attrs{"auto_shard_policy": int64(4)}, status.InvalidArgument, "auto_shard_policy is invalid."},
		{b.count(0, 1), 2, 0, opdef.Attrs{"auto_shard_policy": int64(shardFiles), "num_replicas": int64(-1)}, status.InvalidArgument,
			"num_replicas should be >= 0"},
		{b.count(0, 1), 2, 0, files, status.NotFound, "Found an unshardable source dataset: RangeDataset"},
		{b.make("UniqueDataset", b.count(0, 1)), 2, 0, files, status.NotFound, "Did not find a shardable source"},
		{b.make("RebatchDatasetV2", b.make("BatchDataset", b.count(0, 9), num(4)), tensor.Vector[int64](2), tensor.Scalar(false)), 2, 0, nil,
			status.InvalidArgument, "Cannot rewrite RebatchDatasetV2"},
	} {
		if _, err := b.autoShard(c.d, c.workers, c.index, c.attrs); status.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v, want %s", err, c.text)
		}
	}
	few, err := b.autoShard(b.count(0, 3), 5, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.run("next", "IteratorGetNext", b.attrs(), b.iterator("few", few))
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "the dataset only has 2 file(s), which is not enough for the required 5") {
		t.Errorf("with too few elements: %v", err)
	}
	b.attrsOfHint(t)
}

// attrsOfHint iterates over a dataset whose shard hint was not replaced.
func (b *bench) attrsOfHint(t *testing.T) {
	t.Helper()
	attrs := b.attrs()
	attrs["container"], attrs["shared_name"] = "", "hint"
	it, err := b.run("hint", "IteratorV2", attrs)
	if err == nil {
		_, err = b.run("make", "MakeIterator", nil, b.make("ShardDataset", b.count(0, 9), num(shardHint), num(0)), it[0])
	}
	if status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("with a shard hint: %v", err)
	}
}

// TestShardFiles reads lines of shuffled files that a function opens. The worker reads every
// second file in the order of the names, shuffled afterwards.
func TestShardFiles(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for _, name := range []string{"a", "b", "c", "d"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(name+"\n"+name), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, file)
	}
	p := &program{}
	text := opdef.Attrs{"output_types": []tensor.DType{tensor.String}, "output_shapes": []tensor.PartialShape{tensor.MakePartial()}}
	none := graph.NodeDef{Name: "none", Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.String, "value": tensor.Scalar("")}}
	p.Library = append(p.Library, graph.FunctionDef{
		Signature: opdef.Op{Name: "lines", Inputs: []opdef.Arg{{Name: "x", DType: tensor.String}}, Outputs: []opdef.Arg{{Name: "y", DType: tensor.Variant}}, Stateful: true},
		Nodes: []graph.NodeDef{
			none, constantNode("size", 0), {Name: "z", Op: "TextLineDataset", Inputs: []string{"x", "none:output:0", "size:output:0"}},
		},
		Ret: map[string]string{"y": "z:handle:0"},
	})
	with := func(more opdef.Attrs) opdef.Attrs {
		maps.Copy(more, text)
		return more
	}
	files := p.add("files", "TensorSliceDataset", opdef.Attrs{"Toutput_types": text["output_types"], "output_shapes": text["output_shapes"]}, p.constant("names", tensor.Vector(names...)))
	shuffled := p.add("shuffled", "ShuffleDataset", with(opdef.Attrs{}), files, p.constant("buffer", num(9)), p.constant("seed", num(3)), p.constant("seed2", num(7)))
	lines := p.add("read", "FlatMapDataset", with(opdef.Attrs{"f": opdef.Func{Name: "lines"}, "Targuments": []tensor.DType{}}), shuffled)
	shard := p.add("shard", "AutoShardDataset", with(opdef.Attrs{}), p.add("ahead", "PrefetchDataset", with(opdef.Attrs{}), lines, p.constant("one", num(1))),
		p.constant("workers", num(2)), p.constant("index", num(1)))
	all := p.add("all", "BatchDataset", with(opdef.Attrs{}), shard, p.constant("many", num(9)))
	got, err := p.run(t, p.add("element", "DatasetToSingleElement", opdef.Attrs{
		"output_types": text["output_types"], "output_shapes": []tensor.PartialShape{tensor.MakePartial(-1)},
	}, all), tensor.String)
	if err != nil {
		t.Fatal(err)
	}
	found := tensor.Values[string](&got)
	slices.Sort(found)
	if !slices.Equal(found, []string{"b", "b", "d", "d"}) {
		t.Errorf("lines are %q", found)
	}
}
