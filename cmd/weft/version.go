package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/internal/sys/buildinfo"
	"github.com/weft-ml/weft/kernel"
)

// protocol says which releases of TensorFlow the services are those of.
const protocol = "TensorFlow 0.12 to 2.21"

// aboutProgram is what weft version prints.
type aboutProgram struct {
	buildinfo.Build
	Ops      int    `json:"ops"`
	Protocol string `json:"protocol"`
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the commit, the date, the number of operations and the protocol of this program",
		Args:  noArgs,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		about := aboutProgram{buildinfo.Read(), len(kernel.Default.Names()), protocol}
		return show(cmd, *output, about, func(w io.Writer) {
			fmt.Fprintf(w, "weft %s\noperations: %d\nprotocol: %s\n", about.Build, about.Ops, about.Protocol)
		})
	}
	return cmd
}
