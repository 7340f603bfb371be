package checkpoint

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// named is a tensor, or a slice of one, with its name.
type named struct {
	name string
	full tensor.Shape // shape of the whole tensor; nil if there is no slice
	part Slice
	t    tensor.Tensor
}

// recorded are the tensors in the checkpoints in testdata, which TensorFlow has written.
func recorded(t testing.TB) []named {
	t.Helper()
	var all []named
	for _, dtype := range []tensor.DType{
		tensor.Float32, tensor.Float64, tensor.Int32, tensor.Uint8, tensor.Int16, tensor.Int8, tensor.Complex64, tensor.Int64,
		tensor.Bool, tensor.QInt8, tensor.QUint8, tensor.QInt32, tensor.BFloat16, tensor.Uint16, tensor.Complex128, tensor.Float16,
		tensor.Uint32, tensor.Uint64, tensor.Float8E5M2, tensor.Float8E4M3,
	} {
		x, err := tensor.Alloc(dtype, tensor.Shape{2, 3})
		if err != nil {
			t.Fatal(err)
		}
		for j := range x.Bytes() {
			x.Bytes()[j] = byte(j*7 + 3)
			if dtype == tensor.Bool {
				x.Bytes()[j] &= 1
			}
		}
		all = append(all, named{name: "t/" + dtype.Name(), t: x})
	}
	texts, err := tensor.FromSlice(tensor.Shape{2, 3}, []string{
		"a", "", strings.Repeat("\x00\xff", 80), strings.Repeat("hello", 4), "x", "y",
	})
	if err != nil {
		t.Fatal(err)
	}
	empty, err := tensor.Zeros(tensor.Float32, tensor.Shape{0, 3})
	if err != nil {
		t.Fatal(err)
	}
	return append(all, named{name: "string", t: texts}, named{name: "scalar", t: tensor.Scalar(float32(3.5))},
		named{name: "empty", t: empty}, named{name: "empty_strings", t: tensor.Vector[string]()}, part(t, 0, 3), part(t, 3, 7))
}

// part returns the rows lo to lo+n of a tensor of shape [10, 4] whose elements count up.
func part(t testing.TB, lo, n int64) named {
	t.Helper()
	vals := make([]float32, 4*n)
	for i := range vals {
		vals[i] = float32(4*lo + int64(i))
	}
	x, err := tensor.FromSlice(tensor.Shape{n, 4}, vals)
	if err != nil {
		t.Fatal(err)
	}
	return named{"part", tensor.Shape{10, 4}, Slice{{lo, n}, {0, -1}}, x}
}

// write writes a checkpoint of some tensors.
func write(t testing.TB, prefix string, all ...named) {
	t.Helper()
	w, err := Create(prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	add(t, w, all)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func add(t testing.TB, w interface {
	Add(name string, t *tensor.Tensor) error
	AddSlice(name string, full tensor.Shape, s Slice, t *tensor.Tensor) error
}, all []named,
) {
	t.Helper()
	for _, n := range all {
		err := error(nil)
		if n.part == nil {
			err = w.Add(n.name, &n.t)
		} else {
			err = w.AddSlice(n.name, n.full, n.part, &n.t)
		}
		if err != nil {
			t.Fatalf("%s: %v", n.name, err)
		}
	}
}

func mustOpen(t testing.TB, prefix string) *Reader {
	t.Helper()
	r, err := Open(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// same reports whether tensors have equal types, shapes and elements, bit by bit.
func same(a, b *tensor.Tensor) bool {
	if a.DType() != b.DType() || !a.Shape().Equal(b.Shape()) {
		return false
	}
	if a.DType() == tensor.String {
		return slices.Equal(tensor.Values[string](a), tensor.Values[string](b))
	}
	return bytes.Equal(a.Bytes(), b.Bytes())
}

// checkAll compares every tensor in a checkpoint.
func checkAll(t *testing.T, r *Reader, all []named) {
	t.Helper()
	for _, n := range all {
		s := n.part
		if s == nil {
			s = FullSlice(n.t.Rank())
		}
		got, err := r.ReadSlice(n.name, s)
		if err != nil || !same(&got, &n.t) {
			t.Errorf("%s %v: got %v, %v", n.name, s, got.String(), err)
		}
	}
}

func v1Knows(n named) bool { return typedFieldLen(n.t.DType(), &pb.TensorProto{}) >= 0 }

func TestReadsWhatTensorFlowWrote(t *testing.T) {
	all := recorded(t)
	checkAll(t, mustOpen(t, "testdata/v2"), all)
	checkAll(t, mustOpen(t, "testdata/v1"), slices.DeleteFunc(slices.Clone(all), func(n named) bool { return !v1Knows(n) }))
	merged := mustOpen(t, "testdata/merged")
	x, y := all[0], all[1]
	x.name, y.name = "x", "y"
	checkAll(t, merged, []named{x, y, part(t, 0, 3), part(t, 3, 7)})
	whole := part(t, 0, 10)
	got, err := merged.Read("part")
	if err != nil || !same(&got, &whole.t) {
		t.Errorf("a tensor in two slices is %v, %v", got.String(), err)
	}
}

// TestBytes compares files with those that TensorFlow has written for the same tensors.
func TestBytes(t *testing.T) {
	dir, all := t.TempDir(), recorded(t)
	write(t, filepath.Join(dir, "v2"), all...)
	v1 := CreateV1(filepath.Join(dir, "v1"))
	add(t, v1, slices.DeleteFunc(slices.Clone(all), func(n named) bool { return !v1Knows(n) }))
	if err := v1.Close(); err != nil {
		t.Fatal(err)
	}
	x, y := all[0], all[1]
	x.name, y.name = "x", "y"
	write(t, filepath.Join(dir, "temp", "a"), x, part(t, 0, 3))
	write(t, filepath.Join(dir, "temp", "b"), y, part(t, 3, 7))
	err := Merge([]string{filepath.Join(dir, "temp", "a"), filepath.Join(dir, "temp", "b")}, filepath.Join(dir, "merged"), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"v2.index", "v2.data-00000-of-00001", "merged.index", "merged.data-00000-of-00002", "merged.data-00001-of-00002",
	} {
		compareFiles(t, filepath.Join(dir, file), filepath.Join("testdata", file))
	}
	if left := list(t, filepath.Join(dir, "temp")); len(left) > 0 {
		t.Errorf("merging left %q", left)
	}
	// TensorFlow lists the slices of one tensor in an unspecified order in a file of the format
	// V1.
	checkAll(t, mustOpen(t, filepath.Join(dir, "v1")), slices.DeleteFunc(all, func(n named) bool { return !v1Knows(n) }))
}

func compareFiles(t *testing.T, have, want string) {
	t.Helper()
	a, err := os.ReadFile(have)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%s has %d bytes, which differ from the %d bytes of TensorFlow", filepath.Base(have), len(a), len(b))
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestTensors(t *testing.T) {
	infos := mustOpen(t, "testdata/merged").Tensors()
	if len(infos) != 3 || infos[0].Name != "part" || infos[0].DType != tensor.Float32 || !infos[0].Shape.Equal(tensor.Shape{10, 4}) ||
		len(infos[0].Slices) != 2 || infos[0].Slices[1].String() != "3,7:-" || infos[1].Slices != nil {
		t.Errorf("got %v", infos)
	}
	if infos := mustOpen(t, "testdata/v1").Tensors(); len(infos) != 20 {
		t.Errorf("the checkpoint in the format V1 has %d tensors", len(infos))
	}
}

func TestSlicesOfEverything(t *testing.T) {
	whole := part(t, 0, 10).t
	vals := tensor.Values[float32](&whole)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "pieces"), part(t, 7, 3), part(t, 0, 3), part(t, 3, 4))
	write(t, filepath.Join(dir, "whole"), named{name: "part", t: whole})
	for _, prefix := range []string{"pieces", "whole"} {
		r := mustOpen(t, filepath.Join(dir, prefix))
		for lo := range int64(10) {
			for n := int64(1); lo+n <= 10; n++ {
				got, err := r.ReadSlice("part", Slice{{lo, n}, {1, 2}})
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range tensor.Values[float32](&got) {
					if want := vals[(int(lo)+i/2)*4+1+i%2]; v != want {
						t.Fatalf("%s: slice %d,%d: element %d is %v, want %v", prefix, lo, n, i, v, want)
					}
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "ck")
	w, err := Create(prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	x, p := tensor.Scalar(float32(1)), part(t, 0, 3)
	y := tensor.Vector[float32](1, 2)
	var none tensor.Tensor
	add(t, w, []named{{name: "x", t: x}, p})
	for _, test := range []struct {
		err  error
		code status.Code
		text string
	}{
		{w.Add("x", &x), status.InvalidArgument, "Adding duplicate key: x"},
		{w.Add("", &x), status.InvalidArgument, "under the name"},
		{w.Add("none", &none), status.InvalidArgument, "cannot be saved"},
		{w.AddSlice("x", tensor.Shape{4}, Slice{{0, 2}}, &y), status.InvalidArgument, "was added to one of"},
		{w.AddSlice("part", p.full, p.part, &p.t), status.InvalidArgument, "Adding duplicate key"},
		{w.AddSlice("part", tensor.Shape{11, 4}, p.part, &p.t), status.InvalidArgument, "was added to one of"},
		{w.AddSlice("z", tensor.Shape{4}, Slice{{3, 2}}, &y), status.Internal, "Extent in dimension 0 out of bounds: shape = [4], slice = 3,2"},
		{w.AddSlice("z", tensor.Shape{4}, Slice{{0, 1}}, &y), status.InvalidArgument, "cannot be saved from a tensor"},
		{w.Close(), status.OK, ""},
	} {
		if status.CodeOf(test.err) != test.code || test.err != nil && !strings.Contains(test.err.Error(), test.text) {
			t.Errorf("got %v: %v, want %v: %s", status.CodeOf(test.err), test.err, test.code, test.text)
		}
	}
	r := mustOpen(t, prefix)
	read := func(name string, s Slice) error { _, err := r.ReadSlice(name, s); return err }
	_, missing := Open(filepath.Join(dir, "none"))
	_, noFolder := Create(filepath.Join(dir, "no", "such", "ck"))
	for _, test := range []struct {
		err  error
		code status.Code
		text string
	}{
		{missing, status.NotFound, "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + dir + "/none"},
		{noFolder, status.NotFound, dir + "/no/such; No such file or directory"},
		{read("zz", nil), status.NotFound, "Key zz not found in checkpoint"},
		{read("part", FullSlice(2)), status.InvalidArgument, "Does not have sufficient slices for partitioned tensor part to restore in slice_spec: -:-"},
		{read("part", Slice{{2, 2}, {0, -1}}), status.InvalidArgument, "Does not have sufficient slices"},
		{read("part", Slice{{2, 20}, {0, -1}}), status.Internal, "out of bounds"},
		{read("part", FullSlice(1)), status.Internal, "Mismatching ranks"},
		{Merge([]string{prefix, filepath.Join(dir, "none")}, filepath.Join(dir, "m"), false), status.InvalidArgument, "did not exist"},
		{Merge([]string{filepath.Join(dir, "none")}, filepath.Join(dir, "m"), true), status.InvalidArgument, "At least one prefix"},
		{Merge([]string{prefix, prefix}, filepath.Join(dir, "m"), false), status.InvalidArgument, "Duplicate tensor keyed by"},
	} {
		if status.CodeOf(test.err) != test.code || !strings.Contains(test.err.Error(), test.text) {
			t.Errorf("got %v: %v, want %v: %s", status.CodeOf(test.err), test.err, test.code, test.text)
		}
	}
}

func TestParseShapeAndSlice(t *testing.T) {
	full, s, shape, err := ParseShapeAndSlice("4 3 1,2:-")
	if err != nil || !full.Equal(tensor.Shape{4, 3}) || s.String() != "1,2:-" || !shape.Equal(tensor.Shape{2, 3}) {
		t.Errorf("got %v %v %v, %v", full, s, shape, err)
	}
	for spec, want := range map[string]string{
		"4 x":      "Expected a pair of numbers or '-' but got 'x': string = x",
		"x 0,2":    "Non numerical dimension in shape_and_slice: x 0,2",
		"4":        "Need least two elements in shape_and_slice specification: 4",
		"4 0,9":    "Extent in dimension 0 out of bounds: shape = [4], slice = 0,9",
		"4 4 0,2":  "Mismatching ranks: shape = [4,4], slice = 0,2",
		"4 0,0":    "Expected non-negative start and positive length but got start = 0, length = 0: string = 0,0",
		"4 ":       "Mismatching ranks: shape = [4], slice = ",
		"4 -1,2":   "Expected non-negative start and positive length but got start = -1, length = 2: string = -1,2",
		"-4 0,2":   "Dimension -4 must be >= 0; shape is [-4]",
		"4 0,1,2":  "Expected a pair of numbers or '-' but got '0,1,2': string = 0,1,2",
		"4 9,9e99": "Expected a pair of numbers or '-' but got '9,9e99': string = 9,9e99",
	} {
		if _, _, _, err := ParseShapeAndSlice(spec); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", spec, err, want)
		}
	}
}

// TestSliceKeys checks that the order of keys is the order of the encoded values.
func TestSliceKeys(t *testing.T) {
	var last []byte
	for _, v := range []int64{
		math.MinInt64, math.MinInt64 + 1, -1 << 62, -1 << 40, -8193, -8192, -65, -64, -1, 0, 1, 63, 64, 8191, 8192, 1 << 40, 1 << 62, math.MaxInt64,
	} {
		key := sliceKey("n", Slice{{v, v}})
		if last != nil && bytes.Compare(last, key) >= 0 {
			t.Errorf("the key of %d is %x and not greater than %x", v, key, last)
		}
		last = key
	}
	if got, want := sliceKey("a\x00\xff", Slice{{1000, 900}, {0, -1}}), []byte("\x00a\x00\xff\xff\x00\x00\x01\x01\x02\xc3\xe8\xc3\x84\x80\x7f"); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBigEndian reads a checkpoint of a big-endian machine.
func TestBigEndian(t *testing.T) {
	b := &bundle{order: binary.BigEndian}
	x := tensor.Vector[uint32](0x01020304)
	b.normalize(&x)
	if got := tensor.Values[uint32](&x)[0]; got != 0x04030201 {
		t.Errorf("got %#x", got)
	}
	y := tensor.Vector(complex(float32(1), 2))
	for i := range 2 {
		slices.Reverse(y.Bytes()[4*i : 4*i+4])
	}
	b.normalize(&y)
	if got := tensor.Values[complex64](&y)[0]; got != complex(1, 2) {
		t.Errorf("got %v", got)
	}
}

func TestVariants(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "ck")
	v := tensor.Vector(
		tensor.VariantValue{Value: tensor.EncodedVariant{TypeName: "a", Metadata: []byte("m"), Tensors: []tensor.Tensor{tensor.Scalar(int32(7))}}},
		tensor.VariantValue{},
	)
	write(t, prefix, named{name: "v", t: v})
	got, err := mustOpen(t, prefix).Read("v")
	if err != nil {
		t.Fatal(err)
	}
	first, err := tensor.Values[tensor.VariantValue](&got)[0].Encode()
	if err != nil || first.TypeName != "a" || string(first.Metadata) != "m" || len(first.Tensors) != 1 {
		t.Errorf("got %v, %v", first, err)
	}
}
