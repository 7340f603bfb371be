package guides

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/train"
)

func trainText(ctx context.Context, path, dir string) error {
	texts, err := data.ReadTexts(path)
	if err != nil {
		return err
	}
	words := data.NewVocabulary(texts.Texts, 5000)
	training, validation := texts.Dataset(words).Split(0.8, 1)
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Embedding{InputDim: words.Size(), OutputDim: 16, MaskZero: true},
			&nn.GlobalAveragePooling1D{},
			&nn.Dense{Units: 16, Activation: nn.ReLU},
			&nn.Dense{Units: len(texts.Classes), Activation: nn.Softmax},
		},
		Loss:    nn.SparseCategoricalCrossentropy{},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	history, err := train.Fit(ctx, m, training.Shuffle(10_000, 1).PaddedBatch(32), train.FitOptions{
		Epochs: 15, Optimizer: train.NewAdam(0.01), Seed: 1,
		Validation: validation.PaddedBatch(100), StopAfter: 3, KeepBest: true,
	})
	if err != nil {
		return err
	}
	fmt.Println("accuracy over 0.9:", history.Best()["val_accuracy"] > 0.9)
	if err := m.Save(ctx, dir); err != nil {
		return err
	}
	return words.Save(filepath.Join(dir, "words.txt"))
}

func predictText(ctx context.Context, dir, text string) error {
	words, err := data.LoadVocabulary(filepath.Join(dir, "words.txt"))
	if err != nil {
		return err
	}
	model, err := serve.Load(ctx, "local", dir)
	if err != nil {
		return err
	}
	defer model.Close()
	sig, err := model.Signature("serving_default")
	if err != nil {
		return err
	}
	out, err := sig.Run(ctx, map[string]any{"inputs": [][]int32{words.Numbers(text)}})
	if err != nil {
		return err
	}
	probabilities := out["outputs"].([][]float32)[0]
	fmt.Println("class", slices.Index(probabilities, slices.Max(probabilities)))
	return nil
}

// writeTexts writes reviews that are made of words.
func writeTexts(path string, n int) error {
	rng := rand.New(rand.NewPCG(1, 0))
	sides := map[string][]string{"bad": strings.Fields("dull broken bitter weak"), "good": strings.Fields("bright lovely superb warm")}
	others := strings.Fields("The a film book story play it was of in with and actor scene music end")
	var b strings.Builder
	for range n {
		class := []string{"bad", "good"}[rng.IntN(2)]
		var words []string
		for range 4 + rng.IntN(8) {
			from := others
			if rng.IntN(3) == 0 {
				from = sides[class]
			}
			words = append(words, from[rng.IntN(len(from))])
		}
		words = append(words, sides[class][rng.IntN(4)])
		fmt.Fprintf(&b, "%s\t%s.\n", class, strings.Join(words, " "))
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

func reviews(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "text")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path, dir := filepath.Join(folder, "reviews.tsv"), filepath.Join(folder, "1")
	if err := writeTexts(path, 800); err != nil {
		return err
	}
	if err := trainText(ctx, path, dir); err != nil {
		return err
	}
	return predictText(ctx, dir, "A lovely story, and superb music!")
}

func Example_reviews() {
	show(reviews)
	// Output:
	// accuracy over 0.9: true
	// class 1
}
