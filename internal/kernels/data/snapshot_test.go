package data

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestFingerprints compares fingerprints with those of TensorFlow 2.21.
func TestFingerprints(t *testing.T) {
	for name, c := range map[string]struct {
		make func(p *program) string
		want uint64
	}{
		"range": {func(p *program) string { return p.count("d", 10) }, 7976854922540282633},
		"batch": {func(p *program) string {
			return p.add("d", "BatchDatasetV2", opdef.Attrs{
				"output_types": []tensor.DType{tensor.Int64}, "output_shapes": []tensor.PartialShape{tensor.UnknownDims(1)},
			}, p.count("r", 10), p.constant("size", num(3)), p.constant("whole", tensor.Scalar(false)))
		}, 11455254690558883838},
		"shuffle": {func(p *program) string {
			return p.add("d", "ShuffleDataset", numbersSpec(nil), p.count("r", 10), p.constant("size", num(3)), p.constant("seed", num(1)), p.constant("seed2", num(5)))
		}, 4741939532243842660},
		"map": {func(p *program) string {
			return p.add("d", "MapDataset", numbersSpec(opdef.Attrs{"f": p.function("f", "Mul", 2), "Targuments": []tensor.DType{}}), p.count("r", 10))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := &program{}
			got, err := p.run(t, p.add("print", "DatasetFingerprint", nil, c.make(p)), tensor.Uint64)
			if err != nil {
				t.Fatal(err)
			}
			if sum := tensor.Value[uint64](&got); c.want != 0 && sum != c.want {
				t.Errorf("%d, want %d", sum, c.want)
			}
		})
	}
}

// identity adds a function that returns its argument. For datasets it returns the concatenation of
// the elements, which are datasets.
func (p *program) identity(name string, dtype tensor.DType) opdef.Func {
	f := graph.FunctionDef{
		Signature: opdef.Op{Name: name, Inputs: []opdef.Arg{{Name: "x", DType: dtype}}, Outputs: []opdef.Arg{{Name: "y", DType: dtype}}},
		Nodes:     []graph.NodeDef{{Name: "z", Op: "Identity", Inputs: []string{"x"}, Attrs: opdef.Attrs{"T": dtype}}},
		Ret:       map[string]string{"y": "z:output:0"},
	}
	if dtype == tensor.Variant { // concatenate the shards
		f.Nodes = []graph.NodeDef{{Name: "z", Op: "FlatMapDataset", Inputs: []string{"x"}, Attrs: numbersSpec(opdef.Attrs{
			"f": p.identity("same", tensor.Invalid), "Targuments": []tensor.DType{},
		})}}
		f.Ret["y"] = "z:handle:0"
	}
	if dtype == tensor.Invalid {
		f.Signature.Inputs[0].DType, f.Signature.Outputs[0].DType = tensor.Variant, tensor.Variant
		f.Nodes[0].Attrs = opdef.Attrs{"T": tensor.Variant}
	}
	p.Library = append(p.Library, f)
	return opdef.Func{Name: name}
}

// elements runs the program and returns the n elements of dataset d.
func (p *program) elements(t *testing.T, d string, n int64) ([]int64, error) {
	t.Helper()
	all := p.add("all", "BatchDataset", numbersSpec(nil), d, p.constant("n", num(n+1)))
	got, err := p.run(t, p.add("element", "DatasetToSingleElement", opdef.Attrs{
		"output_types": []tensor.DType{tensor.Int64}, "output_shapes": []tensor.PartialShape{tensor.UnknownDims(1)},
	}, all), tensor.Int64)
	if err != nil {
		return nil, err
	}
	return tensor.Values[int64](&got), nil
}

func runs(t *testing.T, dir string) int { return len(files(t, filepath.Join(dir, "*", "*"))) - 1 }

func TestSnapshots(t *testing.T) {
	for _, compression := range []string{"", "GZIP", "AUTO"} {
		dir := t.TempDir()
		for range 2 {
			p := &program{}
			d := p.add("d", "SnapshotDatasetV2", numbersSpec(opdef.Attrs{
				"compression": compression, "reader_func": p.identity("join", tensor.Variant), "shard_func": p.identity("shard", tensor.Int64),
				"Treader_func_args": []tensor.DType{}, "Tshard_func_args": []tensor.DType{},
			}), p.count("r", 4), p.constant("path", tensor.Scalar(dir)))
			got, err := p.elements(t, d, 4)
			if err != nil || !slices.Equal(got, []int64{0, 1, 2, 3}) {
				t.Errorf("%q: %v, %v", compression, got, err)
			}
			if n := runs(t, dir); n != 1 {
				t.Errorf("%q: %d runs", compression, n)
			}
		}
		if shards := files(t, filepath.Join(dir, "*", "*", "*.shard")); len(shards) != 4 {
			t.Errorf("%q: shards %v", compression, shards)
		}
	}
}

func TestLegacySnapshots(t *testing.T) {
	for _, compression := range []string{"", "GZIP", "SNAPPY"} {
		dir := t.TempDir()
		read := func(attrs opdef.Attrs) ([]int64, error) {
			p := &program{}
			spec := numbersSpec(attrs)
			spec["compression"], spec["shard_size_bytes"] = compression, int64(40)
			return p.elements(t, p.add("d", "SnapshotDataset", spec, p.count("r", 9), p.constant("path", tensor.Scalar(dir))), 9)
		}
		want := []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}
		for i := range 2 {
			got, err := read(nil)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%q, time %d: %v, %v", compression, i, got, err)
			}
			if n := runs(t, dir); n != 1 {
				t.Errorf("%q, time %d: %d runs", compression, i, n)
			}
		}
		if parts := files(t, filepath.Join(dir, "*", "*", "*.snapshot")); len(parts) < 2 {
			t.Errorf("%q: files %v", compression, parts)
		}
		got, err := read(opdef.Attrs{"shuffle_on_read": true, "seed": int64(3)})
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, shuffled: %v, %v", compression, got, err)
		}
		if _, err := read(opdef.Attrs{"mode": "read", "snapshot_name": "other"}); status.CodeOf(err) != status.NotFound {
			t.Errorf("%q: a snapshot that does not exist: %v", compression, err)
		}
		if _, err := read(opdef.Attrs{"mode": "write"}); err != nil || runs(t, dir) != 2 {
			t.Errorf("%q: %v, %d runs", compression, err, runs(t, dir))
		}
		if _, err := read(opdef.Attrs{"mode": "none"}); status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "mode must be either") {
			t.Errorf("%q: %v", compression, err)
		}
	}
}

func TestSnapshotModes(t *testing.T) {
	old, done := &pb.SnapshotMetadataRecord{CreationTimestamp: 1}, &pb.SnapshotMetadataRecord{Finalized: true}
	for _, c := range []struct {
		requested string
		m         *pb.SnapshotMetadataRecord
		want      snapshotMode
	}{
		{"auto", nil, writeSnapshot}, {"auto", old, writeSnapshot}, {"auto", done, readSnapshot}, {"write", done, writeSnapshot},
		{"read", old, readSnapshot}, {"passthrough", done, passThroughSnapshot},
	} {
		if got, err := modeOf(c.requested, c.m, 1); err != nil || got != c.want {
			t.Errorf("%s with %v: %d, %v", c.requested, c.m, got, err)
		}
	}
	if got, err := modeOf("", &pb.SnapshotMetadataRecord{CreationTimestamp: 1 << 62}, 0); err != nil || got != passThroughSnapshot {
		t.Errorf("incomplete snapshot of another writer: %d, %v", got, err)
	}
}

// TestSaveLegacySnapshotIterator saves an iterator while it writes a snapshot and continues from
// the saved state.
func TestSaveLegacySnapshotIterator(t *testing.T) {
	b := newBench(t)
	d := b.make("SnapshotDataset", b.count(0, 6), tensor.Scalar(t.TempDir()))
	it := b.iterator("it", d)
	head := b.take(it, 2)
	saved, err := b.run("save", "SerializeIterator", nil, it)
	if err != nil {
		t.Fatal(err)
	}
	b.take(it, 2)
	if _, err := b.run("restore", "DeserializeIterator", nil, it, saved[0]); err != nil {
		t.Fatal(err)
	}
	if got := append(head, b.take(it, -1)...); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 5}) {
		t.Errorf("restored: %v", got)
	}
}
