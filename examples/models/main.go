// Command models trains networks of several kinds on data that it makes, each in less than two
// minutes on two cores.
//
//	go run ./examples/models cnn            # one of them
//	go run ./examples/models                # the list
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/weft-ml/weft/train"
)

// An example is a network with its data.
type example struct {
	name, about string
	measure     string  // the value over the validation data that counts
	want        float64 // that it reaches, also in the short form
	fit         func(ctx context.Context, size int, o train.FitOptions) (*train.History, error)
}

// examples lists the networks. size is the number of training elements, short that of the tests.
var examples = []struct {
	example
	size, short  int
	epochs, few  int
	lessIsBetter bool
}{
	{example{"cnn", "convolutions on images of ten patterns, like Fashion-MNIST", "val_accuracy", 0.9, fitCNN}, 4000, 2000, 8, 6, false},
	{example{"resnet", "ResNet-20 on images of ten textures, like CIFAR-10", "val_accuracy", 0.8, fitResNet}, 1500, 240, 4, 4, false},
	{example{"charlstm", "an LSTM that predicts the next character of a text", "val_accuracy", 0.85, fitCharLSTM}, 2000, 400, 10, 10, false},
	{example{"text", "text classification by the mean of embeddings", "val_accuracy", 0.9, fitText}, 4000, 1000, 6, 6, false},
	{example{"widedeep", "wide and deep learning on a table", "val_auc", 0.9, fitWideDeep}, 20000, 6000, 8, 10, false},
	{example{"transformer", "a small Transformer that reverses sequences", "val_accuracy", 0.9, fitTransformer}, 6000, 3000, 10, 10, false},
	{example{"collaborative", "recommendations by embeddings on two parameter servers", "val_root_mean_squared_error", 0.4, fitCollaborative}, 40000, 12000, 8, 12, true},
}

func main() {
	dir := flag.String("dir", "", "folder for checkpoints and event files; none if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, flag.Arg(0), *dir, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, dir string, out io.Writer) error {
	for _, e := range examples {
		if e.name == name {
			h, err := e.fit(ctx, e.size, train.FitOptions{Epochs: e.epochs, Seed: 1, Dir: dir, Progress: out})
			if err != nil {
				return err
			}
			seconds := 0.0
			for _, e := range h.Epochs {
				seconds += e.Seconds
			}
			fmt.Fprintf(out, "seconds of all epochs: %.3f\n", seconds)
			return nil
		}
	}
	for _, e := range examples {
		fmt.Fprintf(out, "%-14s %s\n", e.name, e.about)
	}
	return nil
}
