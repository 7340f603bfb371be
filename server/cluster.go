package server

import (
	"context"
	"errors"
	"net"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/status"
)

// Cluster is a whole cluster of servers in this process, for tests and for experiments with
// distributed programs.
type Cluster struct {
	spec    cluster.Spec
	servers map[cluster.Task]*Server
}

// StartCluster starts servers on free loopback ports, one for each task. jobs maps the name of a
// job to its number of tasks; each task has cpuDevices CPU devices. The caller must call Shutdown
// or Close.
func StartCluster(jobs map[string]int, cpuDevices int, opts ...Option) (*Cluster, error) {
	listeners := map[cluster.Task]net.Listener{}
	c := &Cluster{spec: cluster.Spec{}, servers: map[cluster.Task]*Server{}}
	for job, tasks := range jobs {
		c.spec[job] = cluster.Job{}
		for i := range tasks {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				closeAll(listeners)
				return nil, status.Unavailablef("cannot listen: %w", err)
			}
			listeners[cluster.Task{Job: job, Index: i}] = l
			c.spec[job][i] = l.Addr().String()
		}
	}
	for _, t := range c.spec.Tasks() {
		def := cluster.ServerDef{Cluster: c.spec, Job: t.Job, Task: t.Index, CPUDevices: cpuDevices}
		s, err := New(def, append([]Option{WithListener(listeners[t])}, opts...)...)
		if err == nil {
			delete(listeners, t)
			c.servers[t] = s
			err = s.Start()
		}
		if err != nil {
			closeAll(listeners)
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func closeAll(listeners map[cluster.Task]net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// Spec returns the tasks and their addresses. It must not be modified.
func (c *Cluster) Spec() cluster.Spec { return c.spec }

// Target returns the target of a task for clients.
func (c *Cluster) Target(job string, task int) string {
	return "grpc://" + c.spec.Address(cluster.Task{Job: job, Index: task})
}

// Server returns the server of a task, nil if there is no such task.
func (c *Cluster) Server(job string, task int) *Server {
	return c.servers[cluster.Task{Job: job, Index: task}]
}

// Shutdown shuts down all servers, one after the other; see [Server.Shutdown].
func (c *Cluster) Shutdown(ctx context.Context) error {
	var errs []error
	for _, t := range c.spec.Tasks() {
		if s := c.servers[t]; s != nil {
			errs = append(errs, s.Shutdown(ctx))
		}
	}
	return errors.Join(errs...)
}

// Close closes all servers; see [Server.Close].
func (c *Cluster) Close() error {
	var errs []error
	for _, t := range c.spec.Tasks() {
		if s := c.servers[t]; s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
