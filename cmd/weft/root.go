package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/cmd/weft/internal/settings"
	"github.com/weft-ml/weft/internal/sys/buildinfo"
)

// commands lists the subcommands in the order of the help text.
var commands = []struct {
	name string
	make func() *cobra.Command
}{
	{"server", newServer},
	{tensorFlowServer, newTensorFlowServer},
	{"launch", newLaunch},
	{"status", newStatus},
	{"steps", newSteps},
	{"sessions", newSessions},
	{"logs", newLogs},
	{"log-level", newLogLevel},
	{"top", newTop},
	{"version", newVersion},
	{manual, newMan},
	{"trace", newTrace},
	{"reset", newReset},
	{"serve", newServe},
	{"data-service", newDataService},
	{"demo", newDemo},
	{"ops", newOps},
	{"checkpoint", newCheckpoint},
	{"saved-model", newSavedModel},
	{"events", newEvents},
	{"graph", newGraph},
	{"plot", newPlot},
	{"cert", newCert},
	{"auth", newAuth},
	{"proxy", newProxy},
}

// newRoot returns the command with all subcommands.
func newRoot() *cobra.Command {
	root := bareRoot()
	for _, c := range commands {
		root.AddCommand(c.make())
	}
	return root
}

// newRootFor returns the command for a command line. If its first argument names a subcommand, the
// others are left out: to construct all of them is about 4 % of the start of a task.
func newRootFor(args []string) *cobra.Command {
	if len(args) > 0 {
		for _, c := range commands {
			if c.name == args[0] && c.name != manual {
				root := bareRoot()
				root.AddCommand(c.make())
				return root
			}
		}
	}
	return newRoot()
}

// bareRoot returns the command without subcommands.
func bareRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "weft",
		Short:   "TensorFlow's distributed runtime in Go",
		Long:    "Weft runs TensorFlow graphs on clusters. Its parameter servers and workers are compatible with TensorFlow's clients.",
		Version: buildinfo.Read().String(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError{fmt.Errorf("unknown command %q (see 'weft --help')", args[0])}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	configure(root)
	return root
}

// configure sets the error handling and the spelling of flags for the root command of a program.
func configure(root *cobra.Command) {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetGlobalNormalizationFunc(dashes)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see '%s --help')", err, cmd.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	settings.Add(root.PersistentFlags())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := settings.Apply(cmd.Flags())
		if _, ok := errors.AsType[settings.EnvError](err); ok {
			return usageError{err}
		}
		if err != nil {
			return configError{err}
		}
		return nil
	}
}

// dashes converts underscores in the names of flags, which TensorFlow uses, to dashes.
func dashes(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}

// noArgs rejects arguments other than flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q (see '%s --help')", args[0], cmd.CommandPath())}
	}
	return nil
}
