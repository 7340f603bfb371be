package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/internal/sys/buildinfo"
)

func newRoot() *cobra.Command {
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
	root.AddCommand(newServer(), newTensorFlowServer(), newLaunch(), newStatus(), newSteps(), newSessions(), newTop(),
		newVersion(), newTrace(), newReset(), newServe(), newDataService(), newDemo(), newOps(), newCheckpoint(),
		newSavedModel(), newEvents(), newGraph(), newCert(), newAuth(), newProxy())
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
