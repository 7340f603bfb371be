// Command betweengraph trains with between-graph replication: every worker has its own client and
// graph, and the workers share the variables on the parameter servers. Start one process per task:
//
//	go run ./examples/betweengraph --ps-hosts=localhost:2222 --worker-hosts=localhost:2223,localhost:2224 --job-name=ps --task-index=0 &
//	go run ./examples/betweengraph --ps-hosts=… --worker-hosts=… --job-name=worker --task-index=0 &
//	go run ./examples/betweengraph --ps-hosts=… --worker-hosts=… --job-name=worker --task-index=1
//
// With --target a process uses a running server (weft server …, TensorFlow's, or weft demo
// --servers-only). Then only the clients of the workers are started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/examples/digits"
	"github.com/weft-ml/weft/examples/mlp"
	"github.com/weft-ml/weft/examples/task"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

type config struct {
	task                 task.Flags
	hidden, steps, batch int
	rate                 float64
	logDir               string
}

func main() {
	var c config
	c.task.Register()
	flag.IntVar(&c.hidden, "hidden-units", 100, "units of the hidden layer")
	flag.IntVar(&c.steps, "train-steps", 1000, "total number of steps of all workers")
	flag.IntVar(&c.batch, "batch-size", 100, "images per step")
	flag.Float64Var(&c.rate, "learning-rate", 0.01, "learning rate of Adam")
	flag.StringVar(&c.logDir, "log-dir", "", "folder for checkpoints and summaries, shared by all tasks; none if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := c.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "betweengraph:", err)
		if stopped, ok := errors.AsType[*train.SignalError](err); ok {
			os.Exit(stopped.ExitStatus())
		}
		os.Exit(1)
	}
}

func (c *config) run(ctx context.Context, out io.Writer) (err error) {
	if c.logDir != "" { // the working directories of the servers may differ
		if c.logDir, err = filepath.Abs(c.logDir); err != nil {
			return err
		}
	}
	return c.task.Run(ctx, func(ctx context.Context, target string) error { return c.train(ctx, out, target) })
}

func (c *config) train(ctx context.Context, out io.Writer, target string) error {
	worker := fmt.Sprintf("/job:worker/task:%d", c.task.Index)
	s := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{Cluster: c.task.Cluster(), WorkerDevice: worker}))
	step := train.GlobalStep(s)
	model := mlp.New(s, c.hidden)
	update := train.Minimize(s, train.NewAdam(c.rate), model.Loss, step)

	sv, err := train.NewSupervisor(s, train.SupervisorOptions{
		IsChief: c.task.Index == 0, LogDir: c.logDir, SessionOptions: []weft.SessionOption{weft.WithSoftPlacement(), weft.WithDeviceFilters("/job:ps", worker)},
	})
	if err != nil {
		return err
	}
	term := train.NewSignalHook() // SIGTERM ends training with a checkpoint
	defer func() { _ = term.End(ctx, nil) }()
	return sv.ManagedSession(ctx, target, func(ctx context.Context, sess *weft.Session) error {
		local, began := 0, time.Now()
		data := digits.New(uint64(c.task.Index))
		for at := int64(0); at < int64(c.steps) && !sv.ShouldStop() && !term.Stopped(); local++ {
			feeds, err := model.Feeds(data, c.batch)
			if err != nil {
				return err
			}
			fetched, err := sess.Run(ctx, feeds, []op.Output{step.Value, model.Accuracy}, []*graph.Node{update})
			if err != nil {
				return err
			}
			if at = tensor.Value[int64](&fetched[0]); local%100 == 0 {
				fmt.Fprintf(out, "job : worker/%d step : %d ,training accuracy : %.2f\n", c.task.Index, at, fetched[1].Go())
			}
		}
		took := time.Since(began)
		if c.task.Index == 0 && c.logDir != "" {
			if _, err := sv.Save(ctx, sess); err != nil {
				return err
			}
		}
		if err := term.Err(); err != nil {
			return err
		}
		feeds, err := model.Feeds(digits.New(1000), 2000)
		if err != nil {
			return err
		}
		fetched, err := sess.Run(ctx, feeds, []op.Output{model.Accuracy}, nil)
		if err == nil {
			fmt.Fprintf(out, "job : worker/%d local steps : %d in %.1f s ,test accuracy : %.2f\n", c.task.Index, local, took.Seconds(), fetched[0].Go())
		}
		return err
	})
}
