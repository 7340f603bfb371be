package guides

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/tensor"
)

// files is the folder of the models that Keras has written.
const files = "../../nn/testdata/keras"

func images(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "keras")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path, images := filepath.Join(files, "images.keras"), make([][8][8][1]float32, 1)

	m := &nn.Model{Network: nn.Sequential{
		&nn.Conv2D{Filters: 4, Kernel: []int{3}, Activation: nn.ReLU},
		&nn.BatchNormalization{},
		&nn.MaxPooling2D{},
		&nn.DepthwiseConv2D{Kernel: []int{2}},
		&nn.Flatten{},
		&nn.Dense{Units: 6, Activation: nn.ReLU},
		&nn.Dropout{Rate: 0.5},
		&nn.Dense{Units: 3, Activation: nn.Softmax},
	}}
	if err := m.LoadKeras(path, nn.Input{Shape: []int64{8, 8, 1}}); err != nil {
		return err
	}
	probabilities, err := m.Predict(ctx, images)
	if err != nil {
		return err
	}
	fmt.Println(probabilities.Shape())

	if err := m.Save(ctx, filepath.Join(folder, "images", "1")); err != nil {
		return err
	}
	return nil
}

func text(ctx context.Context) error {
	m := &nn.Model{Network: nn.Sequential{
		&nn.Embedding{InputDim: 10, OutputDim: 4, MaskZero: true},
		&nn.Bidirectional{Layer: &nn.LSTM{Units: 3, ReturnSequences: true}},
		&nn.GRU{Units: 3},
		&nn.Dense{Units: 2},
	}}
	sentence := nn.Input{DType: tensor.Int32, Shape: []int64{5}}
	if err := m.LoadKeras(filepath.Join(files, "text.weights.h5"), sentence); err != nil {
		return err
	}
	return m.Summary(os.Stdout, sentence)
}

func Example_images() {
	show(images)
	// Output: [1,3]
}

func Example_text() {
	show(text)
	// Output:
	// layer                        output     parameters
	// embedding                    [?, 5, 4]  40
	// bidirectional                [?, 5, 6]  0
	// bidirectional/forward_lstm   [?, 5, 3]  96
	// bidirectional/backward_lstm  [?, 5, 3]  96
	// gru                          [?, 3]     99
	// dense                        [?, 2]     8
	// 339 parameters: 339 trained, 0 not
}
