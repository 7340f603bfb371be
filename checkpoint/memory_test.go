package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// limit sets the memory limit for the rest of a test.
func limit(t *testing.T, bytes int64) {
	t.Helper()
	old := membudget.Limit()
	t.Cleanup(func() { membudget.SetLimit(old) })
	membudget.SetLimit(bytes)
}

// TestMemoryOfKeys opens an index whose entries share all but the end of a long key.
func TestMemoryOfKeys(t *testing.T) {
	long := strings.Repeat("k", 1<<20)
	appendEntry := func(b []byte, shared int, delta, value string) []byte {
		b = binary.AppendUvarint(b, uint64(shared))
		b = binary.AppendUvarint(b, uint64(len(delta)))
		b = binary.AppendUvarint(b, uint64(len(value)))
		return append(append(b, delta...), value...)
	}
	block := appendEntry(nil, 0, "", "\x08\x01") // the header
	block = appendEntry(block, 0, long, "")
	for i := range uint32(1000) {
		block = appendEntry(block, len(long), string(binary.BigEndian.AppendUint32(nil, i)), "")
	}
	var file []byte
	write := func(b []byte) (handle []byte) {
		handle = binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(file))), uint64(len(b)+4))
		at := len(file)
		file = append(append(file, b...), 0, 0, 0, 0, 0) // no restarts, no compression
		file = binary.LittleEndian.AppendUint32(file, crc32c.Mask(crc32c.Sum(file[at:])))
		return handle
	}
	index := write(appendEntry(nil, 0, "z", string(write(block))))
	footer := make([]byte, 40)
	copy(footer[copy(footer, index):], index)
	file = binary.LittleEndian.AppendUint64(append(file, footer...), 0xdb4775248b80fb57)
	prefix := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(IndexFile(prefix), file, 0o600); err != nil {
		t.Fatal(err)
	}
	limit(t, 256<<20)
	if _, err := Open(prefix); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// TestMemoryOfStrings reads and writes short strings, whose headers take more than their bytes.
func TestMemoryOfStrings(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "c")
	v := tensor.Vector(make([]string, 4<<20)...)
	b, err := Create(prefix)
	if err == nil {
		err = b.Add("v", &v)
	}
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	limit(t, 128<<20)
	if _, err := r.Read("v"); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("reading: got %v", err)
	}
	w := CreateV1(filepath.Join(t.TempDir(), "v1"))
	if err := w.Add("v", &v); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("writing: got %v", err)
	}
}

// TestMemoryOfNames writes the slices of a tensor with a long name, which is in the key of each.
func TestMemoryOfNames(t *testing.T) {
	const n = 200
	name, v := strings.Repeat("n", 1<<20), tensor.Vector[int32](1)
	v2, err := Create(filepath.Join(t.TempDir(), "c"))
	if err != nil {
		t.Fatal(err)
	}
	defer v2.Abort()
	v1 := CreateV1(filepath.Join(t.TempDir(), "v1"))
	limit(t, 96<<20)
	for _, w := range []interface {
		AddSlice(name string, full tensor.Shape, s Slice, t *tensor.Tensor) error
	}{v1, v2} {
		var err error
		for i := int64(0); i < n && err == nil; i++ {
			err = w.AddSlice(name, tensor.Shape{n}, Slice{{i, 1}}, &v)
		}
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%T: got %v", w, err)
		}
		*v1 = V1Writer{}
		runtime.GC()
	}
}

// TestMemoryOfMerge merges a checkpoint whose entries are all in files of their own.
func TestMemoryOfMerge(t *testing.T) {
	const n = 50_000
	dir := t.TempDir()
	entries := map[string]*pb.BundleEntryProto{}
	for i := range int32(n) {
		entries[fmt.Sprint(i)] = &pb.BundleEntryProto{ShardId: i}
	}
	prefix := dir + strings.Repeat("/.", 1800) + "/c"
	index, err := Store{}.newIndex(prefix, header(n), entries)
	if err == nil {
		err = index.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	clear(entries)
	runtime.GC()
	limit(t, 128<<20)
	if err := Merge([]string{prefix}, dir+"/all", false); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %.300v", err)
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLongStringsAreNotCopied writes a long string.
func TestLongStringsAreNotCopied(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "c"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	v := tensor.Scalar(strings.Repeat("x", 16<<20))
	if n := allocated(func() { err = w.Add("v", &v) }); err != nil || n > 4<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestLongSpecs parses specifications of slices with more dimensions than a tensor has.
func TestLongSpecs(t *testing.T) {
	for _, spec := range []string{
		strings.Repeat(" ", 1<<20), "1 " + strings.Repeat("-:", 1<<20), "1 " + strings.Repeat("1,", 1<<20),
	} {
		var err error
		n := allocated(func() { _, _, _, err = ParseShapeAndSlice(spec) })
		if status.CodeOf(err) != status.InvalidArgument || n > 1<<20 {
			t.Errorf("%.10q: %d bytes, %.100v", spec, n, err)
		}
	}
}

// TestOverlapsEndWithContext compares each two pieces of a tensor.
func TestOverlapsEndWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	parts := slices.Repeat([]*piece{{slice: Slice{{0, 1}}}}, 2)
	if err := disjoint(In(fileio.Files{}.In(ctx)), "v", parts, tensor.Shape{1}); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
}
