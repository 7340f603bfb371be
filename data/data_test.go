package data_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/tfrecord"
)

// numbers returns the data set of the int64 scalars 0 to n-1.
func numbers(t *testing.T, n int) *data.Dataset {
	t.Helper()
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i)
	}
	d, err := data.FromSlices(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// read returns all int64 values of an epoch.
func read(t *testing.T, d *data.Dataset, epoch int) []int64 {
	t.Helper()
	var out []int64
	for e, err := range d.Elements(t.Context(), epoch) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tensor.Values[int64](&e[0])...)
	}
	return out
}

func TestShuffleIsDeterministic(t *testing.T) {
	d := numbers(t, 100).Shuffle(20, 7)
	first := read(t, d, 0)
	if !slices.Equal(first, read(t, d, 0)) {
		t.Error("the same epoch has different orders")
	}
	if slices.Equal(first, read(t, d, 1)) {
		t.Error("two epochs have the same order")
	}
	if got := slices.Sorted(slices.Values(first)); !slices.Equal(got, read(t, numbers(t, 100), 0)) {
		t.Errorf("the elements are %v", got)
	}
	for i, v := range first {
		if int(v) > i+20 {
			t.Errorf("element %d is at position %d, with a buffer of 20", v, i)
		}
	}
}

func TestSplit(t *testing.T) {
	a, b := numbers(t, 50).Split(0.8, 3)
	first, second := read(t, a, 0), read(t, b, 5)
	if n, ok := a.Len(); n != 40 || !ok || len(first) != 40 || len(second) != 10 {
		t.Errorf("%d and %d elements, length %d", len(first), len(second), n)
	}
	if got := slices.Sorted(slices.Values(append(first, second...))); !slices.Equal(got, read(t, numbers(t, 50), 0)) {
		t.Errorf("the parts have %v", got)
	}
	if !slices.Equal(first, read(t, a, 1)) {
		t.Error("the parts differ from epoch to epoch")
	}
}

func TestParts(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    *data.Dataset
		want []int64
	}{
		{"shard", numbers(t, 7).Shard(3, 1), []int64{1, 4}},
		{"last shard", numbers(t, 7).Shard(3, 0), []int64{0, 3, 6}},
		{"take", numbers(t, 7).Take(2), []int64{0, 1}},
		{"take more", numbers(t, 2).Take(5), []int64{0, 1}},
		{"skip", numbers(t, 7).Skip(5), []int64{5, 6}},
		{"prefetch", numbers(t, 5).Prefetch(2), []int64{0, 1, 2, 3, 4}},
		{"batch", numbers(t, 5).Batch(2), []int64{0, 1, 2, 3, 4}},
		{"drop remainder", numbers(t, 5).BatchDropRemainder(2), []int64{0, 1, 2, 3}},
	} {
		if got := read(t, tt.d, 0); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		n := 0
		for _, err := range tt.d.Elements(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if known, _ := tt.d.Len(); known != n {
			t.Errorf("%s: the length is %d, and there are %d elements", tt.name, known, n)
		}
	}
}

func TestMapKeepsTheOrder(t *testing.T) {
	d := numbers(t, 40).Map(8, nil, func(e data.Element) (data.Element, error) {
		return data.Element{tensor.Scalar(2 * tensor.Value[int64](&e[0]))}, nil
	})
	for i, v := range read(t, d, 0) {
		if int(v) != 2*i {
			t.Fatalf("element %d is %d", i, v)
		}
	}
}

func TestMapEndsWithAnError(t *testing.T) {
	d := numbers(t, 40).Map(4, nil, func(e data.Element) (data.Element, error) {
		if v := tensor.Value[int64](&e[0]); v >= 5 {
			return nil, fmt.Errorf("bad %d", v)
		}
		return e, nil
	}).Prefetch(3)
	n := 0
	var last error
	for _, err := range d.Elements(t.Context(), 0) {
		if last = err; err == nil {
			n++
		}
	}
	if n != 5 || last == nil || last.Error() != "bad 5" {
		t.Errorf("%d elements and then %v", n, last)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range numbers(t, 100).Map(2, nil, func(e data.Element) (data.Element, error) { return e, nil }).Prefetch(2).Elements(ctx, 0) {
		if n++; n == 10 {
			cancel()
		}
		last = err
	}
	if n > 11 || last == nil {
		t.Errorf("%d elements after the end of the context, last error %v", n, last)
	}
}

func TestCacheReadsOnce(t *testing.T) {
	reads := 0
	source := data.New(numbers(t, 3).Spec(), 3, func(ctx context.Context, epoch int) iter.Seq2[data.Element, error] {
		reads++
		return numbers(t, 3).Elements(ctx, epoch)
	})
	d := source.Cache()
	read(t, d.Take(1), 0) // an incomplete pass is not kept
	for range 3 {
		if got := read(t, d, 0); len(got) != 3 {
			t.Errorf("got %v", got)
		}
	}
	if reads != 2 {
		t.Errorf("the source was read %d times, want 2", reads)
	}
}

func TestPaddedBatch(t *testing.T) {
	rows := [][][]float32{{{1, 2}}, {{3, 4}, {5, 6}}}
	spec := []data.Spec{{DType: tensor.Float32, Shape: tensor.MakePartial(-1, 2)}}
	d := data.New(spec, 2, func(context.Context, int) iter.Seq2[data.Element, error] {
		return func(yield func(data.Element, error) bool) {
			for _, r := range rows {
				v, err := tensor.New(r)
				if !yield(data.Element{v}, err) {
					return
				}
			}
		}
	})
	for e, err := range d.PaddedBatch(2).Elements(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		want := []float32{1, 2, 0, 0, 3, 4, 5, 6}
		if !e[0].Shape().Equal(tensor.Shape{2, 2, 2}) || !slices.Equal(tensor.Values[float32](&e[0]), want) {
			t.Errorf("got %v of shape %v", tensor.Values[float32](&e[0]), e[0].Shape())
		}
	}
	for _, err := range d.Batch(2).Elements(t.Context(), 0) {
		if err == nil || !strings.Contains(err.Error(), "PaddedBatch") {
			t.Errorf("different shapes in one batch: %v", err)
		}
	}
}

func TestMomentsAndClassWeights(t *testing.T) {
	d, err := data.FromSlices([][]float32{{1, 10}, {3, 10}, {1, 10}, {3, 10}}, []int32{0, 1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	mean, variance, err := d.Moments(t.Context(), 0)
	if err != nil || !slices.Equal(mean, []float32{2, 10}) || !slices.Equal(variance, []float32{1, 0}) {
		t.Errorf("mean %v, variance %v, %v", mean, variance, err)
	}
	weights, err := d.ClassWeights(t.Context(), 2)
	if err != nil || weights[0] != 2 || weights[1] != 4.0/6 {
		t.Errorf("weights %v, %v", weights, err)
	}
	if _, err := d.ClassWeights(t.Context(), 1); err == nil {
		t.Error("no error for a label out of range")
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadCSV(t *testing.T) {
	path := write(t, "a.csv", "x, species, y\n1, b, 2\n3, a, 4\n")
	table, err := data.ReadCSV(path, data.CSV{Label: "species"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(table.Columns, table.Classes, table.Features, table.Labels); got != "[x y] [a b] [[1 2] [3 4]] [1 0]" {
		t.Errorf("got %s", got)
	}
	types, shapes := table.Dataset().Batch(2).Types()
	if got := fmt.Sprint(types, shapes); got != "[float int32] [[?,2] [?]]" {
		t.Errorf("types and shapes %s", got)
	}
	table, err = data.ReadCSV(write(t, "b.csv", "1;2.5\n2;3.5\n"), data.CSV{Names: []string{"x", "y"}, Comma: ';'})
	if err != nil || fmt.Sprint(table.Features, table.Numbers) != "[[1] [2]] [2.5 3.5]" {
		t.Errorf("got %v, %v", table, err)
	}
}

func TestCSVOneHot(t *testing.T) {
	path := write(t, "a.csv", "color,x,size,label\nred,1,S,0\nblue,2,L,1\nred,3,L,1\n")
	table, err := data.ReadCSV(path, data.CSV{OneHot: []string{"color", "size"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(table.Columns, table.Features); got != "[color=blue color=red x size=L size=S] [[0 1 1 0 1] [1 0 2 1 0] [0 1 3 1 0]]" {
		t.Errorf("got %s", got)
	}
	other := write(t, "b.csv", "color,x,size,label\nblue,4,S,0\n")
	again, err := data.ReadCSV(other, data.CSV{OneHot: []string{"color", "size"}, Texts: table.Texts})
	if err != nil || fmt.Sprint(again.Features) != "[[1 0 4 0 1]]" {
		t.Errorf("got %v, %v", again, err)
	}
	for want, o := range map[string]data.CSV{
		`row 1 of the data, column "color": "blue" is none of the texts ["red"]`: {OneHot: []string{"color", "size"}, Texts: map[string][]string{"color": {"red"}}},
		`OneHot has "shape", which is not among the features`:                    {OneHot: []string{"shape"}},
		`"S" is not a number; name the column in CSV.OneHot`:                     {OneHot: []string{"color"}},
	} {
		if _, err := data.ReadCSV(other, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestCSVMissing(t *testing.T) {
	path := write(t, "a.csv", "id,x,z,color,y\na,1,10,red,1\nb,?,20,blue,2\nc,4,NA,red,3\nd,7,30,,4\ne,0,0,red,\n")
	for _, tt := range []struct {
		o    data.CSV
		want string
	}{
		{data.CSV{Missing: data.MissingDrops}, "[[1 10 1]] [1] map[]"}, // "blue" is left out
		{data.CSV{Missing: data.MissingMean}, "[[1 10 0 1] [4 20 1 0] [4 20 0 1] [7 30 0 0]] [1 2 3 4] map[x:4 z:20]"},
		{
			data.CSV{Missing: data.MissingMean, Means: map[string]float32{"x": -1}, Texts: map[string][]string{"color": {"blue", "red"}}},
			"[[1 10 0 1] [-1 20 1 0] [4 20 0 1] [7 30 0 0]] [1 2 3 4] map[x:-1 z:20]",
		},
	} {
		tt.o.Ignore, tt.o.OneHot = []string{"id"}, []string{"color"}
		table, err := data.ReadCSV(path, tt.o)
		if err != nil {
			t.Errorf("%+v: %v", tt.o, err)
			continue
		}
		if got := fmt.Sprint(table.Features, table.Numbers, table.Means); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.o, got, tt.want)
		}
	}
}

func TestCSVErrors(t *testing.T) {
	for _, tt := range []struct {
		text string
		o    data.CSV
		want string
	}{
		{"", data.CSV{}, "the file is empty"},
		{"x,y\n", data.CSV{}, "no lines of data"},
		{"x,y\n1,2\nred,3\n", data.CSV{}, `line 3, column "x": "red" is not a number`},
		{"x,y\n1,2\n", data.CSV{Label: "z"}, `there is no column "z"`},
		{"x,y\n1,2,3\n", data.CSV{}, "line 2 has 3 fields, and the first line has 2"},
		{"x;y\n1;2\n", data.CSV{Label: "y"}, "set CSV.Comma"},
		{"x,x,y\n1,2,3\n", data.CSV{}, `two columns are named "x"`},
		{"y\n1\n", data.CSV{}, `no column but the label "y"`},
		{"x,y\n1,2\n,3\n", data.CSV{}, `line 3, column "x": the value is missing ("")`},
		{"x,y\nNaN,3\n", data.CSV{}, `line 2, column "x": the value is missing ("NaN")`},
		{"x,y\nInf,3\n", data.CSV{}, `line 2, column "x": "Inf" is not a finite number`},
		{"x,y\n1,\n", data.CSV{}, `line 2, column "y": the label is missing ("")`},
		{"x,y\n?,1\n", data.CSV{Missing: data.MissingDrops}, "no lines of data"},
		{"x,y\n?,1\n", data.CSV{Missing: data.MissingMean}, `the column "x" has no values`},
		{"x,y\n1,2\n", data.CSV{Ignore: []string{"z"}}, `there is no column "z"`},
		{"x,y\n1,2\n", data.CSV{Ignore: []string{"y"}}, `Ignore has "y", which is the label or a feature`},
		{"x,y\n1,c\n", data.CSV{Classes: []string{"a", "b"}}, `the label "c" is none of the classes`},
	} {
		path := write(t, "a.csv", tt.text)
		if _, err := data.ReadCSV(path, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "a.csv") {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
	if _, err := data.ReadCSV("no-such-file.csv", data.CSV{}); status.CodeOf(err) != status.NotFound {
		t.Errorf("a missing file: %v", err)
	}
}

func TestTextLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprint(z, "c\r\nd\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var got []string
	for e, err := range data.TextLines(write(t, "b.txt", "a\nb"), path).Elements(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tensor.Value[string](&e[0]))
	}
	if !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("got %q", got)
	}
}

func TestIDX(t *testing.T) {
	images := write(t, "images", "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02\x01\x02\x03\x04")
	labels := write(t, "labels", "\x00\x00\x0c\x01\x00\x00\x00\x02\x00\x00\x00\x07\x00\x00\x00\x08")
	d, err := data.IDX(images, labels)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range d.Elements(t.Context(), 0) {
		got = append(got, fmt.Sprint(tensor.Values[uint8](&e[0]), e[0].Shape(), tensor.Value[int32](&e[1]), err))
	}
	if !slices.Equal(got, []string{"[1 2] [1,2] 7 <nil>", "[3 4] [1,2] 8 <nil>"}) {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{"", "\x00\x00\x08", "\x00\x00\x77\x00", "\x00\x00\x08\x01\x7f\xff\xff\xff\x00"} {
		if _, err := data.ReadIDX(write(t, "bad", bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestTFRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tfrecord")
	w, err := tfrecord.Create(path, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		b, err := proto.Marshal(&pb.Example{Features: &pb.Features{Feature: map[string]*pb.Feature{
			"x": {Kind: &pb.Feature_FloatList{FloatList: &pb.FloatList{Value: []float32{float32(i), 5}}}},
			"y": {Kind: &pb.Feature_Int64List{Int64List: &pb.Int64List{Value: []int64{int64(i)}}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, spec := data.ParseExamples(data.Feature{Name: "x", DType: tensor.Float32, Shape: []int64{2}}, data.Feature{Name: "y", DType: tensor.Int64})
	n := 0
	for e, err := range data.TFRecord(path).Map(2, spec, f).Batch(2).Elements(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if got := fmt.Sprint(tensor.Values[float32](&e[0]), tensor.Values[int64](&e[1])); got != "[0 5 1 5] [0 1]" {
			t.Errorf("got %s", got)
		}
	}
	if n != 1 {
		t.Errorf("%d batches", n)
	}
	f, spec = data.ParseExamples(data.Feature{Name: "z", DType: tensor.Int64})
	for _, err := range data.TFRecord(path).Map(1, spec, f).Elements(t.Context(), 0) {
		if err == nil || !strings.Contains(err.Error(), `feature "z" has 0 values`) {
			t.Errorf("a missing feature: %v", err)
		}
	}
}

func TestImageFolder(t *testing.T) {
	dir := t.TempDir()
	for i, class := range []string{"cat", "dog"} {
		if err := os.Mkdir(filepath.Join(dir, class), 0o700); err != nil {
			t.Fatal(err)
		}
		img := image.NewRGBA(image.Rect(0, 0, 4, 4))
		for p := range 16 {
			img.Set(p%4, p/4, color.RGBA{uint8(100 * i), 50, 0, 255})
		}
		f, err := os.Create(filepath.Join(dir, class, "a.png"))
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, img); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	d, classes, err := data.ImageFolder(dir, 2, 3, 2)
	if err != nil || !slices.Equal(classes, []string{"cat", "dog"}) {
		t.Fatal(classes, err)
	}
	i := 0
	for e, err := range d.Elements(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		pixels := tensor.Values[float32](&e[0])
		if len(pixels) != 18 || pixels[0] != float32(100*i) || pixels[16] != 50 || tensor.Value[int32](&e[1]) != int32(i) {
			t.Errorf("image %d is %v, label %v", i, pixels, e[1].Go())
		}
		i++
	}
	if err := os.WriteFile(filepath.Join(dir, "cat", "b.png"), []byte("no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, _, err = data.ImageFolder(dir, 2, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range d.Elements(t.Context(), 0) {
		last = err
	}
	if last == nil || !strings.Contains(fmt.Sprint(last), "b.png") {
		t.Errorf("a damaged image: %v", last)
	}
	if _, _, err := data.ImageFolder(t.TempDir(), 2, 2, 1); status.CodeOf(err) != status.NotFound {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestFromSlicesErrors(t *testing.T) {
	for _, columns := range [][]any{{}, {[]float32{1, 2}, []int32{1}}, {float32(3)}, {struct{}{}}} {
		if _, err := data.FromSlices(columns...); err == nil {
			t.Errorf("%v: no error", columns)
		}
	}
	for _, err := range numbers(t, 3).Batches(t.Context(), 0) {
		if err == nil || !strings.Contains(err.Error(), "call Batch") {
			t.Errorf("batches of single elements: %v", err)
		}
	}
}
