package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/mnist"
	"github.com/weft-ml/weft/server"
)

// demoFlags are the flags of weft demo.
type demoFlags struct {
	data        string
	cache       string
	steps       int
	batch       int
	hidden      int
	rate        float64
	serversOnly bool
}

const demoWorkers = 2

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Train a small network on a cluster of one parameter server and two workers",
		Long: "Start one parameter server and two workers on loopback ports and train a 784-100-10 perceptron on pictures of digits, " +
			"each worker with a graph and a client of its own (between-graph replication).",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.steps < 1 || f.batch < 1 || f.hidden < 1 {
				return usageError{fmt.Errorf("--steps, --batch and --hidden must be at least 1")}
			}
			return f.run(cmd.Context(), newScreen(cmd.OutOrStdout(), demoWorkers))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "folder with the four IDX files of MNIST, packed with gzip or not (default: digits that are drawn)")
	flags.StringVar(&f.cache, "cache", "", "folder to keep the drawn digits in (default: the user's cache folder)")
	flags.IntVar(&f.steps, "steps", 2000, "training steps of both workers together")
	flags.IntVar(&f.batch, "batch", 100, "pictures in one step")
	flags.IntVar(&f.hidden, "hidden", 100, "hidden units")
	flags.Float64Var(&f.rate, "rate", 0.5, "learning rate")
	flags.BoolVar(&f.serversOnly, "servers-only", false, "keep the cluster up and show how to connect to it")
	return cmd
}

func (f *demoFlags) run(ctx context.Context, scr *screen) error {
	servers, spec, err := startCluster()
	if err != nil {
		return err
	}
	defer stopCluster(servers)
	for i, t := range spec.Tasks() {
		scr.line("started %s at %s", t, servers[i].Target())
	}
	if f.serversOnly {
		scr.connect(spec)
		<-ctx.Done()
		return nil
	}
	set, err := f.dataset()
	if err != nil {
		return err
	}
	scr.line("%d pictures to train on, %d to test", set.Train.Len(), set.Test.Len())
	return f.train(ctx, scr, spec, set)
}

func (f *demoFlags) dataset() (*mnist.Dataset, error) {
	if f.data != "" {
		return mnist.Load(f.data)
	}
	return mnist.Generated(f.cache)
}

// train runs a client for each worker and shows how they get on.
func (f *demoFlags) train(ctx context.Context, scr *screen, spec cluster.Spec, set *mnist.Dataset) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	ready := make(chan struct{}) // closed by worker 0 when the variables have their first values
	var wg sync.WaitGroup
	for i := range demoWorkers {
		wg.Go(func() {
			r := &replica{flags: f, index: i, spec: spec, set: set, scr: scr, ready: ready}
			if err := r.run(ctx); err != nil {
				cancel(fmt.Errorf("worker %d: %w", i, err))
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	accuracy, err := f.evaluate(ctx, spec, set)
	if err != nil {
		return err
	}
	scr.finish(accuracy, time.Since(start), f)
	return nil
}

// startCluster starts one parameter server and the workers on free loopback ports.
func startCluster() ([]*server.Server, cluster.Spec, error) {
	addrs, err := freeAddresses(1 + demoWorkers)
	if err != nil {
		return nil, nil, err
	}
	spec := cluster.Spec{"ps": cluster.Dense(addrs[0]), "worker": cluster.Dense(addrs[1:]...)}
	var servers []*server.Server
	for _, t := range spec.Tasks() {
		s, err := server.New(cluster.ServerDef{Cluster: spec, Job: t.Job, Task: t.Index, CPUDevices: 1})
		if err == nil {
			err = s.Start()
		}
		if err != nil {
			stopCluster(servers)
			return nil, nil, err
		}
		servers = append(servers, s)
	}
	return servers, spec, nil
}

func stopCluster(servers []*server.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, s := range servers {
		_ = s.Stop(ctx) // the program ends: what is still running ends with it
	}
}

// freeAddresses returns loopback addresses whose ports were free a moment ago.
func freeAddresses(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all are held until the last is chosen
		addrs[i] = l.Addr().String()
	}
	return addrs, nil
}
