package nn_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/recorded"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// attentive is the functional model of the recorded files.
type attentive struct {
	attention nn.MultiHeadAttention
	norm      nn.LayerNormalization
	dense     nn.Dense
}

func (a *attentive) Apply(c *nn.Context, x op.Output) op.Output {
	y := a.norm.Apply(c, op.AddV2(c.Scope, x, a.attention.Apply(c, x)))
	return a.dense.Apply(c, (&nn.GlobalAveragePooling1D{}).Apply(c, y))
}

// kerasNetworks returns the networks of the recorded files, and their inputs.
func kerasNetworks() (map[string]nn.Network, map[string]nn.Input) {
	return map[string]nn.Network{
			"images": nn.Sequential{
				&nn.Conv2D{Filters: 4, Kernel: []int{3}, Activation: nn.ReLU}, &nn.BatchNormalization{},
				&nn.MaxPooling2D{}, &nn.DepthwiseConv2D{Kernel: []int{2}}, &nn.Flatten{},
				&nn.Dense{Units: 6, Activation: nn.ReLU}, &nn.Dropout{Rate: 0.5}, &nn.Dense{Units: 3, Activation: nn.Softmax},
			},
			"text": nn.Sequential{
				&nn.Embedding{InputDim: 10, OutputDim: 4, MaskZero: true, Parts: 3},
				&nn.Bidirectional{Layer: &nn.LSTM{Units: 3, ReturnSequences: true}}, &nn.GRU{Units: 3}, &nn.Dense{Units: 2},
			},
			"attention": nn.Single(&attentive{
				attention: nn.MultiHeadAttention{NumHeads: 2, KeyDim: 4}, dense: nn.Dense{Units: 2},
			}),
			"nested": nn.Sequential{
				&nn.Dense{Units: 3}, nn.Sequential{&nn.Dense{Units: 4, Activation: nn.Tanh}, &nn.Dense{Units: 3}},
				&nn.Dense{Units: 2}, &nn.Dense{Units: 1},
			},
		}, map[string]nn.Input{
			"images": {Shape: []int64{8, 8, 1}}, "text": {DType: tensor.Int32, Shape: []int64{5}},
			"attention": {Shape: []int64{6, 8}}, "nested": {Shape: []int64{2}},
		}
}

// TestLoadKeras compares the outputs of models, with weights from the files of Keras, with what
// Keras computes.
func TestLoadKeras(t *testing.T) {
	networks, inputs := kerasNetworks()
	for _, tt := range recorded.Read[struct {
		Name  string
		Files []string
		X, Y  recorded.Array
	}](t, "testdata/keras/outputs.json") {
		for _, file := range tt.Files {
			t.Run(file, func(t *testing.T) {
				m := &nn.Model{Network: networks[tt.Name]}
				if err := m.LoadKeras(filepath.Join("testdata/keras", file), inputs[tt.Name]); err != nil {
					t.Fatal(err)
				}
				x := tt.X.Tensor(t)
				y, err := m.Predict(t.Context(), x)
				if err != nil {
					t.Fatal(err)
				}
				tolerance := 1e-5
				if tt.Name == "nested" { // Keras computes two layers with 16 bits
					tolerance = 1e-2
				}
				tt.Y.Check(t, "output", &y, tolerance)
				if err := m.Save(t.Context(), filepath.Join(t.TempDir(), "saved")); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestLoadKerasErrors loads files into networks that do not match them.
func TestLoadKerasErrors(t *testing.T) {
	vector := nn.Input{Shape: []int64{2}}
	bad := filepath.Join(t.TempDir(), "bad.h5")
	if err := os.WriteFile(bad, []byte("label,x\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		network    nn.Sequential
		input      []nn.Input
		code       status.Code
		want       []string
	}{
		{
			"shape", "testdata/keras/nested.keras",
			nn.Sequential{&nn.Dense{Units: 3}, &nn.Dense{Units: 5}, &nn.Dense{Units: 3}, &nn.Dense{Units: 2}, &nn.Dense{Units: 1}},
			[]nn.Input{vector}, status.InvalidArgument,
			[]string{"dense_1/kernel has shape [3,5] in the model", "the layer wide has shape [3,4]", "keras_test.go:"},
		},
		{
			"number of layers", "testdata/keras/nested.keras", nn.Sequential{&nn.Dense{Units: 3}},
			[]nn.Input{vector}, status.InvalidArgument,
			[]string{"the file has 5 dense layers (first, wide, narrow, third, last) with weights, the model has 1 dense layer (dense)"},
		},
		{
			"class of layer", "testdata/keras/text.weights.h5", nn.Sequential{&nn.Dense{Units: 3}},
			[]nn.Input{vector}, status.InvalidArgument,
			[]string{"the file has 1 bidirectional layer (bidirectional) with weights, the model has no bidirectional layer"},
		},
		{
			"bias", "testdata/keras/nested.keras",
			nn.Sequential{
				&nn.Dense{Units: 3, NoBias: true}, &nn.Dense{Units: 4}, &nn.Dense{Units: 3}, &nn.Dense{Units: 2}, &nn.Dense{Units: 1},
			},
			[]nn.Input{vector}, status.InvalidArgument,
			[]string{"first of the file has 2 weights, the layer dense of the model has 1"},
		},
		{"no inputs", "testdata/keras/nested.keras", nn.Sequential{}, nil, status.FailedPrecondition, []string{"does not know its inputs"}},
		{"no file", "testdata/keras/none.keras", nn.Sequential{}, []nn.Input{vector}, status.NotFound, []string{"does not exist"}},
		{"no HDF5", bad, nn.Sequential{}, []nn.Input{vector}, status.DataLoss, []string{"bad.h5: not an HDF5 file"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &nn.Model{Network: tt.network}
			err := m.LoadKeras(tt.file, tt.input...)
			if status.CodeOf(err) != tt.code {
				t.Fatalf("got %v, want the code %v", err, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to contain %q", err, want)
				}
			}
			if m.Weights() != nil {
				t.Error("the model has weights after the error")
			}
		})
	}
}
