package train_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/train"
)

// blobs returns n points of three classes around the corners of a triangle.
func blobs(t *testing.T, n int, seed uint64) *data.Dataset {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	points, labels := make([][]float32, n), make([]int32, n)
	for i := range n {
		c := rng.IntN(3)
		angle := float64(c) * 2 * math.Pi / 3
		points[i] = []float32{float32(math.Cos(angle) + 0.3*rng.NormFloat64()), float32(math.Sin(angle) + 0.3*rng.NormFloat64())}
		labels[i] = int32(c)
	}
	d, err := data.FromSlices(points, labels)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// classifier returns a model for blobs.
func classifier() *nn.Model {
	return &nn.Model{
		Network: nn.Sequential{&nn.Dense{Units: 16, Activation: nn.ReLU}, &nn.Dense{Units: 3}},
		Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
}

func TestFit(t *testing.T) {
	m, dir := classifier(), t.TempDir()
	var out bytes.Buffer
	calls := 0
	h, err := train.Fit(t.Context(), m, blobs(t, 300, 1).Shuffle(300, 1).Batch(32), train.FitOptions{
		Epochs: 8, Optimizer: train.NewAdam(0.02), Seed: 1, Validation: blobs(t, 90, 2).Batch(30), Progress: &out, Dir: dir, ClipNorm: 5,
		OnEpoch: func(train.Epoch) error {
			calls++
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	last := h.Last()
	if len(h.Epochs) != 8 || calls != 8 || last["val_accuracy"] < 0.9 || last["val_loss"] > 0.35 || last["accuracy"] < 0.9 {
		t.Errorf("after %d epochs: %v", len(h.Epochs), last)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 8 || !strings.Contains(out.String(), "epoch 8/8 ") || strings.Contains(out.String(), "\r") {
		t.Errorf("progress:\n%s", out.String())
	}
	if h.Epochs[7].Step != 80 {
		t.Errorf("the last step is %d, want 80", h.Epochs[7].Step)
	}
	got, err := m.Evaluate(t.Context(), blobs(t, 90, 2).Batch(90))
	if err != nil || math.Abs(got["loss"]-last["val_loss"]) > 1e-5 || math.Abs(got["accuracy"]-last["val_accuracy"]) > 1e-9 {
		t.Errorf("Evaluate returns %v, %v; Fit had %v", got, err, last)
	}
	checkEpochEvents(t, dir, 8)
	saved, err := train.ReadHistory(dir)
	if err != nil || len(saved.Epochs) != 8 || saved.Last()["loss"] != last["loss"] {
		t.Errorf("the saved history is %v, %v", saved, err)
	}
}

// checkEpochEvents looks for the values of each epoch in the event files.
func checkEpochEvents(t *testing.T, dir string, epochs int) {
	t.Helper()
	for _, folder := range []string{"train", "validation"} {
		files, err := summary.Files(filepath.Join(dir, folder))
		if err != nil || len(files) == 0 {
			t.Fatalf("event files in %s: %v, %v", folder, files, err)
		}
		r, err := summary.Open(files[0])
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n := 0
		for e, err := range r.Events() {
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range e.Values {
				if v.Tag == "epoch_accuracy" {
					n++
				}
			}
		}
		if n != epochs {
			t.Errorf("%s has %d accuracies, want %d", folder, n, epochs)
		}
	}
}

// TestFitResumes ends training in the third epoch and continues. The result is the same as without
// the interruption.
func TestFitResumes(t *testing.T) {
	options := func(dir string) train.FitOptions {
		return train.FitOptions{Epochs: 5, Seed: 3, Dir: dir, Optimizer: train.NewMomentum(0.05, 0.9)}
	}
	set := blobs(t, 100, 1).Shuffle(100, 1).Batch(20)
	whole, err := train.Fit(t.Context(), classifier(), set, options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options(dir)
	o.OnEpoch = func(e train.Epoch) error {
		if e.Epoch == 2 {
			cancel()
		}
		return nil
	}
	if _, err := train.Fit(ctx, classifier(), set, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("the canceled training returned %v", err)
	}
	m := classifier()
	resumed, err := train.Fit(t.Context(), m, set, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(resumed.Epochs) != 5 || resumed.Last()["loss"] != whole.Last()["loss"] {
		t.Errorf("the loss is %v after %d epochs, want %v", resumed.Last()["loss"], len(resumed.Epochs), whole.Last()["loss"])
	}
}

// TestFitKeepsTheBest trains with a rate that grows until the model gets worse.
func TestFitKeepsTheBest(t *testing.T) {
	m, dir := classifier(), filepath.Join(t.TempDir(), "new", "model")
	test := blobs(t, 90, 2).Batch(90)
	grow := train.ExponentialDecay{Rate: 0.05, Steps: 10, Factor: 4}
	o := train.FitOptions{
		Epochs: 30, Optimizer: train.NewGradientDescent(0), Schedule: grow, Seed: 1, Validation: test, StopAfter: 3, KeepBest: true,
		Monitor: "val_accuracy", Dir: dir,
	}
	h, err := train.Fit(t.Context(), m, blobs(t, 200, 1).Batch(20), o)
	if err != nil {
		t.Fatal(err)
	}
	best, at := 0.0, 0
	for i, e := range h.Epochs {
		if v := e.Values["val_accuracy"]; v > best {
			best, at = v, i
		}
	}
	if len(h.Epochs) != at+4 {
		t.Errorf("training ended after %d epochs, the best was %d", len(h.Epochs), at+1)
	}
	if h.Last()["val_accuracy"] >= best {
		t.Errorf("the last epoch has %v, the best %v", h.Last()["val_accuracy"], best)
	}
	if h.Best()["val_accuracy"] != best || h.BestEpoch == h.Epochs[len(h.Epochs)-1].Epoch {
		t.Errorf("the best epoch is %d with %v, want %v", h.BestEpoch, h.Best(), best)
	}
	got, err := m.Evaluate(t.Context(), test)
	if err != nil || got["accuracy"] != best {
		t.Errorf("the model has an accuracy of %v, want %v; %v", got["accuracy"], best, err)
	}
	again := classifier()
	if _, err := train.Fit(t.Context(), again, blobs(t, 200, 1).Batch(20), o); err != nil {
		t.Fatal(err)
	}
	if got, err := again.Evaluate(t.Context(), test); err != nil || got["accuracy"] != best {
		t.Errorf("after another call the accuracy is %v, want %v; %v", got["accuracy"], best, err)
	}
}

// TestFitContinues trains a model that has weights.
func TestFitContinues(t *testing.T) {
	m, set := classifier(), blobs(t, 100, 1).Batch(50)
	first, err := train.Fit(t.Context(), m, set, train.FitOptions{Epochs: 6, Optimizer: train.NewAdam(0.02)})
	if err != nil {
		t.Fatal(err)
	}
	second, err := train.Fit(t.Context(), m, set, train.FitOptions{Optimizer: train.NewAdam(0.02)})
	if err != nil {
		t.Fatal(err)
	}
	if second.Last()["loss"] >= first.Last()["loss"] {
		t.Errorf("the loss was %v, and is %v after another epoch", first.Last()["loss"], second.Last()["loss"])
	}
}

func TestFitBFloat16(t *testing.T) {
	m := classifier()
	m.BFloat16 = true
	h, err := train.Fit(t.Context(), m, blobs(t, 300, 1).Batch(32), train.FitOptions{Epochs: 8, Optimizer: train.NewAdam(0.02), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if h.Last()["accuracy"] < 0.9 {
		t.Errorf("the accuracy is %v", h.Last()["accuracy"])
	}
}

// TestFitConstraint checks that constraints hold after the updates.
func TestFitConstraint(t *testing.T) {
	m := classifier()
	m.Network = nn.Sequential{&nn.Dense{Units: 3, KernelConstraint: nn.MaxNorm(0.5, 0), KernelRegularizer: nn.L2(0.01)}}
	if _, err := train.Fit(t.Context(), m, blobs(t, 100, 1).Batch(20), train.FitOptions{Epochs: 3, Optimizer: train.NewGradientDescent(1)}); err != nil {
		t.Fatal(err)
	}
	kernel := m.Weights()["dense/kernel"]
	rows, ok := kernel.Go().([][]float32)
	if !ok {
		t.Fatalf("the kernel is %v", kernel.Go())
	}
	for c := range 3 {
		norm := math.Hypot(float64(rows[0][c]), float64(rows[1][c]))
		if norm > 0.5001 || norm < 0.3 {
			t.Errorf("unit %d has the norm %v, want at most 0.5", c, norm)
		}
	}
}

// TestFitMistakes checks that errors name the line of the program and say what to do.
func TestFitMistakes(t *testing.T) {
	points := [][]float32{{1, 2}, {3, 4}}
	set := func(columns ...any) *data.Dataset {
		d, err := data.FromSlices(columns...)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	good := set(points, []int32{0, 1}).Batch(2)
	for _, tt := range []struct {
		name string
		data *data.Dataset
		m    *nn.Model
		o    train.FitOptions
		want string
	}{
		{"wrong shape", set([]float32{1, 2}, []int32{0, 1}).Batch(2), classifier(), train.FitOptions{},
			`dense: the input has shape \[\?\], want at least`},
		{"wrong type", set([][]string{{"a"}, {"b"}}, []int32{0, 1}).Batch(2), classifier(), train.FitOptions{}, `dense/MatMul|string`},
		{"integers", set([][]int32{{1}, {2}}, []int32{0, 1}).Batch(2), &nn.Model{
			Network: nn.Sequential{&nn.Embedding{InputDim: 2, OutputDim: 2}, &nn.Flatten{}, &nn.Dense{Units: 3}}, Loss: nn.MeanSquaredError{},
		}, train.FitOptions{}, `labels of shape \[\?\] do not fit predictions of shape \[\?,3\]`},
		{"label out of range", set(points, []int32{0, 7}).Batch(2), classifier(), train.FitOptions{},
			`epoch 1, batch 1: .*label value of 7.*less than the units of the last layer`},
		{"NaN in the data", set([][]float32{{1, 2}, {float32(math.NaN()), 4}}, []int32{0, 1}).Batch(2), classifier(), train.FitOptions{},
			`epoch 1, batch 1: train: the loss is NaN, because tensor 0 of the batch has an element that is not a finite number`},
		{"NaN loss", set([][]float32{{1e20, 2}, {-1e20, 4}}, []float32{1e20, 0}).Batch(2), &nn.Model{
			Network: nn.Sequential{&nn.Dense{Units: 1}}, Loss: nn.MeanSquaredError{},
		}, train.FitOptions{}, `the loss is (\+Inf|NaN); lower the learning rate`},
		{"empty", set(points, []int32{0, 1}).BatchDropRemainder(3), classifier(), train.FitOptions{}, `no batches in epoch 1; is it empty`},
		{"no batches", set(points, []int32{0, 1}), classifier(), train.FitOptions{}, `call Batch`},
		{"no labels", set(points).Batch(2), classifier(), train.FitOptions{}, `needs inputs and, as the last one, labels`},
		{"other validation", good, classifier(), train.FitOptions{Validation: set([][]float32{{1}}, []int32{0}).Batch(1)},
			`the validation data`},
		{"no such value", good, classifier(), train.FitOptions{Monitor: "val_loss"}, `no value "val_loss" to monitor; there are \["loss" "accuracy"\]`},
		{"same metric twice", good, &nn.Model{
			Network: nn.Sequential{&nn.Dense{Units: 3}}, Loss: nn.SparseCategoricalCrossentropy{FromLogits: true},
			Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}, metrics.SparseCategoricalAccuracy{}},
		}, train.FitOptions{}, `two values have the name "accuracy"`},
		{"no loss", good, &nn.Model{Network: nn.Sequential{&nn.Dense{Units: 1}}}, train.FitOptions{}, `the model has no Loss`},
		{"no network", good, &nn.Model{Loss: nn.MeanSquaredError{}}, train.FitOptions{}, `the model has no Network`},
		{"no units", good, &nn.Model{Network: nn.Sequential{&nn.Dense{}}, Loss: nn.MeanSquaredError{}}, train.FitOptions{}, `dense: the layer has 0 units`},
		{"one-hot", set(points, [][]float32{{1, 0, 0}, {0, 1, 0}}).Batch(2), classifier(), train.FitOptions{}, `for one-hot labels use CategoricalCrossentropy`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := train.Fit(t.Context(), tt.m, tt.data, tt.o)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), "fit_test.go:") || !regexp.MustCompile(`(?s)`+tt.want).MatchString(err.Error()) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestReadHistoryErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := train.ReadHistory(dir); err == nil {
		t.Error("no error for an empty folder")
	}
	if err := os.WriteFile(filepath.Join(dir, train.HistoryFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := train.ReadHistory(dir); err == nil {
		t.Error("no error for a damaged file")
	}
}

// TestFitOfAnotherModel resumes from the checkpoint of a model with other variables.
func TestFitOfAnotherModel(t *testing.T) {
	o := train.FitOptions{Seed: 1, Dir: t.TempDir()}
	set := blobs(t, 60, 1).Batch(20)
	if _, err := train.Fit(t.Context(), classifier(), set, o); err != nil {
		t.Fatal(err)
	}
	wider, longer := classifier(), classifier()
	wider.Network = nn.Sequential{&nn.Dense{Units: 9}, &nn.Dense{Units: 3}}
	longer.Network = nn.Sequential{&nn.Dense{Units: 16}, &nn.Dense{Units: 3}, &nn.Dense{Units: 3}}
	for want, m := range map[string]*nn.Model{"in the model": wider, "it has no": longer} {
		_, err := train.Fit(t.Context(), m, set, o)
		if status.CodeOf(err) != status.FailedPrecondition || !strings.Contains(err.Error(), "the checkpoint of another model: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
