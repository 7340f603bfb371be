package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/server"
)

// tensorFlowServer is the name of TensorFlow's program for one task. Under that name, as a link to
// the binary or as a command, weft accepts the flags of that program and writes its log lines.
const tensorFlowServer = "grpc_tensorflow_server"

// rootFor returns the root command for the name of the program.
func rootFor(program string) *cobra.Command {
	if strings.TrimSuffix(filepath.Base(program), ".exe") != tensorFlowServer {
		return newRoot()
	}
	cmd := newTensorFlowServer()
	configure(cmd)
	return cmd
}

func newTensorFlowServer() *cobra.Command {
	f := serverFlags{announce: announceTensorFlow}
	cmd := &cobra.Command{
		Use:   tensorFlowServer + " --cluster_spec=SPEC --job_name=NAME --task_id=ID",
		Short: "Run one task of a cluster with the flags and log lines of TensorFlow's program of that name",
		Long: "Run one task of a cluster with the flags and log lines of TensorFlow's program of that name.\n\nWhere:\n" +
			"    SPEC is <JOB>(,<JOB>)*\n" +
			"    JOB  is <NAME>|<HOST:PORT>(;<HOST:PORT>)*\n" +
			"    NAME is a valid job name ([a-z][0-9a-z]*)\n" +
			"    HOST is a hostname or IP address\n" +
			"    PORT is a port number",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			def, err := f.tensorFlowDefinition()
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "ERROR: %v\n%s", err, cmd.UsageString())
				return usageError{err}
			}
			logPeers(cmd.ErrOrStderr(), def.Cluster)
			return f.serve(cmd.Context(), cmd, def)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.clusterSpec, "cluster_spec", "", "cluster spec")
	flags.StringVar(&f.jobName, "job_name", "", "job name")
	flags.IntVar(&f.task, "task_id", 0, "task id")
	flags.IntVar(&f.task, "task_index", 0, "another name for --task_id")
	flags.IntVar(&f.cpuDevices, "cpu_devices", 1, "number of CPU devices")
	flags.BoolVar(&f.verbose, "verbose", false, "log sessions and graphs as they come and go, and more details of the runtime")
	flags.StringVar(&f.listen, "listen", "", listenUsage)
	flags.BoolVar(&f.insecure, "insecure", false, "listen on an address other than loopback, where any host that can reach it can run graphs")
	flags.DurationVar(&f.grace, "grace", 10*time.Second, "time that running steps have to finish after a signal to stop")
	return cmd
}

// tensorFlowDefinition returns the task of the flags. Its errors are those of TensorFlow's program.
func (f *serverFlags) tensorFlowDefinition() (cluster.ServerDef, error) {
	spec, err := cluster.Parse(f.clusterSpec)
	if err != nil {
		return cluster.ServerDef{}, err
	}
	tasks := len(spec[f.jobName])
	switch {
	case tasks == 0:
		return cluster.ServerDef{}, fmt.Errorf("Job name %q does not appear in the cluster spec", f.jobName) //nolint:staticcheck // TensorFlow's text
	case f.task < 0 || f.task >= tasks:
		return cluster.ServerDef{}, fmt.Errorf("Task index %d is invalid (job %q contains %d tasks", f.task, f.jobName, tasks) //nolint:staticcheck // TensorFlow's text
	case f.cpuDevices < 1:
		return cluster.ServerDef{}, fmt.Errorf("--cpu_devices must be at least 1")
	}
	def := cluster.ServerDef{Cluster: spec, Job: f.jobName, Task: f.task, CPUDevices: f.cpuDevices}
	return def, def.Validate()
}

// logPeers writes a log line for every job.
func logPeers(w io.Writer, spec cluster.Spec) {
	for _, job := range spec.Jobs() {
		var hosts []string
		for _, task := range slices.Sorted(maps.Keys(spec[job])) {
			hosts = append(hosts, spec[job][task])
		}
		logLine(w, "grpc_tensorflow_server.cc:66", fmt.Sprintf("Peer %s %d {%s}", job, len(hosts), strings.Join(hosts, ", ")))
	}
}

func announceTensorFlow(cmd *cobra.Command, s *server.Server, _ cluster.ServerDef) {
	logLine(cmd.ErrOrStderr(), "grpc_server_lib.cc:466", "Started server with target: "+s.Target())
}

// logLine writes a line in the format of TensorFlow's log. Programs that parse the log match the
// place in TensorFlow's sources.
func logLine(w io.Writer, place, text string) {
	fmt.Fprintf(w, "%s: I tensorflow/core/distributed_runtime/rpc/%s] %s\n", time.Now().Format("2006-01-02 15:04:05.000000"), place, text)
}
