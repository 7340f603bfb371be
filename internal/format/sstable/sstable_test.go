package sstable

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/golang/snappy"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

type entry struct{ key, value string }

func build(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, e := range entries {
		if err := w.Add([]byte(e.key), []byte(e.value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(b []byte) (*Reader, error) { return NewReader(bytes.NewReader(b), int64(len(b))) }

func all(b []byte) (entries []entry, err error) {
	r, err := open(b)
	if err != nil {
		return nil, err
	}
	for k, v := range r.All(&err) {
		entries = append(entries, entry{string(k), string(v)})
	}
	return entries, err
}

func someEntries(n, valueSize int) []entry {
	entries := []entry{{"", "the empty key"}}
	for i := range n {
		entries = append(entries, entry{fmt.Sprintf("layer_%d/w_%d", i%7, i), string(bytes.Repeat([]byte{byte(i)}, valueSize))})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	return entries
}

// TestBytes compares a table of several blocks with the one that TensorFlow wrote for the index of
// a checkpoint of 12,000 scalars.
func TestBytes(t *testing.T) {
	entries := []entry{{"", "\x08\x01\x1a\x02\x08\x01"}}
	for k := range 12000 {
		entries = append(entries, entry{key: fmt.Sprintf("layer_%d/weights_%d/Adam", k%37, k), value: scalarEntry(4 * k)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	b := build(t, entries)
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:]); len(b) != 316108 || got != "90719626f6f52917286090fb0a544ec862ba668284fb1d6f13f229fa3cd40ada" {
		t.Errorf("%d bytes with the checksum %s", len(b), got)
	}
}

// scalarEntry returns the BundleEntryProto of a float of value 1 at an offset.
func scalarEntry(offset int) string {
	b := []byte{0x08, 1, 0x12, 0}
	if offset > 0 {
		b = binary.AppendUvarint(append(b, 0x20), uint64(offset))
	}
	return string(binary.LittleEndian.AppendUint32(append(b, 0x28, 4, 0x35), crc32c.Mask(crc32c.Sum([]byte{0, 0, 0x80, 0x3f}))))
}

func TestRoundTrip(t *testing.T) {
	for _, entries := range [][]entry{nil, {{"a", "b"}}, someEntries(100, 3), someEntries(50, 20000), {{"\xff", "1"}, {"\xff\xff", "2"}}} {
		b := build(t, entries)
		got, err := all(b)
		if err != nil || !slices.Equal(got, entries) {
			t.Errorf("%d entries: read %d, %v", len(entries), len(got), err)
		}
		r, err := open(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if v, err := r.Get([]byte(e.key)); err != nil || string(v) != e.value {
				t.Errorf("%q is %d bytes, %v", e.key, len(v), err)
			}
			if v, err := r.Get([]byte(e.key + "\x00")); err != nil || v != nil {
				t.Errorf("%q was found, %v", e.key+"\x00", err)
			}
		}
	}
}

func TestKeysMustAscend(t *testing.T) {
	w := NewWriter(&bytes.Buffer{})
	if err := w.Add([]byte("b"), nil); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if err := w.Add([]byte(key), nil); status.CodeOf(err) != status.Internal {
			t.Errorf("%s after b: %v", key, err)
		}
	}
}

// TestCompressed reads compressed blocks, and one whose claimed size is impossible.
func TestCompressed(t *testing.T) {
	var plain blockWriter
	plain.interval = 1
	plain.add([]byte("key"), bytes.Repeat([]byte("value"), 1000))
	packed := snappy.Encode(nil, plain.finish())
	file := func(block []byte, kind byte) []byte {
		var b bytes.Buffer
		w := NewWriter(&b)
		trailer := []byte{kind}
		crc := crc32c.Update(crc32c.Sum(block), trailer)
		b.Write(binary.LittleEndian.AppendUint32(append(slices.Clone(block), kind), crc32c.Mask(crc)))
		w.offset = uint64(b.Len())
		w.lastKey, w.pending = []byte("key"), &handle{0, uint64(len(block))}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if got, err := all(file(packed, compressionSnappy)); err != nil || len(got) != 1 || len(got[0].value) != 5000 {
		t.Errorf("%d entries, %v", len(got), err)
	}
	huge := append(binary.AppendUvarint(nil, 1<<31), packed[2:]...)
	for what, b := range map[string][]byte{"unknown kind": file(packed, 7), "huge": file(huge, compressionSnappy), "not packed": file([]byte("xx"), compressionSnappy)} {
		if _, err := all(b); status.CodeOf(err) != status.DataLoss {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestMemory reads a block that is much smaller in the file than in memory.
func TestMemory(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(64 << 20)
	if _, err := uncompress(snappy.Encode(nil, make([]byte, 128<<20))); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// TestDamage flips and truncates. The reader must return an error or the right entries.
func TestDamage(t *testing.T) {
	want := someEntries(20, 5)
	good := build(t, want)
	check := func(what string, at int, b []byte) {
		t.Helper()
		got, err := all(b)
		if err == nil && !slices.Equal(got, want) {
			t.Errorf("%s at %d: wrong entries and no error", what, at)
		}
		if err != nil && status.CodeOf(err) != status.DataLoss {
			t.Errorf("%s at %d: %v", what, at, err)
		}
	}
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			check("flipped", i, b)
		}
		check("cut", i, good[:i])
	}
}

// FuzzBlock fuzzes the parser of blocks without the checksums, which would reject most inputs.
func FuzzBlock(f *testing.F) {
	w := blockWriter{interval: restartInterval}
	for _, e := range someEntries(20, 3) {
		w.add([]byte(e.key), []byte(e.value))
	}
	f.Add(w.finish(), []byte("layer_3/w_3"))
	f.Fuzz(func(t *testing.T, b, key []byte) {
		block, err := parseBlock(b)
		if err != nil {
			return
		}
		for range block.all(0, &err) {
		}
		if k, _, ok, err := block.seek(key); err == nil && ok && bytes.Compare(k, key) < 0 {
			t.Errorf("seek(%q) returned %q", key, k)
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add(build(f, someEntries(20, 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := open(b); err == nil {
			_, _ = r.Get([]byte("layer_3/w_3"))
		}
		_, _ = all(b)
	})
}

// A long value is copied to its block.
func TestMemoryOfValues(t *testing.T) {
	value := make([]byte, 32<<20)
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(48 << 20)
	w := NewWriter(io.Discard)
	if err := w.Add([]byte("k"), value); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
