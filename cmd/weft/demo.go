package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/cmd/weft/internal/mnist"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/train"
)

// demoFlags are the flags of weft demo.
type demoFlags struct {
	data        string
	cache       string
	dir         string
	sync        bool
	steps       int
	batch       int
	hidden      int
	rate        float64
	serversOnly bool
	tls         bool
	certs       *demoCerts // nil without tls
	others      string     // other flags on the command line, except --dir and --steps
}

const demoWorkers = 2

// again returns the command that continues a demo up to a number of steps.
func (f *demoFlags) again(steps int) string {
	return fmt.Sprintf("weft demo --dir=%s --steps=%d%s", f.dir, steps, f.others)
}

// given returns the flags on the command line, except some.
func given(cmd *cobra.Command, but ...string) string {
	var text strings.Builder
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch {
		case slices.Contains(but, flag.Name):
		case flag.Value.Type() == "bool" && flag.Value.String() == "true":
			text.WriteString(" --" + flag.Name)
		default:
			text.WriteString(" --" + flag.Name + "=" + flag.Value.String())
		}
	})
	return text.String()
}

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Train a small network on a cluster of one parameter server and two workers",
		Long: "Start one parameter server and two workers on loopback ports, and train a 784-100-10 perceptron on images of digits. " +
			"Each worker has its own graph and client (between-graph replication). Checkpoints, summaries and the trained model are " +
			"written to a folder. An interrupted demo continues if it is started with the same folder.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.steps < 1 || f.batch < 1 || f.hidden < 1 {
				return usageError{fmt.Errorf("--steps, --batch and --hidden must be at least 1")}
			}
			f.others = given(cmd, "dir", "steps")
			return f.run(cmd.Context(), newScreen(cmd.OutOrStdout(), demoWorkers))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "folder with the four IDX files of MNIST, gzipped or not (default: generated digits)")
	flags.StringVar(&f.cache, "cache", "", "folder for the generated digits (default: the user's cache folder)")
	flags.StringVar(&f.dir, "dir", "", "folder for checkpoints, summaries and the model (default: a new temporary folder)")
	flags.BoolVar(&f.sync, "sync", false, "train synchronously: average the gradients of the workers")
	flags.IntVar(&f.steps, "steps", 2000, "total number of training steps of both workers")
	flags.IntVar(&f.batch, "batch", 100, "images in one step")
	flags.IntVar(&f.hidden, "hidden", 100, "hidden units")
	flags.Float64Var(&f.rate, "rate", 0.5, "learning rate")
	flags.BoolVar(&f.tls, "tls", false, "use TLS, with a CA and certificates that are made for this run")
	flags.BoolVar(&f.serversOnly, "servers-only", false, "start only the cluster and show how to connect to it")
	return cmd
}

func (f *demoFlags) run(ctx context.Context, scr *screen) error {
	var opts []server.Option
	if f.tls {
		var err error
		if f.certs, err = newDemoCerts(); err != nil {
			return err
		}
		defer f.certs.remove()
		opts = append(opts, server.WithTaskTLS(f.certs.task))
		scr.line("made a CA and the certificates of three tasks and a client in %s", f.certs.dir)
	}
	cl, err := server.StartCluster(map[string]int{"ps": 1, "worker": demoWorkers}, 1, opts...)
	if err != nil {
		return err
	}
	defer stopCluster(cl)
	for _, t := range cl.Spec().Tasks() {
		scr.line("started %s at %s", t, cl.Target(t.Job, t.Index))
	}
	if f.serversOnly {
		scr.connect(cl.Spec())
		<-ctx.Done()
		return nil
	}
	if f.dir == "" {
		f.dir, err = os.MkdirTemp("", "weft-demo-")
	} else {
		f.dir, err = fileio.Abs(f.dir)
	}
	if err != nil {
		return err
	}
	set, err := f.dataset()
	if err != nil {
		return err
	}
	scr.line("%d images for training, %d for testing", set.Train.Len(), set.Test.Len())
	return f.train(ctx, scr, cl, set)
}

func stopCluster(cl *server.Cluster) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = cl.Shutdown(ctx) // the program ends, and with it all remaining work
}

func (f *demoFlags) dataset() (*mnist.Dataset, error) {
	if f.data != "" {
		return mnist.Load(f.data)
	}
	return mnist.Generated(f.cache)
}

// modelDir returns the folder of the trained model.
func (f *demoFlags) modelDir() string { return fileio.Join(f.dir, "model", strconv.Itoa(f.steps)) }

// train runs a client for each worker and shows their progress. When ctx ends, the workers finish
// their steps and the chief saves a checkpoint.
func (f *demoFlags) train(ctx context.Context, scr *screen, cl *server.Cluster, set *mnist.Dataset) error {
	latest, err := train.LatestCheckpoint(f.dir)
	if err != nil {
		return err
	}
	if latest != "" {
		scr.line("continuing from %s", latest)
	}
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	start := time.Now()
	replicas := make([]*replica, demoWorkers)
	var running sync.WaitGroup
	for i := range replicas {
		replicas[i] = &replica{flags: f, index: i, cluster: cl, set: set, scr: scr, interrupted: ctx.Done()}
		running.Go(func() {
			if err := replicas[i].run(work); err != nil {
				cancel(fmt.Errorf("worker %d: %w", i, err))
			}
		})
	}
	running.Wait()
	if err := context.Cause(work); err != nil {
		return err
	}
	if latest, err = train.LatestCheckpoint(f.dir); err != nil {
		return err
	}
	if ctx.Err() != nil {
		scr.interrupted(latest, f)
		return nil
	}
	accuracy, err := f.evaluate(ctx, cl, set)
	if err != nil {
		return err
	}
	scr.finish(accuracy, time.Since(start), latest, f)
	return nil
}

// exportHook writes the model at the end of training, unless training was interrupted or an earlier
// run has written a model for the same number of steps.
type exportHook struct {
	train.SavedModelHook
	interrupted func() bool
	exists      bool
}

// Begin implements train.SessionRunHook.
func (h *exportHook) Begin(s *op.Scope) error {
	err := h.SavedModelHook.Begin(s)
	h.exists = status.CodeOf(err) == status.AlreadyExists
	if h.exists {
		return nil
	}
	return err
}

// End implements train.SessionRunHook.
func (h *exportHook) End(ctx context.Context, sess train.Session) error {
	if h.exists || h.interrupted() {
		return nil
	}
	return h.SavedModelHook.End(ctx, sess)
}
