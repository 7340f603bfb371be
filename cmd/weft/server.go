package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/cmd/weft/internal/loglimit"
	"github.com/weft-ml/weft/cmd/weft/internal/settings"
	"github.com/weft-ml/weft/internal/inspect/logging"
	"github.com/weft-ml/weft/internal/inspect/metrics"
	"github.com/weft-ml/weft/internal/inspect/otlp"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/buildinfo"
	"github.com/weft-ml/weft/internal/sys/codepages"
	"github.com/weft-ml/weft/internal/sys/heapprofile"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
)

// serverFlags are the flags of weft server. Those of a cluster have TensorFlow's names.
type serverFlags struct {
	clusterSpec string
	jobName     string
	task        int
	serverDef   string
	cpuDevices  int
	gpu         string
	gpuFraction float64 // of the memory of each GPU; 0 for nearly all
	portFile    string
	metrics     string
	http        string
	rest        bool
	listen      string // address to listen on; "" for the one in the cluster
	insecure    bool
	grace       time.Duration
	withJob     time.Duration // time for which the job must be over; 0 to stay
	sessionTTL  time.Duration
	orphans     time.Duration
	limits      server.Limits
	logRate     int // lines of the log in one second; 0 for no limit
	memoryLimit byteSize
	log         logFlags
	files       fileFlags
	tls         serverTLSFlags
	ops         opFlags
	parent      int // process id of the parent to end with; 0 for none
	// announce reports that the task is ready
	announce func(cmd *cobra.Command, s *server.Server, def cluster.ServerDef)
}

func newServer() *cobra.Command {
	f := serverFlags{announce: announce}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run one task of a cluster",
		Long: "Run one task of a cluster until the process receives SIGINT or SIGTERM. The task is described by --cluster-spec, " +
			"--job-name and --task-index, by --server-def, or by the environment variable TF_CONFIG.",
		Example: "  weft server --cluster-spec='ps|localhost:2222,worker|localhost:2223;localhost:2224' --job-name=worker --task-index=0",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			def, err := f.definition(cmd)
			if err != nil {
				err = usageError{err}
			} else {
				err = f.serve(cmd.Context(), cmd, def)
			}
			if err != nil && f.parent != 0 {
				// for the parent
				fmt.Fprintf(cmd.OutOrStdout(), "weft %s failed: %v\n", buildinfo.Read().Version, err)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.clusterSpec, "cluster-spec", "", "tasks of the cluster: 'job|host:port;host:port,job|…', or JSON '{\"job\": [\"host:port\"]}'")
	flags.StringVar(&f.jobName, "job-name", "", "job of this task")
	flags.IntVar(&f.task, "task-index", 0, "index of this task in its job; may be left out if the job has one task")
	flags.IntVar(&f.task, "task-id", 0, "another name for --task-index")
	flags.StringVar(&f.serverDef, "server-def", "", "file with a tensorflow.ServerDef in text or binary form, or - for standard input, instead of the three flags above")
	flags.IntVar(&f.cpuDevices, "cpu-devices", 1, "number of CPU devices that the task offers")
	flags.StringVar(&f.gpu, "gpu", "auto", gpuUsage)
	f.gpuMemoryFraction(flags)
	flags.StringVar(&f.portFile, "port-file", "", "file for the port on which the task listens")
	flags.StringVar(&f.metrics, "metrics-address", "", "address at which to serve metrics of the task for Prometheus, at /metrics")
	flags.StringVar(&f.http, "http-address", "", "address at which to answer HTTP: /dashboard/, /livez, /readyz, /version, /metrics and /debug/pprof; with certificates it asks for them")
	flags.BoolVar(&f.rest, "rest", false, "serve sessions as JSON at --http-address, below /v1/; /v1/docs/ describes it")
	flags.StringVar(&f.listen, "listen", "", listenUsage)
	flags.BoolVar(&f.insecure, "insecure", false, "listen on an address other than loopback, where any host that can reach it can run graphs")
	drainFlags(flags, &f.grace, "running steps")
	flags.DurationVar(&f.withJob, "exit-with-job", 0, "end when all tasks other than parameter servers have been done for this time: they have ended, or have no sessions; 0 to stay (without a value: 30s)")
	flags.Lookup("exit-with-job").NoOptDefVal = "30s"
	flags.DurationVar(&f.sessionTTL, "session-ttl", 24*time.Hour, "close sessions that clients have not used for this time; 0 for never")
	flags.DurationVar(&f.orphans, "orphan-timeout", server.DefaultOrphanTimeout, "drop unused sessions of another task's master that it does not have any more, or if it cannot be reached for this time; 0 for never")
	limitFlags(flags, &f.limits)
	flags.IntVar(&f.logRate, "max-log-rate", 100, "lines of the log in one second; further lines are counted in one")
	memoryLimitFlag(flags, &f.memoryLimit, "steps")
	f.files.add(flags)
	f.tls.add(flags)
	f.ops.add(flags)
	flags.IntVar(&f.parent, "parent", 0, "process id of the parent: the task ends when that process has ended")
	f.log.add(flags, "parts of graphs as they come and go, and details of the runtime, too")
	return cmd
}

// drainFlags adds the flag for the time that calls have to finish, under its two names.
func drainFlags(flags *pflag.FlagSet, d *time.Duration, what string) {
	flags.DurationVar(d, "drain-timeout", 10*time.Second, "time that "+what+" have to finish after SIGTERM or SIGINT; a second signal ends the process at once")
	flags.DurationVar(d, "grace", 10*time.Second, "another name for --drain-timeout")
	_ = flags.MarkHidden("grace") // the flag exists
}

// listenUsage is the help of --listen.
const listenUsage = "address to listen on, if it is not the one in the cluster: behind address translation, or a Kubernetes service"

// definition returns the task that the flags describe.
func (f *serverFlags) definition(cmd *cobra.Command) (cluster.ServerDef, error) {
	def, err := f.source(cmd)
	if err != nil {
		return cluster.ServerDef{}, err
	}
	if cmd.Flags().Changed("cpu-devices") || def.CPUDevices == 0 {
		def.CPUDevices = f.cpuDevices
	}
	if def.CPUDevices < 1 {
		return cluster.ServerDef{}, fmt.Errorf("--cpu-devices must be at least 1")
	}
	if f.grace < 0 || f.sessionTTL < 0 || f.orphans < 0 || f.withJob < 0 {
		return cluster.ServerDef{}, fmt.Errorf("--drain-timeout, --session-ttl, --orphan-timeout and --exit-with-job cannot be negative")
	}
	return def, def.Validate()
}

func (f *serverFlags) source(cmd *cobra.Command) (cluster.ServerDef, error) {
	switch {
	case f.serverDef != "":
		data, err := readFile(cmd, f.serverDef)
		if err != nil {
			return cluster.ServerDef{}, fmt.Errorf("--server-def: %w", err)
		}
		def, err := cluster.ParseServerDef(data)
		if err != nil {
			return cluster.ServerDef{}, fmt.Errorf("--server-def %s: %w", f.serverDef, err)
		}
		return def, nil
	case f.clusterSpec != "":
		spec, err := cluster.Parse(f.clusterSpec)
		if err != nil {
			return cluster.ServerDef{}, fmt.Errorf("--cluster-spec: %w", err)
		}
		if f.jobName == "" {
			return cluster.ServerDef{}, fmt.Errorf("--job-name is missing: one of %s", strings.Join(spec.Jobs(), ", "))
		}
		def := cluster.ServerDef{Cluster: spec, Job: f.jobName, Task: f.task}
		if !cmd.Flags().Changed("task-index") && !cmd.Flags().Changed("task-id") {
			if def.Task, err = spec.OnlyTask(f.jobName); err != nil {
				return cluster.ServerDef{}, fmt.Errorf("--task-index is missing: %w", err)
			}
		}
		return def, nil
	case os.Getenv(cluster.EnvTFConfig) != "":
		return cluster.ParseTFConfig(os.Getenv(cluster.EnvTFConfig))
	}
	return cluster.ServerDef{}, fmt.Errorf("no task is given: use --cluster-spec and --job-name, --server-def, or %s "+
		"(see '%s --help')", cluster.EnvTFConfig, cmd.CommandPath())
}

// readFile returns the contents of a file, or of standard input for the name "-".
func readFile(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	return os.ReadFile(name)
}

// startTime is how long a task keeps the code that its start has used. The first steps need a part
// of it, and would take a millisecond longer without.
const startTime = 5 * time.Second

func (f *serverFlags) serve(ctx context.Context, cmd *cobra.Command, def cluster.ServerDef) error {
	if f.parent != 0 {
		whileParent, stop, err := untilOrphaned(ctx, f.parent, os.Getppid)
		if err != nil {
			return err
		}
		defer stop()
		ctx = whileParent
	}
	parallel.ReserveNetworkThread()
	setSysmonTimerSlack()
	lines := loglimit.New(f.log.handler(cmd.ErrOrStderr()), f.logRate)
	defer lines.Flush()
	logger := slog.New(lines)
	opts := []server.Option{server.WithLimits(f.limits), server.WithLogger(logger), server.WithLogLevel(&f.log.level.LevelVar), server.WithGracePeriod(f.grace), server.WithSessionTTL(f.sessionTTL), server.WithOrphanTimeout(f.orphans), server.WithExitWithJob(f.withJob), server.WithPlacementLog(cmd.ErrOrStderr()),
		server.WithMemoryLimit(int64(f.memoryLimit))}
	files, err := f.files.options()
	if err != nil {
		return usageError{err}
	}
	opts = append(opts, files...)
	secured, err := f.tls.options()
	if err != nil {
		return usageError{err}
	}
	opts = append(opts, secured...)
	peers, plain, err := f.tls.peers()
	if err != nil {
		return err
	}
	if peers != nil {
		opts = append(opts, peers)
	}
	if plain != nil {
		defer plain.Close()
	}
	if f.tls.audit != "" {
		auditLog, err := server.OpenAuditLog(f.tls.audit, cmd.ErrOrStderr(), f.tls.auditRequired, logger)
		if err != nil {
			return fmt.Errorf("--audit: %w", err)
		}
		defer auditLog.Close()
		stop := reopenOnUser1(func() {
			if err := auditLog.Reopen(); err != nil {
				logger.Error("the audit log cannot be opened again", "error", err)
			}
		})
		defer stop()
		opts = append(opts, server.WithAudit(auditLog))
	}
	policy, err := kernel.NewPolicy(f.ops.set, f.ops.denied)
	if err != nil {
		return usageError{err}
	}
	opts = append(opts, server.WithOperations(policy))
	gpu, err := gpuOption(cmp.Or(f.gpu, "auto"))
	if err != nil {
		return usageError{err}
	}
	opts = append(opts, gpu, server.WithGPUMemoryFraction(f.gpuFraction))
	if f.insecure {
		opts = append(opts, server.Insecure())
	}
	if f.http != "" {
		heapprofile.Start()
		opts = append(opts, server.WithHTTP(f.http))
	}
	if f.rest {
		if f.http == "" {
			return usageError{fmt.Errorf("--rest needs --http-address")}
		}
		opts = append(opts, server.WithREST())
	}
	if f.listen != "" {
		opts = append(opts, server.WithListen(f.listen))
	}
	traces, err := otlp.Start(def.Self().String(), logger)
	if err != nil {
		return usageError{err}
	}
	defer traces.Close()
	if traces != nil {
		opts = append(opts, server.WithTracerProvider(traces))
	}
	s, err := server.New(def, opts...)
	if err != nil {
		return f.advise(err)
	}
	if f.tls.check {
		printOrigins(cmd.OutOrStdout(), cmd.Flags())
		for _, door := range f.doors(s.Loopback(), cmd.Flags()) {
			fmt.Fprintln(cmd.OutOrStdout(), door)
		}
		return s.Close()
	}
	if f.tls.given() {
		stop := reloadOnHangUp(s.Reload)
		defer stop()
	} else if !s.Loopback() {
		stop := warnInsecure(ctx, logger, insecureInterval)
		defer stop()
	}
	if f.metrics != "" {
		l, err := metrics.Listen(f.metrics, f.insecure || f.tls.metrics == "open")
		if err != nil {
			_ = s.Close() // the server has not started
			return err
		}
		var serving sync.WaitGroup
		serving.Go(func() { metrics.Serve(l, s.Limited) })
		defer serving.Wait()
		defer l.Close()
	}
	manager := serviceManager(logger)
	if err := s.Start(); err != nil {
		return err
	}
	if f.portFile != "" {
		if err := writePort(f.portFile, s.Target()); err != nil {
			return err
		}
	}
	if err := f.files.enterSandbox(s.Cluster(), traces, f.tls.folders(), f.tls.auditFolders()); err != nil {
		_ = s.Close() // the reason is err
		return err
	}
	f.announce(cmd, s, def)
	if f.log.format.of(cmd.ErrOrStderr()) == logText {
		logStarted(cmd.ErrOrStderr(), s)
	} else {
		slog.New(logging.Fields(lines)).Info("Started server with target", "target", startedTarget(s), "task", s.Task())
	}
	defer reportReady(ctx, manager, fmt.Sprintf("%v serves at %s", s.Task(), s.Target()), s.Check)()
	// An error means that the pages stay resident, as without the call.
	drop := time.AfterFunc(startTime, func() { _, _ = codepages.Drop() })
	defer drop.Stop()
	if err := s.Run(ctx); f.grace > 0 || status.CodeOf(err) != status.DeadlineExceeded {
		return err
	}
	return nil // steps were cancelled, as --drain-timeout=0 demands
}

// printOrigins prints the flags that are set, and where the value of each comes from.
func printOrigins(w io.Writer, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if from := settings.Origin(f); from != "" {
			fmt.Fprintf(w, "--%s %s: from %s\n", f.Name, f.Value, from)
		}
	})
}

func announce(cmd *cobra.Command, s *server.Server, def cluster.ServerDef) {
	self := def.Self()
	http := ""
	if url := s.HTTPURL(); url != "" {
		http = ", " + url
	}
	fmt.Fprintf(cmd.OutOrStdout(), "weft %s ready: %s at %s, %d CPU device(s)%s%s\n", buildinfo.Read().Version, self.String(), s.Target(), def.CPUDevices, gpuText(s), http)
}

// advise adds a hint to an error of starting a task.
func (f *serverFlags) advise(err error) error {
	switch code := status.CodeOf(err); {
	case code == status.FailedPrecondition && f.tls.given():
		return configError{err}
	case code == status.FailedPrecondition && !f.insecure:
		return configError{fmt.Errorf("%w; use certificates (--tls-cert, --tls-key, --tls-ca; 'weft cert' makes them), or --insecure on a trusted network", err)}
	case code == status.FailedPrecondition && f.listen == "":
		return fmt.Errorf("%w: --listen=HOST:PORT (0.0.0.0:PORT for all addresses)", err)
	case code == status.AlreadyExists:
		return fmt.Errorf("%w; stop that process, or give the task another port in the cluster (port 0 selects a free one)", err)
	}
	return err
}

// writePort writes the port of a target to a file, atomically.
func writePort(path, target string) error {
	port := target[strings.LastIndexByte(target, ':')+1:]
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(port+"\n"), 0o644); err != nil {
		return outputError{fmt.Errorf("--port-file: %w", err)}
	}
	if err := os.Rename(tmp, path); err != nil {
		return outputError{fmt.Errorf("--port-file: %w", err)}
	}
	return nil
}
