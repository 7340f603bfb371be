package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/internal/dataservice"
	"github.com/weft-ml/weft/internal/sys/buildinfo"
	"github.com/weft-ml/weft/internal/sys/memlimit"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/rpc"
)

// dataFlags are the flags that dispatchers and workers have in common.
type dataFlags struct {
	host     string
	port     int
	insecure bool
	memory   byteSize
	limits   grpch2.Limits
	log      logFlags
}

func (f *dataFlags) add(flags *pflag.FlagSet, port int) {
	flags.StringVar(&f.host, "host", "127.0.0.1", "address to listen on; 0.0.0.0 or :: for all, with --insecure")
	flags.IntVar(&f.port, "port", port, "port to listen on; 0 for any that is free")
	flags.BoolVar(&f.insecure, "insecure", false, "listen on an address other than loopback, where any host that can reach it can run datasets")
	memoryLimitFlag(flags, &f.memory, "datasets")
	connectionFlags(flags, &f.limits, "")
	f.log.add(flags, "calls of workers and clients, too")
}

// listen returns the listener of the process, which keeps to its memory limit from now on.
func (f *dataFlags) listen() (net.Listener, error) {
	address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(f.host, strconv.Itoa(f.port)))
	if err != nil {
		return nil, usageError{fmt.Errorf("--host: %w", err)}
	}
	if !f.insecure && !address.IP.IsLoopback() {
		return nil, usageError{fmt.Errorf("--host: other machines can reach %s; --insecure allows it on a trusted network", address)}
	}
	memlimit.Set(int64(f.memory))
	return rpc.Listen(address)
}

func newDataService() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data-service",
		Short: "Run input pipelines for clients of TensorFlow's tf.data service",
		Long: "Run a dispatcher or a worker of the tf.data service. A TensorFlow 2.21 program sends its datasets there with " +
			"tf.data.experimental.service.distribute, and reads their elements from the workers.",
		Example: "  weft data-service dispatcher --port=5000 --work-dir=/var/lib/weft-data\n" +
			"  weft data-service worker --dispatcher=127.0.0.1:5000 --port=5001",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDispatcher(), newDataWorker())
	return cmd
}

func newDispatcher() *cobra.Command {
	var f dataFlags
	c := dataservice.DispatcherConfig{}
	cmd := &cobra.Command{
		Use:   "dispatcher",
		Short: "Run the dispatcher of a tf.data service",
		Long:  "Run the dispatcher, which knows the datasets, jobs and workers of a service, until the process receives SIGINT or SIGTERM.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = f.log.logger(cmd.ErrOrStderr())
			l, err := f.listen()
			if err != nil {
				return err
			}
			d, err := dataservice.NewDispatcher(c)
			if err != nil {
				l.Close()
				return err
			}
			defer d.Close()
			fmt.Fprintf(cmd.OutOrStdout(), "weft %s dispatches at grpc://%s\n", buildinfo.Read().Version, l.Addr())
			return dataservice.Serve(cmd.Context(), l, d, f.limits, c.Log)
		},
	}
	f.add(cmd.Flags(), 5000)
	cmd.Flags().StringVar(&c.Dir, "work-dir", "", "folder of the journal, from which a dispatcher continues after a restart; without it, it starts empty")
	cmd.Flags().StringSliceVar(&c.Workers, "workers", nil, "addresses of all workers, which the static sharding policies need")
	cmd.Flags().DurationVar(&c.WorkerTimeout, "worker-timeout", time.Minute, "time after which a worker without a heartbeat counts as gone")
	cmd.Flags().DurationVar(&c.ClientTimeout, "client-timeout", 2*time.Minute, "time after which a client without a heartbeat counts as gone")
	cmd.Flags().DurationVar(&c.JobTimeout, "job-timeout", 5*time.Minute, "time for which an iteration without clients is kept")
	return cmd
}

func newDataWorker() *cobra.Command {
	var f dataFlags
	c := dataservice.WorkerConfig{}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker of a tf.data service",
		Long:  "Run a worker, which produces the elements of datasets, until the process receives SIGINT or SIGTERM.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = f.log.logger(cmd.ErrOrStderr())
			if err := rpc.CheckAddress(c.Dispatcher); err != nil {
				return usageError{fmt.Errorf("--dispatcher: %w", err)}
			}
			l, err := f.listen()
			if err != nil {
				return err
			}
			if c.Address == "" {
				c.Address = l.Addr().String()
			}
			return runDataWorker(cmd, l, c, f.limits)
		},
	}
	f.add(cmd.Flags(), 0)
	cmd.Flags().StringVar(&c.Dispatcher, "dispatcher", "", "address of the dispatcher, host:port")
	cmd.Flags().StringVar(&c.Address, "worker-address", "", "address at which clients and the dispatcher reach the worker (default that on which it listens)")
	cmd.Flags().StringSliceVar(&c.Tags, "worker-tags", nil, "tags of the worker, for clients")
	cmd.Flags().DurationVar(&c.Heartbeat, "heartbeat", 5*time.Second, "time between two calls of the dispatcher")
	return cmd
}

func runDataWorker(cmd *cobra.Command, l net.Listener, c dataservice.WorkerConfig, limits grpch2.Limits) error {
	w, err := dataservice.NewWorker(c)
	if err != nil {
		l.Close()
		return err
	}
	defer w.Close()
	fmt.Fprintf(cmd.OutOrStdout(), "weft %s produces elements at grpc://%s\n", buildinfo.Read().Version, l.Addr())
	ctx, cancel := context.WithCancel(cmd.Context())
	ended := make(chan struct{})
	go func() {
		w.Run(ctx)
		close(ended)
	}()
	err = dataservice.Serve(ctx, l, w, limits, c.Log)
	cancel()
	<-ended
	return err
}
