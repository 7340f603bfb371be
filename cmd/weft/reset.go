package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft"
)

// resetDone is the output of weft reset.
type resetDone struct {
	Target        string   `json:"target"`
	Containers    []string `json:"containers"`     // the default container if there are none
	DeviceFilters []string `json:"device_filters"` // all tasks if there are none
}

func newReset() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset TARGET",
		Short: "Close all sessions of a master and remove variables, queues and tables of its cluster",
		Long: "Close all sessions of the master at a target, such as grpc://localhost:2222, and remove the variables, queues and tables " +
			"in the given containers of its cluster, as tf.Session.reset does. What was not saved is lost.",
		Args: exactly("TARGET"),
	}
	output := outputFlag(cmd)
	var tls clientTLSFlags
	tls.add(cmd.Flags())
	containers := cmd.Flags().StringSlice("container", nil, "container whose resources are removed; may be repeated; the default container if none is given")
	filters := cmd.Flags().StringSlice("device-filter", nil, "remove them only on tasks that match, such as /job:ps; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
		defer cancel()
		if err := weft.Reset(ctx, args[0], *containers, *filters, tls.targetOptions()...); err != nil {
			return err
		}
		done := resetDone{args[0], append([]string{}, *containers...), append([]string{}, *filters...)}
		return show(cmd, *output, done, func(w io.Writer) { fmt.Fprintln(w, "reset "+done.Target) })
	}
	return cmd
}
