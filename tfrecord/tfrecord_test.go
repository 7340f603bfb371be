package tfrecord_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tfrecord"
)

var records = []string{"one", "", strings.Repeat("three", 1000)}

func TestFiles(t *testing.T) {
	for _, c := range []tfrecord.Compression{tfrecord.None, tfrecord.ZLIB, tfrecord.GZIP} {
		path := filepath.Join(t.TempDir(), "x.tfrecord")
		w, err := tfrecord.Create(path, c)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		for _, b := range records {
			if err := w.Write([]byte(b)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%q: the file exists before Close", c)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := tfrecord.Open(path, c)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for b, err := range r.All() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(b))
		}
		if !slices.Equal(got, records) {
			t.Errorf("%q: got %d records", c, len(got))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cut")
	var whole bytes.Buffer
	w, err := tfrecord.NewWriter(&whole, tfrecord.None)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole.Bytes()[:whole.Len()-1], 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := tfrecord.Open(path, tfrecord.None)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), path) {
		t.Errorf("for a truncated file got %v", err)
	}
	if _, err := tfrecord.Open(filepath.Join(dir, "none"), tfrecord.None); status.CodeOf(err) != status.NotFound {
		t.Errorf("for a missing file got %v", err)
	}
	if _, err := tfrecord.Create(filepath.Join(dir, "x"), "LZ4"); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("for another compression got %v", err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("the remaining files are %v", files)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "records")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "x.tfrecord")

	w, err := tfrecord.Create(path, tfrecord.GZIP)
	if err != nil {
		panic(err)
	}
	defer w.Abort()
	for _, text := range []string{"a", "b"} {
		if err := w.Write([]byte(text)); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}

	r, err := tfrecord.Open(path, tfrecord.GZIP)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for b, err := range r.All() {
		if err != nil {
			panic(err)
		}
		fmt.Println(string(b))
	}
	// Output:
	// a
	// b
}

// Write records to any io.Writer, and read them from any io.Reader.
func ExampleNewWriter() {
	var buf bytes.Buffer
	w, err := tfrecord.NewWriter(&buf, tfrecord.None)
	if err != nil {
		panic(err)
	}
	if err := w.Write([]byte("one record")); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	fmt.Println(buf.Len(), "bytes")

	r, err := tfrecord.NewReader(&buf, tfrecord.None)
	if err != nil {
		panic(err)
	}
	b, err := r.Next()
	fmt.Printf("%s, %v\n", b, err)
	// Output:
	// 26 bytes
	// one record, <nil>
}
