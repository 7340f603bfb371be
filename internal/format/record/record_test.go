package record

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/golang/snappy"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

func write(t testing.TB, c Compression, records ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(b []byte, c Compression) (records []string, err error) {
	r, err := NewReader(bytes.NewReader(b), c)
	if err != nil {
		return nil, err
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		records = append(records, string(rec))
	}
}

// TestBytes compares with the bytes that TensorFlow writes.
func TestBytes(t *testing.T) {
	if got := hex.EncodeToString(write(t, None, "abc")); got != "0300000000000000b099490e6162636e57f121" {
		t.Errorf("a record is %s", got)
	}
}

func TestRoundTrip(t *testing.T) {
	records := []string{"", "a", strings.Repeat("long ", 100000)}
	for _, c := range []Compression{None, "NONE", ZLIB, GZIP, Snappy} {
		got, err := read(write(t, c, records...), c)
		if err != nil || strings.Join(got, "|") != strings.Join(records, "|") {
			t.Errorf("%q: read %d records, %v", c, len(got), err)
		}
		if got, err := read(nil, c); err != nil || got != nil {
			t.Errorf("%q: in an empty file read %q, %v", c, got, err)
		}
	}
	if _, err := NewWriter(io.Discard, "LZ"); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("an unknown compression: %v", err)
	}
	if _, err := read(nil, "LZ"); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("an unknown compression: %v", err)
	}
}

// TestDamage flips every byte and truncates at every byte. The reader must return the records
// before the damage and detect the damage.
func TestDamage(t *testing.T) {
	want := []string{"first", "second"}
	for _, c := range []Compression{None, ZLIB, GZIP, Snappy} {
		file := write(t, c, want...)
		check := func(what string, at int, b []byte) {
			t.Helper()
			got, err := read(b, c)
			for i, r := range got {
				if i >= len(want) || r != want[i] {
					t.Fatalf("%q, %s at %d: record %d is %q", c, what, at, i, r)
				}
			}
			if err != nil && status.CodeOf(err) != status.DataLoss {
				t.Errorf("%q, %s at %d: %v", c, what, at, err)
			}
			if err == nil && len(got) < len(want) && !(c == None && len(b) == 5+16 || len(b) == 0) {
				t.Errorf("%q, %s at %d: %d records and no error", c, what, at, len(got))
			}
		}
		for i := range file {
			b := bytes.Clone(file)
			b[i] ^= 0x40
			check("flipped", i, b)
			check("cut", i, file[:i])
		}
	}
}

// TestHugeLength reads a record whose length exceeds the memory of the machine.
func TestHugeLength(t *testing.T) {
	b, err := hex.DecodeString("ffffffffffffff3f" + "00000000" + "6162")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(b, None); status.CodeOf(err) != status.DataLoss {
		t.Errorf("got %v", err)
	}
}

// A block is much smaller in the file than in memory.
func TestMemoryOfBlocks(t *testing.T) {
	block := snappy.Encode(nil, make([]byte, 256<<20))
	file := append(binary.BigEndian.AppendUint32(nil, uint32(len(block))), block...)
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(128 << 20)
	if _, err := read(file, Snappy); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	if _, err := read([]byte{0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 3}, Snappy); status.CodeOf(err) != status.DataLoss {
		t.Errorf("a block that claims to be large: got %v", err)
	}
}

func FuzzReader(f *testing.F) {
	for _, c := range []Compression{None, ZLIB, GZIP, Snappy} {
		f.Add(string(c), write(f, c, "a", "record"))
	}
	f.Fuzz(func(t *testing.T, c string, b []byte) {
		records, err := read(b, Compression(c))
		if err == nil && Compression(c) == None && len(records) > 0 && !bytes.Equal(write(t, None, records...), b) {
			t.Errorf("%d records differ from those of the file", len(records))
		}
	})
}

// A writer asks for its buffers, also for those of the compression.
func TestMemoryOfWriters(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(64 << 20)
	var all []*Writer
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		var w *Writer
		if w, err = NewWriter(io.Discard, GZIP); err == nil {
			all = append(all, w)
			err = w.Write([]byte("record"))
		}
	}
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("after %d writers: %v", len(all), err)
	}
}

// Each open file has a buffer.
func TestMemoryOfReaders(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(64 << 20)
	var all []*Reader
	var err error
	for i := 0; i < 2000 && err == nil; i++ {
		var r *Reader
		if r, err = NewReader(strings.NewReader(""), None); err == nil {
			all = append(all, r)
		}
	}
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("after %d readers: %v", len(all), err)
	}
	runtime.KeepAlive(all)
}
