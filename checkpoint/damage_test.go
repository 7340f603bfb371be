package checkpoint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestDamage flips every byte of the files of a checkpoint and truncates the files at every byte.
// The reader must return the right values, or an error with the code DataLoss that names the file.
func TestDamage(t *testing.T) {
	all := recorded(t)
	for _, test := range []struct{ prefix, file string }{
		{"v2", "v2.index"}, {"v2", "v2.data-00000-of-00001"}, {"merged", "merged.index"}, {"v1", "v1"},
	} {
		dir := t.TempDir()
		copyFiles(t, "testdata", dir, test.prefix)
		path := filepath.Join(dir, test.file)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		try := func(b []byte, how string, at int) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			found += damaged(t, filepath.Join(dir, test.prefix), all, how, at)
		}
		for i := range good {
			b := bytes.Clone(good)
			b[i] ^= []byte{0xff, 0x01, 0x80}[i%3]
			try(b, "flipped", i)
			try(good[:i], "cut", i)
		}
		if found < len(good) {
			t.Errorf("%s: of %d damaged bytes only %d were detected", test.file, len(good), found)
		}
	}
}

// damaged reads a checkpoint and returns 1 if the reader detects the damage.
func damaged(t *testing.T, prefix string, all []named, how string, at int) int {
	t.Helper()
	bad := func(err error) {
		t.Helper()
		switch code := status.CodeOf(err); {
		case code != status.DataLoss:
			t.Errorf("%s at %d: %v: %v", how, at, code, err)
		case !strings.Contains(err.Error(), filepath.Dir(prefix)):
			t.Errorf("%s at %d: the error does not name the file: %v", how, at, err)
		}
	}
	r, err := Open(prefix)
	if err != nil {
		bad(err)
		return 1
	}
	defer r.Close()
	found := 0
	for _, n := range all {
		if _, err := r.Lookup(n.name); err != nil {
			if filepath.Base(prefix) == "v2" { // the other checkpoints have fewer tensors
				bad(err)
			}
			found = 1
			continue
		}
		s := n.part
		if s == nil {
			s = FullSlice(n.t.Rank())
		}
		got, err := r.ReadSlice(n.name, s)
		if err != nil {
			bad(err)
			found = 1
		} else if !same(&got, &n.t) {
			t.Fatalf("%s at %d: wrong values of %s: %v", how, at, n.name, got.String())
		}
	}
	return found
}

func copyFiles(t *testing.T, from, to, prefix string) {
	t.Helper()
	for _, name := range list(t, from) {
		if name != prefix && !strings.HasPrefix(name, prefix+".") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMissingShard reads elements whose data file is missing.
func TestMissingShard(t *testing.T) {
	dir := t.TempDir()
	copyFiles(t, "testdata", dir, "v2")
	path := filepath.Join(dir, "v2.data-00000-of-00001")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := mustOpen(t, filepath.Join(dir, "v2")).Read("scalar")
	if status.CodeOf(err) != status.NotFound || err.Error() != path+"; No such file or directory" {
		t.Errorf("got %v", err)
	}
}

// readEverything reads all tensors in arbitrary files.
func readEverything(prefix string) {
	r, err := Open(prefix)
	if err != nil {
		return
	}
	defer r.Close()
	for _, info := range r.Tensors() {
		if x, err := r.Read(info.Name); err == nil {
			x.Release()
		}
	}
}

func FuzzIndex(f *testing.F) {
	for _, prefix := range []string{"testdata/v2", "testdata/merged"} {
		b, err := os.ReadFile(IndexFile(prefix))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	data, err := os.ReadFile(DataFile("testdata/v2", 0, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, index []byte) {
		prefix := filepath.Join(t.TempDir(), "ck")
		for path, b := range map[string][]byte{IndexFile(prefix): index, DataFile(prefix, 0, 1): data} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		readEverything(prefix)
	})
}

func FuzzData(f *testing.F) {
	index, err := os.ReadFile(IndexFile("testdata/v2"))
	if err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(DataFile("testdata/v2", 0, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	all := recorded(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		prefix := filepath.Join(t.TempDir(), "ck")
		for path, b := range map[string][]byte{IndexFile(prefix): index, DataFile(prefix, 0, 1): data} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := mustOpen(t, prefix)
		for _, n := range all {
			if x, err := r.Read(n.name); err == nil && n.part == nil && !same(&x, &n.t) {
				t.Errorf("wrong values of %s", n.name)
			}
		}
	})
}

func FuzzV1(f *testing.F) {
	b, err := os.ReadFile("testdata/v1")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "v1")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		readEverything(path)
	})
}

// TestHostileEntries writes indexes with false entries and right checksums.
func TestHostileEntries(t *testing.T) {
	type entry = pb.BundleEntryProto
	type change struct {
		name string
		of   func(e *entry)
	}
	for _, c := range []change{
		{"negative dimension", func(e *entry) { e.Shape.Dim[0].Size = -2 }},
		{"unknown dimension", func(e *entry) { e.Shape.Dim[0].Size = -1 }},
		{"more elements than there are bytes", func(e *entry) { e.Shape.Dim[0].Size = 1 << 40 }},
		{"overflow", func(e *entry) { e.Shape.Dim[0].Size, e.Shape.Dim[1].Size = 1<<62, 1<<62 }},
		{"size beyond the file", func(e *entry) { e.Size, e.Shape.Dim[0].Size = 1<<40, 1<<40/12 }},
		{"offset beyond the file", func(e *entry) { e.Offset = 1 << 62 }},
		{"negative offset", func(e *entry) { e.Offset = -1 }},
		{"negative size", func(e *entry) { e.Size = -24 }},
		{"another size", func(e *entry) { e.Size = 23 }},
		{"shard", func(e *entry) { e.ShardId = 1 }},
		{"negative shard", func(e *entry) { e.ShardId = -1 }},
		{"no type", func(e *entry) { e.Dtype = 0 }},
		{"resource", func(e *entry) { e.Dtype = 20 }},
		{"reference", func(e *entry) { e.Dtype = 101 }},
		{"unknown type", func(e *entry) { e.Dtype = 1 << 20 }},
		{"strings", func(e *entry) { e.Dtype = 7 }},
		{"variants", func(e *entry) { e.Dtype = 21 }},
		{"checksum", func(e *entry) { e.Crc32C++ }},
		{"slice without its entry", func(e *entry) { e.Slices = append(e.Slices, Slice{{0, 1}, {0, -1}}.toProto()) }},
		{"slice outside", func(e *entry) { e.Slices = append(e.Slices, Slice{{0, 3}, {0, -1}}.toProto()) }},
		{"slice of another rank", func(e *entry) { e.Slices = append(e.Slices, Slice{{0, 1}}.toProto()) }},
		{"slice that overflows", func(e *entry) { e.Slices = append(e.Slices, Slice{{1<<63 - 1, 1<<63 - 1}, {0, -1}}.toProto()) }},
	} {
		prefix := filepath.Join(t.TempDir(), "ck")
		x, err := tensor.FromSlice(tensor.Shape{2, 3}, []float32{1, 2, 3, 4, 5, 6})
		if err != nil {
			t.Fatal(err)
		}
		write(t, prefix, named{name: "x", t: x})
		header, entries, err := Store{}.readIndex(prefix)
		if err != nil {
			t.Fatal(err)
		}
		c.of(entries["x"])
		index, err := Store{}.newIndex(prefix, header, entries)
		if err != nil {
			t.Fatal(err)
		}
		if err := index.Commit(); err != nil {
			t.Fatal(err)
		}
		r, err := Open(prefix)
		if err == nil {
			_, err = r.Read("x")
			r.Close()
		}
		if status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), prefix) {
			t.Errorf("%s: got %v: %v", c.name, status.CodeOf(err), err)
		}
	}
}
