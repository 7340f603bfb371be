package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/cmd/weft/internal/launch"
	"github.com/weft-ml/weft/cmd/weft/internal/settings"
	"github.com/weft-ml/weft/cmd/weft/internal/slurm"
	"github.com/weft-ml/weft/internal/sys/onefile"
)

// launchFlags are the flags of weft launch.
type launchFlags struct {
	layout      string
	ps, workers int
	chief       bool
	host        string
	logDir      string
	restarts    int
	drain       time.Duration
	serverFlags []string
	slurm       bool
	srunFlags   []string
	firstPort   int
}

func newLaunch() *cobra.Command {
	f := launchFlags{}
	cmd := &cobra.Command{
		Use:   "launch [flags] -- PROGRAM [ARGUMENT]...",
		Short: "Run a cluster and a program on this machine, or on those of a job of Slurm",
		Long:  f.long(),
		Example: "  weft launch --ps=1 --workers=2 -- python train.py --ps_hosts={ps_hosts} --worker_hosts={worker_hosts} --job_name={job_name} --task_index={task_index}\n" +
			"  weft launch --layout=clients --workers=4 -- python train.py --master={target}\n" +
			"  weft launch --layout=coordinator --ps=2 --workers=2 -- python keras_train.py\n" +
			"  weft launch --slurm --ps=2 --workers=4 --server-flag=--insecure --server-flag=--file-root=files=/srv/files -- python train.py",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no program is given (see 'weft launch --help')")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&f.layout, "layout", launch.Layouts[0].Name, "which tasks are served by Weft and which run the program, see above")
	flags.IntVar(&f.ps, "ps", 1, "number of parameter servers")
	flags.IntVar(&f.workers, "workers", 1, "number of workers")
	flags.BoolVar(&f.chief, "chief", false, "add a chief to the cluster; the layout coordinator always has one")
	flags.StringVar(&f.host, "host", "127.0.0.1", "address of this machine at which the tasks listen")
	flags.StringVar(&f.logDir, "log-dir", "", "folder for one log file per process; a new one below the temporary folder if empty")
	flags.IntVar(&f.restarts, "max-restarts", 0, "how often each process is started again after a failure")
	flags.DurationVar(&f.drain, "drain-timeout", 30*time.Second, "time from SIGTERM to SIGKILL when the cluster ends")
	flags.StringArrayVar(&f.serverFlags, "server-flag", nil, "a flag for each server of Weft, such as --server-flag=--memory-limit=2GiB; may contain placeholders, and be repeated")
	flags.BoolVar(&f.slurm, "slurm", false, "start the processes with srun on the machines of the job of Slurm in which this command runs")
	flags.StringArrayVar(&f.srunFlags, "srun-flag", nil, "with --slurm: a flag for each srun, such as --srun-flag=--cpus-per-task=8; may be repeated")
	flags.IntVar(&f.firstPort, "first-port", 2222, "with --slurm: port of the first task on each machine; further tasks there get the next ones")
	return cmd
}

func (f *launchFlags) long() string {
	var b strings.Builder
	b.WriteString("Run a cluster on this machine, or with --slurm on those of a job of Slurm: servers of Weft, and a program once for each task that runs it.\n\nLayouts:\n")
	for _, l := range launch.Layouts {
		fmt.Fprintf(&b, "  %-12s %s\n", l.Name, l.Help)
	}
	b.WriteString("\nArguments of the program may contain:\n")
	for _, p := range launch.Placeholders {
		fmt.Fprintf(&b, "  %-44s %s\n", p[0], p[1])
	}
	b.WriteString("\nThe program also gets TF_CONFIG and WEFT_TARGET. Each line of output begins with the name of the task; a server's ends with s. " +
		"The cluster ends when the chief and all workers have ended. The first SIGINT or SIGTERM sends SIGTERM to the program and then ends the servers; the second kills all. " +
		"The exit status is 0 if all programs succeed, that of the process that failed first, or 128 and the number of the signal.")
	return b.String()
}

func (f *launchFlags) run(cmd *cobra.Command, args []string) error {
	layout, err := launch.FindLayout(f.layout)
	if err != nil {
		return usageError{err}
	}
	if f.ps < 0 || f.workers < 0 || f.restarts < 0 {
		return usageError{errors.New("the numbers of tasks and restarts must not be negative")}
	}
	machines, err := f.machines()
	if err != nil {
		return usageError{err}
	}
	weft, err := onefile.Executable()
	if err != nil {
		return err
	}
	dir := f.logDir
	if dir == "" {
		dir, err = os.MkdirTemp("", "weft-launch-")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	tasks := map[string]int{"ps": f.ps, "worker": f.workers}
	if f.chief || layout.NeedsChief() {
		tasks["chief"] = 1
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if n := releaseSignals(cmd.Context()); n > 0 {
		return exitError{exitSignal + n}
	}
	server := []string{weft, "server"}
	if machines == nil { // a server on another machine ends with srun
		server = append(server, fmt.Sprintf("--parent=%d", os.Getpid()))
	}
	ctx := context.WithoutCancel(cmd.Context())
	code, err := launch.Run(ctx, launch.Config{
		Layout: layout, Tasks: tasks, Host: f.host, Machines: machines, FirstPort: f.firstPort, Command: args,
		Server: append(server, f.serverFlags...), ServerEnv: serverLogFormat(cmd.OutOrStdout()),
		LogDir: dir, MaxRestarts: f.restarts, DrainTimeout: f.drain, Out: cmd.OutOrStdout(),
	}, signals)
	if err != nil {
		return err
	}
	if code != 0 {
		return exitError{code}
	}
	return nil
}

// machines returns where the processes run, nil for this machine.
func (f *launchFlags) machines() (launch.Machines, error) {
	if !f.slurm {
		return nil, nil //nolint:nilnil // see above
	}
	if f.firstPort < 1 || f.firstPort > math.MaxUint16 {
		return nil, fmt.Errorf("--first-port %d is not a port", f.firstPort)
	}
	return slurm.FromEnvironment(os.Getenv, f.srunFlags)
}

// serverLogFormat returns the variable for the format of the servers' logs, whose lines the
// launcher prints: servers themselves write to no terminal.
func serverLogFormat(out io.Writer) []string {
	name := settings.Variable("log-format")
	if os.Getenv(name) != "" {
		return nil
	}
	return []string{name + "=" + string(logAuto.of(out))}
}
