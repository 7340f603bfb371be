package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/tfrecord"
	"github.com/weft-ml/weft/train"
)

// sameWeights fails unless two models have equal weights.
func sameWeights(t *testing.T, got, want *nn.Model) {
	t.Helper()
	for name, w := range want.Weights() {
		g := got.Weights()[name]
		for i, v := range tensor.Values[float32](&w) {
			if tensor.Values[float32](&g)[i] != v {
				t.Fatalf("%s differs: %v, want %v", name, tensor.Values[float32](&g), tensor.Values[float32](&w))
			}
		}
	}
}

// TestDataOnWorker trains with each way of ordering rows, in the program and on the task of the
// session, and wants equal weights, losses and metrics.
func TestDataOnWorker(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	all := blobs(t, 103, 1)
	first, second := all.Split(0.7, 3)
	for name, set := range map[string]*data.Dataset{
		"in order":   all.Batch(20),
		"shuffled":   all.Cache().Shuffle(103, 5).Batch(16).Prefetch(2),
		"window":     all.Shuffle(10, 5).BatchDropRemainder(16),
		"part":       first.Shuffle(200, 6).Skip(3).Take(50).Batch(8),
		"other part": second.Shard(2, 1).Batch(4),
		"batches":    all.Batch(10).Shuffle(4, 9).Take(7),
	} {
		t.Run(name, func(t *testing.T) {
			o := train.FitOptions{Epochs: 3, Optimizer: train.NewAdam(0.03), Seed: 1, Validation: blobs(t, 40, 2).Batch(20), Target: cl.Target("worker", 0)}
			fed, read := classifier(), classifier()
			want, err := train.Fit(t.Context(), fed, set, o)
			if err != nil {
				t.Fatal(err)
			}
			o.DataOnWorker = true
			got, err := train.Fit(t.Context(), read, set, o)
			if err != nil {
				t.Fatal(err)
			}
			sameWeights(t, read, fed)
			for i, e := range want.Epochs {
				if got.Epochs[i].Step != e.Step || got.Epochs[i].Values["loss"] != e.Values["loss"] ||
					got.Epochs[i].Values["val_accuracy"] != e.Values["val_accuracy"] {
					t.Errorf("epoch %d: got %+v, want %+v", i+1, got.Epochs[i], e)
				}
			}
		})
	}
}

// TestDataOnWorkers gives each worker of an all-reduce parts of different sizes: rows in memory, or
// a file.
func TestDataOnWorkers(t *testing.T) {
	var models [4][2]*nn.Model
	for i, onWorker := range []bool{false, true, false, true} {
		models[i] = [2]*nn.Model{classifier(), classifier()}
		histories, errs := fitTogether(t, models[i], func(task int) (train.Dataset, train.FitOptions) {
			n, seed := 40+30*task, uint64(task)+1
			set := blobs(t, n, seed)
			if i >= 2 {
				lines, _ := writeBlobs(t, n, seed)
				set = pairs(data.TextLines(lines)).Cache()
			}
			return set.Shuffle(70, 4).Batch(10), train.FitOptions{
				Epochs: 3, Optimizer: train.NewAdam(0.03), Seed: 1, DataOnWorker: onWorker,
			}
		})
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		if last := histories[0].Epochs[2]; last.Step != 12 {
			t.Errorf("on worker %v: step %d, want 12", onWorker, last.Step)
		}
	}
	for _, m := range models {
		sameWeights(t, m[0], models[0][0])
		sameWeights(t, m[1], models[0][1])
	}
}

// pairs parses lines of two inputs and a label.
func pairs(lines *data.Dataset) *data.Dataset {
	return lines.MapOps(2, func(s *op.Scope, line []op.Output) []op.Output {
		fields := op.DecodeCSV(s, line[0], []op.Output{
			op.Const(s, []float32{0}), op.Const(s, []float32{0}), op.Const(s, []int32{0}),
		})
		if len(fields) != 3 {
			return nil
		}
		return []op.Output{op.Pack(s, fields[:2]), fields[2]}
	})
}

// writeBlobs writes the elements of blobs, as lines and as examples.
func writeBlobs(t *testing.T, n int, seed uint64) (lines, records string) {
	t.Helper()
	dir := t.TempDir()
	lines, records = filepath.Join(dir, "blobs.csv"), filepath.Join(dir, "blobs.tfrecord")
	var text strings.Builder
	w, err := tfrecord.Create(records, "")
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range blobs(t, n, seed).Elements(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		x, label := tensor.Values[float32](&e[0]), tensor.Value[int32](&e[1])
		fmt.Fprintf(&text, "%v,%v,%d\n", x[0], x[1], label)
		m, err := proto.Marshal(&pb.Example{Features: &pb.Features{Feature: map[string]*pb.Feature{
			"x":     {Kind: &pb.Feature_FloatList{FloatList: &pb.FloatList{Value: x}}},
			"label": {Kind: &pb.Feature_Int64List{Int64List: &pb.Int64List{Value: []int64{int64(label)}}}},
		}}})
		if err == nil {
			err = w.Write(m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), os.WriteFile(lines, []byte(text.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	return lines, records
}

// pipelines are data sets of files with the same elements as those of blobs.
func pipelines(t *testing.T, n int, seed uint64) map[string]*data.Dataset {
	t.Helper()
	lines, records := writeBlobs(t, n, seed)
	text := pairs(data.TextLines(lines))
	examples := data.TFRecord(records).ParseExamples(2,
		data.Feature{Name: "x", DType: tensor.Float32, Shape: []int64{2}}, data.Feature{Name: "label", DType: tensor.Int64})
	part, _ := text.Split(0.6, 4)
	return map[string]*data.Dataset{
		"lines":    text.Shuffle(n, 5).Batch(16).Prefetch(2),
		"cached":   text.Shuffle(5, 1).Cache().Shuffle(30, 2).Cache().Shuffle(9, 3).Batch(10),
		"part":     part.Shard(2, 1).Shuffle(20, 1).Batch(7),
		"examples": examples.Shuffle(40, 9).BatchDropRemainder(12),
		"rows": blobs(t, n, seed).MapOps(1, func(s *op.Scope, e []op.Output) []op.Output {
			return []op.Output{op.Mul(s, e[0], op.Const(s, float32(2))), e[1]}
		}).Batch(25).Shuffle(5, 1),
	}
}

// sameHistory fails unless the epochs of two histories have equal values.
func sameHistory(t *testing.T, got, want *train.History) {
	t.Helper()
	if len(got.Epochs) != len(want.Epochs) {
		t.Fatalf("got %d epochs, want %d", len(got.Epochs), len(want.Epochs))
	}
	for i, e := range want.Epochs {
		if got.Epochs[i].Step != e.Step || !maps.Equal(got.Epochs[i].Values, e.Values) {
			t.Errorf("epoch %d: got %+v, want %+v", i+1, got.Epochs[i], e)
		}
	}
}

// TestPipelineOnWorker trains from files that the program reads, and from files that the task of
// the session reads, and wants equal weights, losses and metrics.
func TestPipelineOnWorker(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	for name, set := range pipelines(t, 103, 1) {
		t.Run(name, func(t *testing.T) {
			o := train.FitOptions{Epochs: 3, Optimizer: train.NewAdam(0.03), Seed: 1, Target: cl.Target("worker", 0)}
			fed, read := classifier(), classifier()
			want, err := train.Fit(t.Context(), fed, set, o)
			if err != nil {
				t.Fatal(err)
			}
			o.DataOnWorker = true
			got, err := train.Fit(t.Context(), read, set, o)
			if err != nil {
				t.Fatal(err)
			}
			sameWeights(t, read, fed)
			sameHistory(t, got, want)
		})
	}
	tasks, err := weft.ClusterStatus(t.Context(), cl.Target("worker", 0))
	if err != nil || len(tasks) != 1 || len(tasks[0].Resources) == 0 {
		t.Fatal(tasks, err)
	}
	for _, r := range tasks[0].Resources {
		if strings.HasPrefix(r.Name, "fit_batches") || strings.HasPrefix(r.Name, "fit_cache") {
			t.Errorf("%s is still there", r.Name)
		}
	}
}

// TestImagesOnWorker trains from a folder of images that the task of the session reads.
func TestImagesOnWorker(t *testing.T) {
	dir := t.TempDir()
	for i := range 24 {
		img := image.NewGray(image.Rect(0, 0, 5+i%3, 6))
		for p := range img.Pix {
			img.Pix[p] = uint8(100*(i%2) + 7*p + i)
		}
		class := filepath.Join(dir, []string{"dark", "light"}[i%2])
		err := os.MkdirAll(class, 0o700)
		var b bytes.Buffer
		if err == nil {
			err = png.Encode(&b, img)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(class, fmt.Sprint(i, ".png")), b.Bytes(), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set, _, err := data.ImageFolder(dir, 4, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	var models [2]*nn.Model
	var histories [2]*train.History
	for i := range models {
		models[i] = &nn.Model{
			Network: nn.Sequential{&nn.Rescaling{Scale: 1.0 / 255}, &nn.Flatten{}, &nn.Dense{Units: 2}},
			Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true},
		}
		histories[i], err = train.Fit(t.Context(), models[i], set.Cache().Shuffle(24, 1).Batch(5), train.FitOptions{
			Epochs: 3, Seed: 1, DataOnWorker: i == 1,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	sameWeights(t, models[1], models[0])
	sameHistory(t, histories[1], histories[0])
}

// TestDataOnWorkerErrors passes data that a worker cannot read.
func TestDataOnWorkerErrors(t *testing.T) {
	set := blobs(t, 20, 1)
	mapped := set.Map(1, nil, func(e data.Element) (data.Element, error) { return e, nil })
	for name, tt := range map[string]struct {
		set  *data.Dataset
		code status.Code
		want string
	}{
		"function":   {mapped.Batch(4), status.Unimplemented, "because Map calls a function of the program; make the function of operations (MapOps)"},
		"source":     {data.New(set.Spec(), 3, nil).Batch(4), status.Unimplemented, "because New reads the elements with a function of the program"},
		"one by one": {set, status.FailedPrecondition, "call Batch"},
		"lines":      {pairs(data.TextLines("x")), status.FailedPrecondition, "call Batch"},
		"file":       {pairs(data.TextLines("no/such/file.txt")).Batch(4), status.NotFound, "no/such/file.txt"},
		"no lines":   {pairs(data.TextLines()).Batch(4), status.InvalidArgument, "has no batches"},
		"two sizes":  {set.Batch(8).Shuffle(3, 1), status.Unimplemented, "batches of one size"},
		"no batches": {set.BatchDropRemainder(50), status.InvalidArgument, "has no batches"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(8) { // the small batch is the last one for some
				use := tt.set
				if name == "two sizes" {
					use = set.Batch(8).Shuffle(3, seed)
				}
				_, err := train.Fit(t.Context(), classifier(), use, train.FitOptions{DataOnWorker: true})
				if err == nil && name == "two sizes" {
					continue
				}
				if status.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "_test.go:") {
					t.Errorf("got %v, want %v: %q", err, tt.code, tt.want)
				}
				return
			}
			t.Error("no error")
		})
	}
}
