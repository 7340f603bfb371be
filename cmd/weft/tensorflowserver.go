package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/server"
)

// tensorFlowServer is the name of TensorFlow's program for one task. Under that name, as a link to
// the binary or as a command, weft accepts the flags of that program and writes its log lines.
const tensorFlowServer = "grpc_tensorflow_server"

// rootFor returns the root command for the name of the program.
func rootFor(program string, args []string) *cobra.Command {
	if strings.TrimSuffix(filepath.Base(program), ".exe") != tensorFlowServer {
		return newRootFor(args)
	}
	cmd := newTensorFlowServer()
	configure(cmd)
	return cmd
}

func newTensorFlowServer() *cobra.Command {
	f := serverFlags{announce: announceTensorFlow, ops: opFlags{set: "all"}, files: fileFlags{sandbox: "off", names: 100_000, calls: 64}, log: logFlags{format: logText}}
	f.log.level.LevelVar.Set(slog.LevelWarn)
	cmd := &cobra.Command{
		Use:   tensorFlowServer + " --cluster_spec=SPEC --job_name=NAME --task_id=ID",
		Short: "Run one task of a cluster with the flags and log lines of TensorFlow's program of that name",
		Long: "Run one task of a cluster with the flags and log lines of TensorFlow's program of that name.\n\nWhere:\n" +
			"    SPEC is <JOB>(,<JOB>)*\n" +
			"    JOB  is <NAME>|<HOST:PORT>(;<HOST:PORT>)*\n" +
			"    NAME is a valid job name ([a-z][0-9a-z]*)\n" +
			"    HOST is a hostname or IP address\n" +
			"    PORT is a port number",
		Args: f.verboseValue,
		RunE: func(cmd *cobra.Command, _ []string) error {
			def, err := f.tensorFlowDefinition()
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "ERROR: %v\n%s", err, cmd.UsageString())
				return usageError{err}
			}
			if f.log.verbose {
				printTasks(cmd.OutOrStdout(), def.Cluster)
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
	f.gpuMemoryFraction(flags)
	flags.BoolVar(&f.log.verbose, "verbose", false, "log sessions and graphs as they come and go, and more details of the runtime")
	flags.BoolFunc("noverbose", "the opposite of --verbose", func(string) error {
		f.log.verbose = false
		return nil
	})
	flags.StringVar(&f.listen, "listen", "", listenUsage)
	flags.BoolVar(&f.insecure, "insecure", false, "listen on an address other than loopback, where any host that can reach it can run graphs")
	drainFlags(flags, &f.grace, "running steps")
	return cmd
}

// gpuMemoryFraction adds the flag for the memory of GPUs, which programs of TensorFlow pass.
func (f *serverFlags) gpuMemoryFraction(flags *pflag.FlagSet) {
	flags.Float64Var(&f.gpuFraction, "gpu-memory-fraction", 0, "part of the memory of each GPU that the task may use, above 0 and up to 1; 0 for nearly all that is free")
}

// verboseValue accepts the value of --verbose as an argument of its own, "--verbose true".
func (f *serverFlags) verboseValue(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.Flags().Changed("verbose") {
		if on, err := strconv.ParseBool(strings.ToLower(args[0])); err == nil {
			f.log.verbose, args = on, args[1:]
		}
	}
	return noArgs(cmd, args)
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

// printTasks prints a line for every job and every task.
func printTasks(w io.Writer, spec cluster.Spec) {
	for _, job := range spec.Jobs() {
		fmt.Fprintf(w, "Added job named %q\n", job)
		for _, task := range slices.Sorted(maps.Keys(spec[job])) {
			fmt.Fprintf(w, "  Added task %q to job %q\n", spec[job][task], job)
		}
	}
}

func announceTensorFlow(cmd *cobra.Command, s *server.Server, def cluster.ServerDef) {
	own, _ := strings.CutPrefix(startedTarget(s), "grpc://")
	for _, job := range def.Cluster.Jobs() {
		var tasks []string
		for _, task := range slices.Sorted(maps.Keys(def.Cluster[job])) {
			address := def.Cluster[job][task]
			if job == def.Job && task == def.Task {
				address = own
			}
			tasks = append(tasks, fmt.Sprintf("%d -> %s", task, address))
		}
		logLine(cmd.ErrOrStderr(), "grpc_channel.cc:258", fmt.Sprintf("Initialize GrpcChannelCache for job %s -> {%s}", job, strings.Join(tasks, ", ")))
	}
}

// logStarted writes the line by which programs recognize that a server of TensorFlow serves.
func logStarted(w io.Writer, s *server.Server) {
	logLine(w, "grpc_server_lib.cc:365", "Started server with target: "+startedTarget(s))
}

// startedTarget returns the target in the log. TensorFlow 1 listens on every address and writes
// localhost, whatever the host in the cluster is. A server that cannot be reached by that name has
// its target in the cluster.
func startedTarget(s *server.Server) string {
	host, port, err := net.SplitHostPort(s.Address())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() && !ip.Equal(net.IPv4(127, 0, 0, 1)) {
		return s.Target()
	}
	return "grpc://" + net.JoinHostPort("localhost", port)
}

// logLine writes a line in the format of TensorFlow's log, unless the environment turns off lines
// of this severity. Programs that parse the log match the place in TensorFlow's sources.
func logLine(w io.Writer, place, text string) {
	if level, err := strconv.Atoi(os.Getenv("TF_CPP_MIN_LOG_LEVEL")); err == nil && level > 0 {
		return
	}
	fmt.Fprintf(w, "%s: I tensorflow/core/distributed_runtime/rpc/%s] %s\n", time.Now().Format("2006-01-02 15:04:05.000000"), place, text)
}
