package nn_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

func network() nn.Sequential {
	return nn.Sequential{
		&nn.Dense{Units: 4, Activation: nn.ReLU}, &nn.BatchNormalization{}, &nn.Dropout{Rate: 0.1}, &nn.Dense{Units: 2},
	}
}

// trained returns a model that was trained for a moment.
func trained(t *testing.T) *nn.Model {
	t.Helper()
	d, err := data.FromSlices([][]float32{{1, 2, 3}, {4, 5, 6}, {-1, 0, 2}}, []int32{0, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &nn.Model{
		Network: network(), Loss: nn.SparseCategoricalCrossentropy{FromLogits: true},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}}, ClassWeights: []float64{1.5, 0.75},
	}
	if _, err := train.Fit(t.Context(), m, d.Batch(3), train.FitOptions{Epochs: 3}); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSaveAndLoad compares the predictions of a model with those of the same model after it was
// saved and loaded, as a SavedModel and as weights.
func TestSaveAndLoad(t *testing.T) {
	m, dir := trained(t), t.TempDir()
	x := [][]float32{{1, 0, 2}, {3, 1, 1}}
	want, err := m.Predict(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(t.Context(), filepath.Join(dir, "model")); err != nil {
		t.Fatal(err)
	}
	served, err := serve.Load(t.Context(), "local", filepath.Join(dir, "model"))
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	sig, err := served.Signature("serving_default")
	if err != nil {
		t.Fatal(err)
	}
	out, err := sig.Run(t.Context(), map[string]any{"inputs": x})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tensor.New(out["outputs"])
	if err != nil || !slices.Equal(tensor.Values[float32](&got), tensor.Values[float32](&want)) {
		t.Errorf("the saved model predicts %v, want %v; %v", out, want.Go(), err)
	}
	if err := m.SaveWeights(filepath.Join(dir, "weights")); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"weights", "model/variables/variables"} {
		again := &nn.Model{Network: network()}
		if err := again.LoadWeights(filepath.Join(dir, prefix)); err != nil {
			t.Fatal(err)
		}
		got, err := again.Predict(t.Context(), x)
		if err != nil || !slices.Equal(tensor.Values[float32](&got), tensor.Values[float32](&want)) {
			t.Errorf("with %s the model predicts %v, want %v; %v", prefix, got.Go(), want.Go(), err)
		}
	}
}

func TestModelErrors(t *testing.T) {
	m := &nn.Model{Network: network()}
	x := [][]float32{{1, 0, 2}}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"predict":      {second(m.Predict(t.Context(), x)), "the model has no weights for dense/kernel; train it"},
		"strings":      {second(m.Predict(t.Context(), [][]string{{"a"}})), "nn: dense: the input is of type string, want float32; convert"},
		"integers":     {second(m.Predict(t.Context(), [][]int32{{1}})), "nn: dense: the input is of type int32, want float32; convert"},
		"doubles":      {second(m.Predict(t.Context(), [][]float64{{1}})), "nn: dense: the input is of type float64, want float32; convert"},
		"images":       {predictWith(t, &nn.Conv2D{Filters: 1, Kernel: []int{1}}, [][][][]uint8{{{{1}}}}), "nn: conv2d: the input is of type uint8, want float32; convert"},
		"sequences":    {predictWith(t, &nn.LSTM{Units: 1}, [][][]int32{{{1}}}), "nn: lstm: the input is of type int32, want float32; convert"},
		"attention":    {predictWith(t, &nn.MultiHeadAttention{NumHeads: 1, KeyDim: 1}, [][][]int32{{{1}}}), "nn: multi_head_attention: the input is of type int32, want float32; convert"},
		"labels":       {fitLabels(t, []string{"a", "b"}), "the labels are strings; make them the indices of classes"},
		"range":        {fitLabels(t, []int32{0, 2}), "labels must be at least 0 and less than the units of the last layer"},
		"fractions":    {fitLabels(t, []float32{0, 0.5}), "the labels are numbers and not the indices of classes"},
		"save":         {m.Save(t.Context(), t.TempDir()), "call train.Fit or Predict first"},
		"save weights": {m.SaveWeights(filepath.Join(t.TempDir(), "w")), "the model has no weights"},
		"load weights": {m.LoadWeights(filepath.Join(t.TempDir(), "w")), "there is no checkpoint with the prefix"},
		"other model":  {predictLoaded(t, &nn.Dense{Units: 1}, x), "has no weights for dense_2/kernel; is it that of another model?"},
		"two inputs":   {second(trained(t).Predict(t.Context(), x, x)), "the network has one input, and the data has 2"},
		"other shape":  {second(trained(t).Predict(t.Context(), [][]float32{{1}})), "the weights of dense/kernel have shape [3,4], want [1,4]"},
		"scalar":       {second(trained(t).Predict(t.Context(), float32(1))), "no dimension for the batch"},
		"summary":      {m.Summary(&strings.Builder{}), "the network has one input"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", name, tt.err, tt.want)
			continue
		}
		if name != "summary" && strings.Count(tt.err.Error(), "model_test.go:") != 1 {
			t.Errorf("%s: %v does not name the line of the program once", name, tt.err)
		}
	}
}

// predictWith returns the error of a network of one layer.
func predictWith(t *testing.T, l nn.Layer, x any) error {
	t.Helper()
	_, err := (&nn.Model{Network: nn.Sequential{l}}).Predict(t.Context(), x)
	return err
}

// predictLoaded returns the error of a network with a further layer and the weights of one without.
func predictLoaded(t *testing.T, further nn.Layer, x any) error {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "w")
	if err := trained(t).SaveWeights(prefix); err != nil {
		return err
	}
	m := &nn.Model{Network: append(network(), further)}
	if err := m.LoadWeights(prefix); err != nil {
		return err
	}
	_, err := m.Predict(t.Context(), x)
	return err
}

// fitLabels returns the error of training two classes with labels.
func fitLabels(t *testing.T, labels any) error {
	t.Helper()
	d, err := data.FromSlices([][]float32{{1, 2}, {3, 4}}, labels)
	if err != nil {
		return err
	}
	m := &nn.Model{Network: network(), Loss: nn.SparseCategoricalCrossentropy{FromLogits: true}}
	_, err = train.Fit(t.Context(), m, d.Batch(2), train.FitOptions{})
	return err
}

func second[T any](_ T, err error) error { return err }

func TestSummary(t *testing.T) {
	m := &nn.Model{Network: nn.Sequential{
		&nn.Conv2D{Filters: 4, Kernel: []int{3}, Activation: nn.ReLU}, &nn.MaxPooling2D{}, &nn.BatchNormalization{}, &nn.Flatten{},
		&nn.Dense{Units: 3}, &nn.Dense{Units: 3},
	}}
	var b strings.Builder
	if err := m.Summary(&b, nn.Input{Shape: []int64{8, 8, 1}}); err != nil {
		t.Fatal(err)
	}
	want := `layer                output        parameters
conv2d               [?, 6, 6, 4]  40
max_pooling2d        [?, 3, 3, 4]  0
batch_normalization  [?, 3, 3, 4]  16
flatten              [?, 36]       0
dense                [?, 3]        111
dense_1              [?, 3]        12
179 parameters: 171 trained, 8 not
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestSharedLayer applies one layer to two inputs.
func TestSharedLayer(t *testing.T) {
	s := op.NewScope()
	c := nn.NewContext(s, true)
	shared := &nn.Dense{Units: 2}
	x := op.Const(s, [][]float32{{1, 2}})
	outs := fetch(t, s, shared.Apply(c, x), shared.Apply(c, x))
	if n := len(train.Variables(s, train.GlobalVariables)); n != 2 {
		t.Errorf("%d variables, want 2", n)
	}
	if a, b := tensor.Values[float32](&outs[0]), tensor.Values[float32](&outs[1]); !slices.Equal(a, b) {
		t.Errorf("the outputs are %v and %v", a, b)
	}
}

// TestMasksReachTheLoss checks that padding counts neither for the loss nor for metrics.
func TestMasksReachTheLoss(t *testing.T) {
	d, err := data.FromSlices([][]int32{{1, 2, 0, 0}, {2, 1, 1, 0}}, [][]int32{{1, 0, 1, 1}, {0, 1, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	m := &nn.Model{
		Network: nn.Sequential{&nn.Embedding{InputDim: 3, OutputDim: 4, MaskZero: true}, &nn.LSTM{Units: 4, ReturnSequences: true}, &nn.Dense{Units: 2}},
		Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true}, Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	h, err := train.Fit(t.Context(), m, d.Batch(2), train.FitOptions{Epochs: 60, Optimizer: train.NewAdam(0.05), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if last := h.Last(); last["accuracy"] != 1 || last["loss"] > 0.1 {
		t.Errorf("got %v, and the labels without the padding are the parity of the inputs", last)
	}
}

func TestInitializers(t *testing.T) {
	s := op.NewScope()
	s.SetSeed(1)
	shape := tensor.Shape{60, 50}
	outs := fetch(t, s, nn.Orthogonal(2)(s, shape, tensor.Float32), nn.LecunNormal()(s, shape, tensor.Float32),
		nn.LecunUniform()(s, shape, tensor.Float32))
	w := tensor.Values[float32](&outs[0])
	for a := range 50 {
		for b := range 50 {
			dot := float32(0)
			for r := range 60 {
				dot += w[r*50+a] * w[r*50+b]
			}
			want := float32(0)
			if a == b {
				want = 4
			}
			if d := dot - want; d > 1e-4 || d < -1e-4 {
				t.Fatalf("the product of columns %d and %d is %v, want %v", a, b, dot, want)
			}
		}
	}
	for _, o := range outs[1:] {
		squares := 0.0
		for _, v := range tensor.Values[float32](&o) {
			squares += float64(v) * float64(v)
		}
		if variance := squares / 3000 * 60; variance < 0.9 || variance > 1.1 {
			t.Errorf("the variance times the inputs is %v, want about 1", variance)
		}
	}
}
