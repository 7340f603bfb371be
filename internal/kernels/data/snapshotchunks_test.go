package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// writeChunk writes a chunk of numbers below a snapshot.
func writeChunk(t *testing.T, path string, numbers ...int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := record.NewWriter(file, record.Snappy)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		v := num(n)
		p, err := pbconv.TensorToProto(&v)
		if err != nil {
			t.Fatal(err)
		}
		text, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotChunks(t *testing.T) {
	dir := t.TempDir()
	chunks := filepath.Join(dir, "chunks")
	if err := os.Mkdir(chunks, 0o755); err != nil {
		t.Fatal(err)
	}
	names := []string{"chunk_1_0_2", "chunk_0_10_1", "chunk_0_9_1"}
	writeChunk(t, filepath.Join(chunks, names[0]), 1, 2)
	writeChunk(t, filepath.Join(chunks, names[1]), 4)
	writeChunk(t, filepath.Join(chunks, names[2]), 3)

	b := newBench(t)
	strings1 := opdef.Attrs{"output_types": []tensor.DType{tensor.String}, "output_shapes": make([]tensor.PartialShape, 1)}
	list, err := b.run("list", "ListSnapshotChunksDataset", strings1, tensor.Scalar(dir))
	if err != nil {
		t.Fatal(err)
	}
	if d, _ := datasetOf(&list[0]); d.cardinality() != unknown {
		t.Errorf("incomplete snapshot: %d chunks", d.cardinality())
	}
	it, err := b.run("it", "AnonymousIteratorV3", strings1)
	if err == nil {
		_, err = b.run("make", "MakeIterator", nil, list[0], it[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for i := 0; ; i++ {
		if i == len(names) {
			if err := os.WriteFile(filepath.Join(dir, "DONE"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		name, err := b.run("next", "IteratorGetNext", strings1, it[0])
		if status.CodeOf(err) == status.OutOfRange {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		attrs := b.attrs()
		attrs["compression"] = "SNAPPY"
		d, err := b.run("chunk", "SnapshotChunkDataset", attrs, name[0])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.take(b.iterator("chunk", d[0]), -1)...)
	}
	if want := []int64{1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if d, _ := datasetOf(&list[0]); d.cardinality() != 3 {
		t.Errorf("the snapshot has %d chunks, want 3", d.cardinality())
	}

	if err := os.WriteFile(filepath.Join(dir, "ERROR"), []byte("code: DATA_LOSS\nmessage: \"no \\\"more\\\"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = b.run("make", "MakeIterator", nil, list[0], it[0]); err == nil {
		_, err = b.run("next", "IteratorGetNext", strings1, it[0])
	}
	if status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), `no "more"`) {
		t.Errorf("a failed snapshot: %v", err)
	}
}
