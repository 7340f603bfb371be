package guides

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

func trainImages(ctx context.Context, folder string) (*nn.Model, []string, error) {
	images, classes, err := data.ImageFolder(folder, 32, 32, 2)
	if err != nil {
		return nil, nil, err
	}
	training, validation := images.Split(0.8, 1)
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Rescaling{Scale: 1.0 / 255},
			&nn.Conv2D{Filters: 8, Kernel: []int{3}, Activation: nn.ReLU}, &nn.MaxPooling2D{},
			&nn.Conv2D{Filters: 16, Kernel: []int{3}, Activation: nn.ReLU}, &nn.MaxPooling2D{},
			&nn.Flatten{}, &nn.Dense{Units: len(classes)},
		},
		Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	history, err := train.Fit(ctx, m, training.Cache().Shuffle(1000, 1).Batch(16), train.FitOptions{
		Epochs: 12, Optimizer: train.NewAdam(0.005), Seed: 1,
		Validation: validation.Cache().Batch(50), StopAfter: 3, KeepBest: true,
	})
	if err != nil {
		return nil, nil, err
	}
	fmt.Println("accuracy over 0.9:", history.Best()["val_accuracy"] > 0.9)

	confusion := metrics.ConfusionMatrix{Classes: len(classes)}
	total, err := m.Total(ctx, validation.Batch(50), confusion)
	if err != nil {
		return nil, nil, err
	}
	for i, row := range confusion.Matrix(total) {
		fmt.Fprintln(os.Stderr, classes[i], row)
	}
	return m, classes, nil
}

func classify(ctx context.Context, m *nn.Model, classes []string, path string) (string, error) {
	picture, err := data.ReadImage(path, 32, 32)
	if err != nil {
		return "", err
	}
	batch, err := picture.WithShape(tensor.Shape{1, 32, 32, 3})
	if err != nil {
		return "", err
	}
	scores, err := m.Predict(ctx, batch)
	if err != nil {
		return "", err
	}
	row := tensor.Values[float32](&scores)
	return classes[slices.Index(row, slices.Max(row))], nil
}

// drawShape writes a picture of a disk or of a ring.
func drawShape(path string, ring bool, rng *rand.Rand) error {
	img := image.NewGray(image.Rect(0, 0, 32, 32))
	cx, cy, r := 10+rng.IntN(12), 10+rng.IntN(12), 6+rng.IntN(4)
	for y := range 32 {
		for x := range 32 {
			d := (x-cx)*(x-cx) + (y-cy)*(y-cy)
			v := rng.IntN(60)
			if d <= r*r && (!ring || d >= (r-3)*(r-3)) {
				v += 180
			}
			img.SetGray(x, y, color.Gray{Y: uint8(v)})
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return png.Encode(f, img)
}

func pictures(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "images")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	rng := rand.New(rand.NewPCG(1, 0))
	for _, class := range []string{"disk", "ring"} {
		if err := os.Mkdir(filepath.Join(folder, class), 0o700); err != nil {
			return err
		}
		for i := range 100 {
			if err := drawShape(filepath.Join(folder, class, fmt.Sprint(i, ".png")), class == "ring", rng); err != nil {
				return err
			}
		}
	}
	m, classes, err := trainImages(ctx, folder)
	if err != nil {
		return err
	}
	class, err := classify(ctx, m, classes, filepath.Join(folder, "ring", "7.png"))
	if err == nil {
		fmt.Println(class)
	}
	return err
}

func Example_pictures() {
	show(pictures)
	// Output:
	// accuracy over 0.9: true
	// ring
}
