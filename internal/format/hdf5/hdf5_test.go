package hdf5_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/format/hdf5"
	"github.com/weft-ml/weft/status"
)

func parts(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/parts.h5")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t *testing.T, b []byte) *hdf5.Object {
	t.Helper()
	f, err := hdf5.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	root, err := f.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestDatasets(t *testing.T) {
	root := open(t, parts(t))
	square, values := []int64{2, 2}, []float32{1.5, -2, 0.25, 8}
	for _, tt := range []struct {
		name  string
		shape []int64
		want  []float32
	}{
		{"floats/<f2", square, values},
		{"floats/<f4", square, values},
		{"floats/<f8", square, values},
		{"floats/>f4", square, values},
		{"scalar", []int64{}, []float32{3}},
		{"empty", []int64{0, 3}, []float32{}},
		{"unwritten", []int64{2}, []float32{0, 0}},
		{"compact", []int64{2}, []float32{7, 9}},
	} {
		o, err := root.Find(tt.name)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := o.Dataset().Floats()
		if err != nil || !slices.Equal(got, tt.want) || !slices.Equal(o.Dataset().Shape(), tt.shape) {
			t.Errorf("%s is %v of shape %v, want %v of %v; %v", tt.name, got, o.Dataset().Shape(), tt.want, tt.shape, err)
		}
	}
	integers, err := root.Find("integers")
	if err != nil {
		t.Fatal(err)
	}
	if class, size := integers.Dataset().Type(); class != hdf5.Fixed || size != 8 {
		t.Errorf("integers are of class %d with %d bytes, want %d with 8", class, size, hdf5.Fixed)
	}
	if b, err := integers.Dataset().Bytes(); err != nil || len(b) != 24 || b[8] != 1 || b[16] != 2 {
		t.Errorf("the integers are %v; %v", b, err)
	}
	if _, err := integers.Dataset().Floats(); status.CodeOf(err) != status.Unimplemented {
		t.Errorf("integers as floats: %v, want Unimplemented", err)
	}
}

func TestAttributes(t *testing.T) {
	root := open(t, parts(t))
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"text", []string{"grüße"}},
		{"texts", []string{"one", "", "three"}},
		{"fixed", []string{"ab", "c"}},
		{"none", []string{}},
	} {
		got, ok, err := root.Strings(tt.name)
		if err != nil || !ok || !slices.Equal(got, tt.want) {
			t.Errorf("attribute %s is %q, want %q; %v", tt.name, got, tt.want, err)
		}
	}
	if _, ok, err := root.Strings("absent"); ok || err != nil {
		t.Errorf("an absent attribute: %v, %v", ok, err)
	}
	if _, _, err := root.Strings("number"); status.CodeOf(err) != status.Unimplemented {
		t.Errorf("a number as a string: %v, want Unimplemented", err)
	}
	scalar, err := root.Find("scalar")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := scalar.Strings("attribute 39"); err != nil || !slices.Equal(got, []string{"value 39"}) {
		t.Errorf("the last of many attributes is %q; %v", got, err)
	}
}

func TestGroups(t *testing.T) {
	root := open(t, parts(t))
	many, err := root.Find("many")
	if err != nil {
		t.Fatal(err)
	}
	names, err := many.Names()
	if err != nil || len(names) != 300 || names[0] != "member 0" {
		t.Errorf("the group has %d members, want 300 and no symbolic link; %v", len(names), err)
	}
	if o, err := root.Find("many/member 299"); err != nil || o.IsGroup() || o.Path() != "/many/member 299" {
		t.Errorf("the last member: %v, %v", o, err)
	}
	if _, err := root.Find("many/absent"); status.CodeOf(err) != status.NotFound || !strings.Contains(err.Error(), "/many/absent") {
		t.Errorf("an absent member: %v, want NotFound", err)
	}
}

func TestUnsupported(t *testing.T) {
	root := open(t, parts(t))
	chunks, err := root.Find("chunks")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chunks.Dataset().Floats(); status.CodeOf(err) != status.Unimplemented {
		t.Errorf("chunks: %v, want Unimplemented", err)
	}
	if _, err := root.Find("compressed"); status.CodeOf(err) != status.Unimplemented {
		t.Errorf("compressed data: %v, want Unimplemented", err)
	}
	b := parts(t)
	b[8] = 2
	if _, err := hdf5.Open(bytes.NewReader(b), int64(len(b))); status.CodeOf(err) != status.Unimplemented {
		t.Errorf("another superblock: %v, want Unimplemented", err)
	}
}

// walk reads all of a file, up to a number of objects.
func walk(o *hdf5.Object, left *int) error {
	if *left--; *left < 0 {
		return nil
	}
	for _, name := range []string{"text", "texts", "fixed", "none", "number"} {
		if _, _, err := o.Strings(name); err != nil {
			return err
		}
	}
	if !o.IsGroup() {
		_, err := o.Dataset().Floats()
		return err
	}
	names, err := o.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if *left <= 0 {
			break
		}
		member, err := o.Find(name)
		if err == nil {
			err = walk(member, left)
		}
		if code := status.CodeOf(err); err != nil && code != status.Unimplemented && code != status.DataLoss {
			return err
		}
	}
	return nil
}

// TestTruncated reads every beginning of the file.
func TestTruncated(t *testing.T) {
	b := parts(t)
	for n := 0; n < len(b); n += 61 {
		check(t, b[:n])
	}
}

func FuzzOpen(f *testing.F) {
	// small, because the fuzzer also makes its inputs minimal
	b, err := os.ReadFile("testdata/seed.h5")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(check)
}

// check reads a damaged file: its errors have the codes DataLoss and Unimplemented.
func check(t *testing.T, b []byte) {
	f, err := hdf5.Open(bytes.NewReader(b), int64(len(b)))
	var root *hdf5.Object
	if err == nil {
		root, err = f.Root()
	}
	if err == nil {
		left := 30
		err = walk(root, &left)
	}
	if code := status.CodeOf(err); err != nil && code != status.DataLoss && code != status.Unimplemented && code != status.NotFound {
		t.Errorf("got %v, want DataLoss or Unimplemented", err)
	}
}
