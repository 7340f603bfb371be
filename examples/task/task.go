// Package task is what the between-graph programs have in common: the flags that describe the
// cluster and the task of the process, and the server of the task.
package task

import (
	"context"
	"flag"
	"strings"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/server"
)

// Flags describe a cluster of parameter servers ("ps") and workers ("worker"), and one task of it.
type Flags struct {
	PSHosts, WorkerHosts string // host:port of each task, separated by commas
	Job                  string // "ps" or "worker"
	Index                int    // of the task in its job
	Target               string // a running server; "" to start one
}

// Register adds the flags to the command line.
func (f *Flags) Register() {
	flag.StringVar(&f.PSHosts, "ps-hosts", "localhost:2222", "host:port of each parameter server, separated by commas")
	flag.StringVar(&f.WorkerHosts, "worker-hosts", "localhost:2223,localhost:2224", "host:port of each worker, separated by commas")
	flag.StringVar(&f.Job, "job-name", "worker", "job of this process: ps or worker")
	flag.IntVar(&f.Index, "task-index", 0, "index of this process in its job")
	flag.StringVar(&f.Target, "target", "", "a running server, such as grpc://localhost:2223; if empty, start the server of this task")
}

// Cluster returns the tasks of the cluster.
func (f *Flags) Cluster() cluster.Spec {
	return cluster.Spec{
		"ps": cluster.Dense(strings.Split(f.PSHosts, ",")...), "worker": cluster.Dense(strings.Split(f.WorkerHosts, ",")...),
	}
}

// Run calls train with the target of a server. Without --target it starts the server of this task
// and stops it at the end. A parameter server has nothing to train: it serves until ctx ends.
func (f *Flags) Run(ctx context.Context, train func(ctx context.Context, target string) error) error {
	if f.Target != "" {
		return train(ctx, f.Target)
	}
	s, err := server.New(cluster.ServerDef{Cluster: f.Cluster(), Job: f.Job, Task: f.Index})
	if err != nil {
		return err
	}
	if f.Job == "ps" {
		return s.Run(ctx)
	}
	defer func() { _ = s.Shutdown(context.WithoutCancel(ctx)) }()
	if err := s.Start(); err != nil {
		return err
	}
	return train(ctx, s.Target())
}
