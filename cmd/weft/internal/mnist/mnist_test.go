package mnist

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// idx encodes data as an IDX file.
func idx(t *testing.T, data []byte, inner ...int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, data, inner...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zip(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// folder writes a data set of two images for training and one for testing. files replaces files or,
// with nil, removes them.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	all := map[string][]byte{
		trainImages: idx(t, make([]byte, 2*Pixels), Side, Side),
		trainLabels: idx(t, []byte{7, 1}),
		testImages:  idx(t, bytes.Repeat([]byte{255}, Pixels), Side, Side),
		testLabels:  idx(t, []byte{3}),
	}
	for name, data := range files {
		delete(all, strings.TrimSuffix(strings.Replace(name, ".idx", "-idx", 1), ".gz"))
		all[name] = data
	}
	dir := t.TempDir()
	for name, data := range all {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoadFindsEveryKindOfFile(t *testing.T) {
	set, err := Load(folder(t, map[string][]byte{
		trainLabels + ".gz":      zip(t, idx(t, []byte{7, 1})),
		"t10k-labels.idx1-ubyte": idx(t, []byte{3}),
		// gzipped, but not by name
		testImages: zip(t, idx(t, bytes.Repeat([]byte{255}, Pixels), Side, Side)),
	}))
	if err != nil {
		t.Fatal(err)
	}
	if set.Train.Len() != 2 || set.Test.Len() != 1 {
		t.Errorf("got %d and %d images, want 2 and 1", set.Train.Len(), set.Test.Len())
	}
	if set.Train.Label(0) != 7 || set.Test.Label(0) != 3 || set.Test.Image(0)[Pixels-1] != 255 {
		t.Error("labels or images differ from those in the files")
	}
}

func TestLoadNamesTheFaultAndTheFile(t *testing.T) {
	labels := func(data ...byte) []byte { return idx(t, data) }
	zipped := zip(t, idx(t, make([]byte, 2*Pixels), Side, Side))
	damaged := bytes.Clone(zipped)
	damaged[len(damaged)-5] ^= 0xff // in the checksum
	for name, tt := range map[string]struct {
		file string
		data []byte
		want string
	}{
		"missing":          {testLabels, nil, "t10k-labels-idx1-ubyte.gz: the folder must contain"},
		"empty":            {trainLabels, []byte{}, "truncated: no IDX header"},
		"no IDX":           {trainLabels, []byte("<!DOCTYPE html>"), "not an IDX file"},
		"labels as images": {trainImages, append(labels(7, 1), make([]byte, 20)...), "not an IDX file of bytes with 3 dimensions"},
		"other size":       {trainImages, idx(t, make([]byte, 2*32*32), 32, 32), "dimension 1 is 32, want 28"},
		"truncated":        {trainImages, idx(t, make([]byte, 2*Pixels), Side, Side)[:1000], "truncated: 984 of 1568 bytes"},
		"truncated gzip":   {trainImages + ".gz", zipped[:len(zipped)-9], "truncated: "},
		"damaged gzip":     {trainImages + ".gz", damaged, "damaged after 1568 of 1568 bytes"},
		"damaged start":    {trainImages + ".gz", []byte{0x1f, 0x8b, 9, 9}, "damaged gzip header"},
		"too long":         {trainLabels, append(labels(7, 1), 0), "more than the 2 bytes"},
		"no items":         {trainLabels, labels(), "claims 0 items"},
		"too many items":   {trainLabels, []byte{0, 0, 8, 1, 255, 255, 255, 255, 1}, "claims 4294967295 items"},
		"counts differ":    {trainLabels, labels(7, 1, 2), "has 2 images, but"},
		"label above nine": {trainLabels, labels(7, 10), "label 1 is 10, want 0 to 9"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(folder(t, map[string][]byte{tt.file: tt.data}))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.file) {
				t.Errorf("got %v, want one with %q that names %s", err, tt.want, tt.file)
			}
		})
	}
	if _, err := Load(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: got %v, want fs.ErrNotExist", err)
	}
}

func TestBatchesCoverEachEpochOnce(t *testing.T) {
	s := &Split{images: make([]byte, 5*Pixels), labels: []byte{0, 1, 2, 3, 4}}
	for i := range s.Len() {
		s.Image(i)[0] = byte(51 * s.Label(i))
	}
	x, y := make([]float32, 2*Pixels), make([]float32, 2*Classes)
	var seen [Classes]float32
	for b := s.Batches(1); seen[4] < 4; {
		b.Next(x, y)
		for i := range 2 {
			one := y[i*Classes : (i+1)*Classes]
			for digit, v := range one {
				seen[digit] += v
				if v == 1 && x[i*Pixels] != float32(digit)/5 {
					t.Errorf("the label %d has the image %v", digit, x[i*Pixels]*5)
				}
			}
		}
		if most, least := max(seen[0], seen[1], seen[2], seen[3], seen[4]), min(seen[0], seen[1], seen[2], seen[3], seen[4]); most-least > 1 {
			t.Fatalf("images were returned %v times: an epoch starts before the last one ends", seen[:5])
		}
	}
}

func TestBatchesFollowTheSeed(t *testing.T) {
	s := &Split{images: make([]byte, 100*Pixels), labels: make([]byte, 100)}
	for i := range s.labels {
		s.labels[i] = byte(i % Classes)
	}
	first := func(seed uint64) string {
		y := make([]float32, 50*Classes)
		s.Batches(seed).Next(make([]float32, 50*Pixels), y)
		var b strings.Builder
		for i, v := range y {
			if v == 1 {
				b.WriteByte('0' + byte(i%Classes))
			}
		}
		return b.String()
	}
	one, again, two := first(1), first(1), first(2)
	if one != again {
		t.Error("the same seed gives different orders")
	}
	if one == two {
		t.Error("two seeds give the same order")
	}
}

// FuzzRead looks for input that makes the reader panic or return data of another size than the
// header claims.
func FuzzRead(f *testing.F) {
	var plain bytes.Buffer
	if err := encode(&plain, make([]byte, 6), 2, 3); err != nil {
		f.Fatal(err)
	}
	f.Add(plain.Bytes())
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(plain.Bytes()); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(zipped.Bytes())
	f.Add([]byte{0, 0, 8, 3, 255, 255, 255, 255, 0, 0, 0, 2, 0, 0, 0, 3, 1})
	f.Fuzz(func(t *testing.T, input []byte) {
		data, err := read(bytes.NewReader(input), 2, 3)
		if err != nil {
			return
		}
		if len(data) == 0 || len(data)%6 != 0 {
			t.Fatalf("%d bytes are not items of 2x3", len(data))
		}
		var again bytes.Buffer
		if err := encode(&again, data, 2, 3); err != nil {
			t.Fatal(err)
		}
		back, err := read(&again, 2, 3)
		if err != nil || !bytes.Equal(back, data) {
			t.Fatalf("the data cannot be written and read again: %v", err)
		}
	})
}
