// Command cifar10 trains a convolutional network on CIFAR-10. It uses weight decay through the
// collection of losses, a decaying learning rate, moving averages of the variables, checkpoints and
// summaries.
//
//	go run ./examples/cifar10 --data-dir=cifar-10-batches-bin --train-dir=/tmp/cifar10
//
// --data-dir is the folder with data_batch_1.bin …, the binary version of CIFAR-10. Without it the
// program generates images of ten colored textures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local" // for the target "local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

type config struct {
	target, dataDir, trainDir string
	width, batch              int
	steps                     int64
	rate                      float64
}

func main() {
	var c config
	flag.StringVar(&c.target, "target", "local", "any task of a cluster, or local")
	flag.StringVar(&c.dataDir, "data-dir", "", "folder with the binary files of CIFAR-10; if empty, generate images")
	flag.StringVar(&c.trainDir, "train-dir", "", "folder for checkpoints and summaries; none if empty")
	flag.IntVar(&c.width, "width", 64, "channels of the convolutions")
	flag.IntVar(&c.batch, "batch-size", 64, "images per step")
	flag.Int64Var(&c.steps, "max-steps", 500, "training steps")
	flag.Float64Var(&c.rate, "learning-rate", 0.02, "initial learning rate of gradient descent")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := c.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cifar10:", err)
		if stopped, ok := errors.AsType[*train.SignalError](err); ok {
			os.Exit(stopped.ExitStatus())
		}
		os.Exit(1)
	}
}

func (c *config) run(ctx context.Context, out io.Writer) error {
	data, err := newImages(c.dataDir)
	if err != nil {
		return err
	}
	s := op.NewScope()
	s.SetSeed(1)
	step := train.GlobalStep(s)
	net := newNetwork(s, c.width)
	total := net.totalLoss(s)
	decay := train.ExponentialDecay{Rate: c.rate, Steps: 350, Factor: 0.5, Staircase: true}
	descent := &train.GradientDescent{Schedule: decay.At(s, step.Value)}
	applied := train.Minimize(s, descent, total, step)
	averages := &train.MovingAverages{Decay: 0.9999, Updates: step.Value}
	update := averages.Apply(s.WithControlDependencies(applied))
	train.ScalarSummary(s, "total_loss", total)

	term := train.NewSignalHook() // SIGTERM ends training with a checkpoint
	final := &train.FinalOpsHook{Fetches: []op.Output{net.accuracy}}
	if final.Feeds, err = net.feeds(data, 500); err != nil {
		return err
	}
	sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
		Master: c.target, IsChief: true, CheckpointDir: c.trainDir,
		Hooks: []train.SessionRunHook{
			&train.StopAtStepHook{LastStep: c.steps}, term, &train.NanTensorHook{Loss: total}, final,
			&train.LoggingTensorHook{
				Tensors: map[string]op.Output{"loss": total, "step": step.Value}, EverySteps: 50,
				Logger: slog.New(slog.NewTextHandler(out, nil)),
			},
			&train.FeedFnHook{Feed: func(context.Context) (map[op.Output]tensor.Tensor, error) { return net.feeds(data, c.batch) }},
		},
	})
	if err != nil {
		return err
	}
	err = sess.Loop(ctx, func(ctx context.Context) error {
		_, err := sess.Run(ctx, nil, nil, []*graph.Node{update})
		return err
	})
	if err == nil {
		err = term.Err()
	}
	if err == nil {
		fmt.Fprintf(out, "accuracy : %.2f\n", final.Values()[0].Go())
	}
	return err
}
