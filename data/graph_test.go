package data_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/tfrecord"
)

// onWorker reads the batches of a data set with the operations of tf.data.
type onWorker struct {
	sess  *weft.Session
	epoch op.Output
	start *graph.Node
	next  []op.Output
}

// newOnWorker adds a pipeline to the graph of s and opens its session. keep is that of Graph.
func newOnWorker(t *testing.T, s *op.Scope, d *data.Dataset, keep func(op.Output) op.Output) *onWorker {
	t.Helper()
	w := &onWorker{epoch: op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))}
	set := d.Graph(s, w.epoch, keep)
	types, shapes := d.Types()
	iterator := op.IteratorV2(s, "", "", types, shapes)
	w.start, w.next = op.MakeIterator(s, set, iterator), op.IteratorGetNext(s, iterator, types, shapes)
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	if w.sess, err = weft.NewSession("local", g); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.sess.Close() })
	return w
}

// batches returns the batches of an epoch as texts, and the error that ended them.
func (w *onWorker) batches(t *testing.T, epoch int) ([]string, error) {
	t.Helper()
	if err := w.sess.Exec(t.Context(), weft.Feeds{w.epoch: tensor.Scalar(int64(epoch))}, w.start); err != nil {
		return nil, err
	}
	var out []string
	for {
		e, err := w.sess.Fetch(t.Context(), nil, w.next...)
		switch {
		case status.CodeOf(err) == status.OutOfRange:
			return out, nil
		case err != nil:
			return out, err
		}
		out = append(out, describe(e))
	}
}

// inProgram returns the batches of an epoch as texts, and the error that ended them.
func inProgram(t *testing.T, d *data.Dataset, epoch int) (out []string, err error) {
	t.Helper()
	for e, err := range d.Batches(t.Context(), epoch) {
		if err != nil {
			return out, err
		}
		out = append(out, describe(e))
	}
	return out, nil
}

func describe(e data.Element) string {
	var b strings.Builder
	for i := range e {
		fmt.Fprint(&b, e[i].DType(), e[i].Shape(), e[i].Go(), " ")
	}
	return b.String()
}

// wantSame compares the batches of several epochs, which are read out of order.
func wantSame(t *testing.T, d *data.Dataset) {
	t.Helper()
	w := newOnWorker(t, op.NewScope(), d, nil)
	for _, epoch := range []int{2, 0, 1, 2} {
		want, err := inProgram(t, d, epoch)
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.batches(t, epoch)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("epoch %d: the worker reads\n%s\nthe program\n%s", epoch, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// lines writes n lines of one to three numbers into two files, the second of them compressed.
func lines(t *testing.T, n int) []string {
	t.Helper()
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt.gz")
	var first, second bytes.Buffer
	z := gzip.NewWriter(&second)
	for i := range n {
		line := fmt.Sprint(i) + strings.Repeat(fmt.Sprint(" ", 2*i), i%3) + "\n"
		if i < n/2 {
			fmt.Fprint(&first, line)
		} else {
			fmt.Fprint(z, line)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{plain: first.Bytes(), packed: second.Bytes()} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{plain, packed}
}

// examples writes messages with one number x, three numbers y, any number of numbers z and a text.
func examples(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "examples.tfrecord")
	w, err := tfrecord.Create(path, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		z := make([]int64, i%4)
		for j := range z {
			z[j] = int64(i + j)
		}
		features := map[string]*pb.Feature{
			"x": {Kind: &pb.Feature_Int64List{Int64List: &pb.Int64List{Value: []int64{int64(i)}}}},
			"y": {Kind: &pb.Feature_FloatList{FloatList: &pb.FloatList{Value: []float32{float32(i), 2.5, float32(-i)}}}},
			"t": {Kind: &pb.Feature_BytesList{BytesList: &pb.BytesList{Value: [][]byte{fmt.Append(nil, "text ", i)}}}},
		}
		if len(z) > 0 {
			features["z"] = &pb.Feature{Kind: &pb.Feature_Int64List{Int64List: &pb.Int64List{Value: z}}}
		}
		b, err := proto.Marshal(&pb.Example{Features: &pb.Features{Feature: features}})
		if err == nil {
			err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

var exampleFeatures = []data.Feature{
	{Name: "x", DType: tensor.Int64}, {Name: "y", DType: tensor.Float32, Shape: []int64{3}},
	{Name: "z", DType: tensor.Int64, Shape: []int64{-1}}, {Name: "t", DType: tensor.String},
}

// folder writes images of different sizes and kinds in two classes.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		bounds := image.Rect(0, 0, 3+random.IntN(30), 3+random.IntN(30))
		kinds := []interface {
			image.Image
			Set(x, y int, c color.Color)
		}{
			image.NewRGBA(bounds), image.NewNRGBA(bounds), image.NewGray(bounds), image.NewNRGBA64(bounds), image.NewGray16(bounds),
			image.NewPaletted(bounds, color.Palette{color.NRGBA{9, 8, 7, 6}, color.NRGBA{200, 100, 0, 255}, color.White}),
		}
		img := kinds[i%len(kinds)]
		for y := range bounds.Dy() {
			for x := range bounds.Dx() {
				img.Set(x, y, color.NRGBA{uint8(random.Uint32()), uint8(8 * x), uint8(8 * y), uint8(255 - random.IntN(2)*i)})
			}
		}
		path := filepath.Join(dir, []string{"cat", "dog"}[i%2])
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		encode, ext := func() error { return png.Encode(&b, img) }, ".png"
		if i >= 6 {
			encode, ext = func() error { return jpeg.Encode(&b, img, nil) }, ".jpg"
		}
		if err := encode(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, fmt.Sprint(i, ext)), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// parsed is the sum and the numbers of lines of numbers, which have different lengths.
func parsed(d *data.Dataset) *data.Dataset {
	return d.MapOps(2, func(s *op.Scope, line []op.Output) []op.Output {
		_, words, _ := op.StringSplitV2(s, op.Reshape(s, line[0], op.Const(s, []int32{1})), op.Const(s, " "))
		numbers := op.StringToNumber(s, words)
		return []op.Output{numbers, op.Sum(s, numbers, op.Const(s, int32(0)))}
	})
}

func TestSourcesOnWorker(t *testing.T) {
	images, _, err := data.ImageFolder(folder(t), 8, 9, 3)
	if err != nil {
		t.Fatal(err)
	}
	texts := &data.Texts{Texts: []string{"a b c", "", "b zebra", "c"}, Labels: []int32{0, 1, 1, 0}}
	for name, d := range map[string]*data.Dataset{
		"slices":   numbers(t, 7).Batch(3),
		"lines":    data.TextLines(lines(t, 11)...).Batch(4),
		"no files": data.TextLines().Batch(4),
		"records":  data.TFRecord(examples(t, 5)).Batch(2),
		"examples": data.TFRecord(examples(t, 9)).ParseExamples(2, exampleFeatures...).PaddedBatch(4),
		"images":   images.Batch(5),
		"texts":    texts.Dataset(data.NewVocabulary(texts.Texts, 3)).PaddedBatch(3),
		"parsed":   parsed(data.TextLines(lines(t, 11)...)).PaddedBatch(4),
	} {
		t.Run(name, func(t *testing.T) { wantSame(t, d) })
	}
}

// TestRandomPipelinesOnWorker makes pipelines of random methods and compares the batches.
func TestRandomPipelinesOnWorker(t *testing.T) {
	images, _, err := data.ImageFolder(folder(t), 4, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	text, records := lines(t, 40), examples(t, 31)
	sources := []struct {
		name string
		make func() *data.Dataset
	}{
		{"slices", func() *data.Dataset { return numbers(t, 37) }},
		{"lines", func() *data.Dataset { return data.TextLines(text...) }},
		{"parsed", func() *data.Dataset { return parsed(data.TextLines(text...)) }},
		{"examples", func() *data.Dataset { return data.TFRecord(records).ParseExamples(2, exampleFeatures...) }},
		{"images", func() *data.Dataset { return images }},
	}
	methods := []struct {
		name   string
		change func(d *data.Dataset, r *rand.Rand) *data.Dataset
	}{
		{"Shuffle", func(d *data.Dataset, r *rand.Rand) *data.Dataset {
			return d.Shuffle(r.IntN(50), r.Uint64N(3)*r.Uint64())
		}},
		{"first of Split", func(d *data.Dataset, r *rand.Rand) *data.Dataset { d, _ = d.Split(0.7, r.Uint64N(3)); return d }},
		{"second of Split", func(d *data.Dataset, r *rand.Rand) *data.Dataset { _, d = d.Split(0.3, r.Uint64N(3)); return d }},
		{"Shard", func(d *data.Dataset, r *rand.Rand) *data.Dataset { n := 1 + r.IntN(3); return d.Shard(n, r.IntN(n)) }},
		{"Take", func(d *data.Dataset, r *rand.Rand) *data.Dataset { return d.Take(r.IntN(40) - 1) }},
		{"Skip", func(d *data.Dataset, r *rand.Rand) *data.Dataset { return d.Skip(r.IntN(10) - 1) }},
		{"Cache", func(d *data.Dataset, _ *rand.Rand) *data.Dataset { return d.Cache() }},
		{"Prefetch", func(d *data.Dataset, r *rand.Rand) *data.Dataset { return d.Prefetch(r.IntN(4)) }},
		{"MapOps", func(d *data.Dataset, r *rand.Rand) *data.Dataset {
			return d.MapOps(1+r.IntN(4), func(s *op.Scope, e []op.Output) []op.Output {
				last := len(e) - 1
				if e[last].DType() == tensor.String {
					return append(e[:last:last], op.StringUpper(s, e[last]))
				}
				return append(e[:last:last], op.Add(s, op.Mul(s, e[last], e[last]), op.ConstOf(s, e[last].DType(), 3)))
			})
		}},
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		from := sources[seed%uint64(len(sources))]
		d, name := from.make(), from.name
		add := func() {
			for range r.IntN(4) {
				m := methods[r.IntN(len(methods))]
				d, name = m.change(d, r), name+", "+m.name
			}
		}
		add()
		n := 1 + r.IntN(9)
		switch from.name {
		case "examples", "parsed":
			d, name = d.PaddedBatch(n), name+", PaddedBatch"
		default:
			if r.IntN(3) == 0 {
				d, name = d.BatchDropRemainder(n), name+", BatchDropRemainder"
			} else {
				d, name = d.Batch(n), name+", Batch"
			}
		}
		add()
		t.Run(fmt.Sprint(seed, ": ", name), func(t *testing.T) { wantSame(t, d) })
	}
}

// TestGraphErrors makes graphs of data sets that cannot be read there.
func TestGraphErrors(t *testing.T) {
	same := func(e data.Element) (data.Element, error) { return e, nil }
	add := func(s *op.Scope, e []op.Output) []op.Output { return []op.Output{op.Add(s, e[0], op.Const(s, "text"))} }
	for name, tt := range map[string]struct {
		d    *data.Dataset
		code status.Code
		want string
	}{
		"New": {data.New(numbers(t, 2).Spec(), 2, numbers(t, 2).Elements).Take(1).Batch(1), status.Unimplemented,
			"New reads the elements with a function of the program; begin with FromSlices, TextLines, TFRecord or ImageFolder"},
		"Map": {data.TextLines("x").Map(1, nil, same).Batch(1), status.Unimplemented,
			"Map calls a function of the program; make the function of operations (MapOps), or call ParseExamples"},
		"elements": {numbers(t, 3), status.FailedPrecondition, "call Batch"},
		"twice":    {numbers(t, 3).Batch(1).Batch(1), status.FailedPrecondition, "Batch was called twice"},
		"nothing":  {numbers(t, 3).Batch(0), status.InvalidArgument, "batches of 0 elements"},
		"part":     {numbers(t, 3).Shard(2, 2).Batch(1), status.InvalidArgument, "Shard(2, 2): there are only the parts from 0 to 1"},
		"types":    {numbers(t, 3).MapOps(1, add).Batch(1), status.InvalidArgument, "graph_test.go"},
		"no result": {numbers(t, 3).MapOps(1, func(*op.Scope, []op.Output) []op.Output { return nil }).Batch(1), status.InvalidArgument,
			"the function of MapOps returns no tensors"},
		"no tensor": {numbers(t, 3).MapOps(1, func(*op.Scope, []op.Output) []op.Output { return make([]op.Output, 1) }).Batch(1), status.InvalidArgument,
			"result 0 of the function of MapOps is no tensor"},
		"numbers": {numbers(t, 3).ParseExamples(1, exampleFeatures...).Batch(1), status.InvalidArgument, "an example is a string scalar"},
	} {
		t.Run(name, func(t *testing.T) {
			s := op.NewScope()
			tt.d.Graph(s, op.Const(s, int64(0)), nil)
			if err := s.Err(); status.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %v: %q", err, tt.code, tt.want)
			}
			if tt.code == status.Unimplemented || name == "elements" {
				return
			}
			if _, err := inProgram(t, tt.d, 0); status.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the program: got %v, want %v: %q", err, tt.code, tt.want)
			}
		})
	}
}

// TestReadErrorsOnWorker reads files that are missing or damaged, in the program and on a worker.
func TestReadErrorsOnWorker(t *testing.T) {
	images := folder(t)
	good := examples(t, 3)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	cut := write(t, "cut.tfrecord", string(whole[:len(whole)-2]))
	set, _, err := data.ImageFolder(images, 4, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(images, "cat", "2.png")); err != nil {
		t.Fatal(err)
	}
	feature := func(name string, dtype tensor.DType, shape ...int64) *data.Dataset {
		return data.TFRecord(good).ParseExamples(1, data.Feature{Name: name, DType: dtype, Shape: shape}).PaddedBatch(4)
	}
	for name, tt := range map[string]struct {
		d               *data.Dataset
		code            status.Code
		worker, program string // texts of the errors
	}{
		"no lines":      {data.TextLines("no/lines.txt").Batch(1), status.NotFound, "no/lines.txt", "no/lines.txt does not exist"},
		"no records":    {data.TFRecord("no/records").Batch(1), status.NotFound, "no/records", "no/records"},
		"cut record":    {data.TFRecord(cut).Batch(3), status.DataLoss, "truncated record", "truncated record"},
		"no image":      {set.Batch(2), status.NotFound, "2.png", "2.png does not exist"},
		"no feature":    {feature("q", tensor.Int64), status.InvalidArgument, "Feature: q (data type: int64) is required", `feature "q" has 0 values`},
		"other type":    {feature("x", tensor.Float32), status.InvalidArgument, "Key: x.  Data types don't match", `feature "x" has values of type int64, want float`},
		"any, but text": {feature("t", tensor.Int64, -1), status.InvalidArgument, "Key: t.  Data types don't match", `feature "t" has values of type string, want int64`},
		"other size":    {feature("y", tensor.Float32, 2), status.InvalidArgument, "Key: y.  Can't parse serialized Example", `feature "y" has 3 values`},
		"no message":    {data.TextLines(write(t, "a.txt", "no message")).ParseExamples(1, exampleFeatures...).PaddedBatch(1), status.InvalidArgument, "Could not parse example input", "not a tensorflow.Example"},
		"lengths":       {parsed(data.TextLines(lines(t, 5)...)).Batch(3), status.InvalidArgument, "Cannot batch tensors with different shapes", "use PaddedBatch"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newOnWorker(t, op.NewScope(), tt.d, nil).batches(t, 0); status.CodeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.worker) {
				t.Errorf("the worker: got %v, want %v: %q", err, tt.code, tt.worker)
			}
			if _, err := inProgram(t, tt.d, 0); !strings.Contains(fmt.Sprint(err), tt.program) {
				t.Errorf("the program: got %v, want %q", err, tt.program)
			}
		})
	}
}

// TestCacheOnWorker keeps the data sets of Cache from epoch to epoch: the file is read once.
func TestCacheOnWorker(t *testing.T) {
	path := lines(t, 20)[0]
	d := parsed(data.TextLines(path)).Shuffle(4, 1).Cache().Shuffle(9, 2).PaddedBatch(3)
	s := op.NewScope()
	var load *graph.Node
	w := newOnWorker(t, s, d, func(cached op.Output) op.Output {
		v := op.VarHandleOp(s, tensor.Variant, tensor.MakePartial(), op.VarHandleOpSharedName("kept"))
		load = op.AssignVariableOp(s, v, cached)
		return op.ReadVariableOp(s, v, tensor.Variant)
	})
	if err := w.sess.Exec(t.Context(), nil, load); err != nil {
		t.Fatal(err)
	}
	for _, epoch := range []int{3, 0, 1} {
		want, err := inProgram(t, d, epoch)
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.batches(t, epoch)
		if err != nil || !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("epoch %d: the worker reads %q, %v; the program %q", epoch, got, err, want)
		}
		if err := os.Remove(path); err != nil && epoch == 3 {
			t.Fatal(err)
		}
	}
}
