package checkpoint

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/format/crc32c"
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
