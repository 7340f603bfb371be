package data

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func files(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestFileCache(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "cache")
	b := newBench(t)
	cached := func(n int64) tensor.Tensor { return b.make("CacheDataset", b.count(0, n), tensor.Scalar(prefix)) }
	first := b.iterator("first", cached(4))
	b.take(first, 2)
	if _, err := b.run("next", "IteratorGetNext", b.attrs(), b.iterator("second", cached(4))); status.CodeOf(err) != status.AlreadyExists {
		t.Errorf("concurrent writers: %v", err)
	}
	// The first iteration ends in the middle.
	if _, err := b.run("again", "MakeIterator", nil, cached(4), first); err != nil {
		t.Fatal(err)
	}
	if got := b.take(first, -1); !slices.Equal(got, []int64{0, 1, 2, 3}) {
		t.Errorf("before the files are complete: %v", got)
	}
	if left := files(t, prefix+"*"); len(left) != 2 {
		t.Errorf("files are %v, want an index and a data file", left)
	}
	if got := b.take(b.iterator("reader", cached(9)), -1); !slices.Equal(got, []int64{0, 1, 2, 3}) {
		t.Errorf("from the files: %v", got)
	}
}

func TestIncompleteFileCache(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "cache")
	b := newBench(t)
	it := b.iterator("it", b.make("CacheDataset", b.count(0, 4), tensor.Scalar(prefix)))
	b.take(it, 2)
	b.env.Device.Resources.ClearAll()
	if left := files(t, prefix+"*"); len(left) != 0 {
		t.Errorf("files after closing the iterator: %v", left)
	}
}

func TestSaveFileCacheIterator(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "cache")
	b := newBench(t)
	it := b.iterator("it", b.make("CacheDataset", b.count(0, 5), tensor.Scalar(prefix)))
	var saved []tensor.Tensor
	for range 3 { // each iteration starts new files
		b.take(it, 1)
		var err error
		if saved, err = b.run("save", "SerializeIterator", nil, it); err != nil {
			t.Fatal(err)
		}
	}
	b.take(it, 1)
	if _, err := b.run("restore", "DeserializeIterator", nil, it, saved[0]); err != nil {
		t.Fatal(err)
	}
	if got := b.take(it, -1); !slices.Equal(got, []int64{3, 4}) {
		t.Errorf("after the second element: %v", got)
	}
	if got := b.take(b.iterator("reader", b.make("CacheDataset", b.count(0, 0), tensor.Scalar(prefix))), -1); !slices.Equal(got, []int64{0, 1, 2, 3, 4}) {
		t.Errorf("merged files: %v", got)
	}
}

// TestShards writes a saved dataset and reads its shards.
func TestShards(t *testing.T) {
	dir := t.TempDir()
	w := savedWriter{path: dir, run: formatRunID(1<<64 - 1), compression: "ZLIB"}
	types := []tensor.DType{tensor.Int64}
	if err := w.begin(types); err != nil {
		t.Fatal(err)
	}
	if m, err := readMetadata(fileio.Files{}, dir); err != nil || m.GetFinalized() || m.GetRunId() != "18446744073709551615" {
		t.Errorf("at the start: %v, %v", m, err)
	}
	for i := range int64(7) {
		if err := w.write(i%2, element{tensor.Scalar(i)}); err != nil {
			t.Fatal(err)
		}
		if i == 3 { // the remaining elements go to second parts
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	s := spec{types, []tensor.PartialShape{tensor.MakePartial()}}
	shards, err := shardsOf(fileio.Files{}, s, dir, w.run, "ZLIB", 0)
	if err != nil || len(shards) != 2 {
		t.Fatalf("shards %v, %v", shards, err)
	}
	b := newBench(t)
	for i, want := range [][]int64{{0, 2, 4, 6}, {1, 3, 5}} {
		for n := range len(want) + 1 {
			it, other := b.iterator("it", shards[i][0]), b.iterator("other", shards[i][0])
			head := b.take(it, n)
			saved, err := b.run("save", "SerializeIterator", nil, it)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.run("restore", "DeserializeIterator", nil, other, saved[0]); err != nil {
				t.Fatal(err)
			}
			if got := append(head, b.take(other, -1)...); !slices.Equal(got, want) {
				t.Errorf("shard %d, restored after %d: %v, want %v", i, n, got, want)
			}
		}
	}
}

func TestMetadataErrors(t *testing.T) {
	dir := t.TempDir()
	if m, err := readMetadata(fileio.Files{}, dir); m != nil || err != nil {
		t.Errorf("no file: %v, %v", m, err)
	}
	if err := os.WriteFile(filepath.Join(dir, metadataFile), []byte("\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readMetadata(fileio.Files{}, dir); status.CodeOf(err) != status.DataLoss {
		t.Errorf("damaged: %v", err)
	}
}
