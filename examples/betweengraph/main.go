// Command betweengraph trains with between-graph replication: every worker has a client and a graph
// of its own, and the variables on the parameter servers are shared. Start one process per task:
//
//	go run ./examples/betweengraph --ps-hosts=localhost:2222 --worker-hosts=localhost:2223,localhost:2224 --job-name=ps --task-index=0 &
//	go run ./examples/betweengraph --ps-hosts=… --worker-hosts=… --job-name=worker --task-index=0 &
//	go run ./examples/betweengraph --ps-hosts=… --worker-hosts=… --job-name=worker --task-index=1
//
// With --target the servers run already (weft server …, TensorFlow's, or weft demo --servers-only),
// and only the workers' clients are started.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/examples/digits"
	"github.com/weft-ml/weft/examples/mlp"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

type config struct {
	psHosts, workerHosts string
	job, target          string
	task                 int
	hidden, steps, batch int
	rate                 float64
	logDir               string
}

func main() {
	var c config
	flag.StringVar(&c.psHosts, "ps-hosts", "localhost:2222", "host:port of each parameter server, with commas")
	flag.StringVar(&c.workerHosts, "worker-hosts", "localhost:2223,localhost:2224", "host:port of each worker, with commas")
	flag.StringVar(&c.job, "job-name", "worker", "which job this process belongs to: ps or worker")
	flag.IntVar(&c.task, "task-index", 0, "which task of its job this process is")
	flag.StringVar(&c.target, "target", "", "a server that runs already, such as grpc://localhost:2223; without it, start one")
	flag.IntVar(&c.hidden, "hidden-units", 100, "units of the hidden layer")
	flag.IntVar(&c.steps, "train-steps", 1000, "global steps, of all workers together")
	flag.IntVar(&c.batch, "batch-size", 100, "images per step")
	flag.Float64Var(&c.rate, "learning-rate", 0.01, "of Adam")
	flag.StringVar(&c.logDir, "log-dir", "", "folder for checkpoints and summaries, which the servers write too; none if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := c.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "betweengraph:", err)
		os.Exit(1)
	}
}

func (c *config) run(ctx context.Context, out io.Writer) error {
	spec := cluster.Spec{
		"ps": cluster.Dense(strings.Split(c.psHosts, ",")...), "worker": cluster.Dense(strings.Split(c.workerHosts, ",")...),
	}
	target := c.target
	if target == "" {
		s, err := server.New(cluster.ServerDef{Cluster: spec, Job: c.job, Task: c.task})
		if err != nil {
			return err
		}
		defer func() { _ = s.Shutdown(context.WithoutCancel(ctx)) }()
		if err := s.Start(); err != nil {
			return err
		}
		if c.job == "ps" {
			<-ctx.Done()
			return nil
		}
		target = s.Target()
	}
	return c.train(ctx, out, spec, target)
}

func (c *config) train(ctx context.Context, out io.Writer, spec cluster.Spec, target string) error {
	worker := fmt.Sprintf("/job:worker/task:%d", c.task)
	s := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{Cluster: spec, WorkerDevice: worker}))
	step := train.GlobalStep(s)
	model := mlp.New(s, c.hidden)
	update := train.Minimize(s, train.NewAdam(c.rate), model.Loss, step)

	sv, err := train.NewSupervisor(s, train.SupervisorOptions{
		IsChief: c.task == 0, LogDir: c.logDir, SessionOptions: []weft.Option{weft.WithSoftPlacement(), weft.WithDeviceFilters("/job:ps", worker)},
	})
	if err != nil {
		return err
	}
	return sv.ManagedSession(ctx, target, func(ctx context.Context, sess *weft.Session) error {
		local, began := 0, time.Now()
		data := digits.New(uint64(c.task))
		for at := int64(0); at < int64(c.steps) && !sv.ShouldStop(); local++ {
			feeds, err := model.Feeds(data, c.batch)
			if err != nil {
				return err
			}
			fetched, err := sess.Run(ctx, feeds, []op.Output{step.Value, model.Accuracy}, []*graph.Node{update})
			if err != nil {
				return err
			}
			if at = tensor.Value[int64](&fetched[0]); local%100 == 0 {
				fmt.Fprintf(out, "job : worker/%d step : %d ,training accuracy : %.2f\n", c.task, at, fetched[1].Go())
			}
		}
		took := time.Since(began)
		feeds, err := model.Feeds(digits.New(1000), 2000)
		if err != nil {
			return err
		}
		fetched, err := sess.Run(ctx, feeds, []op.Output{model.Accuracy}, nil)
		if err == nil {
			fmt.Fprintf(out, "job : worker/%d local steps : %d in %.1f s ,test accuracy : %.2f\n", c.task, local, took.Seconds(), fetched[0].Go())
		}
		return err
	})
}
