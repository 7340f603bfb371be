package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/kernel"
)

// opInfo is an operation in the output of weft ops.
type opInfo struct {
	Name    string   `json:"name"`
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
	Attrs   []string `json:"attrs"`
	Class   string   `json:"class"`
	Doc     string   `json:"doc"`
}

func newOps() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ops [NAME…]",
		Short: "List the operations that servers can run",
		Long: "List the operations that servers can run, or describe the operations with the given names. With --missing, list the " +
			"operations in a graph that servers cannot run. " + graphArgument,
	}
	output, tags := outputFlag(cmd), tagsFlag(cmd)
	missing := cmd.Flags().String("missing", "", "list the operations of this graph that servers cannot run")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *missing != "" {
			return showMissing(cmd, *missing, *tags, *output)
		}
		names := kernel.Default.Names()
		if len(args) > 0 {
			names = args
		}
		infos := make([]opInfo, 0, len(names))
		for _, name := range names {
			def, ok := kernel.Default.Def(name)
			if !ok {
				return fmt.Errorf("there is no operation %q", name)
			}
			class := ""
			if op, ok := kernel.Default.LookupOp(name); ok {
				class = op.Class.String()
			}
			infos = append(infos, opInfo{def.Name, def.In, def.Out, def.Attrs, class, strings.TrimSpace(def.Doc)})
		}
		return show(cmd, *output, infos, func(w io.Writer) { printOps(w, infos, len(args) > 0) })
	}
	return cmd
}

func printOps(out io.Writer, infos []opInfo, details bool) {
	for _, op := range infos {
		fmt.Fprintf(out, "%s(%s) -> (%s)\n", op.Name, strings.Join(op.Inputs, ", "), strings.Join(op.Outputs, ", "))
		if details {
			fmt.Fprintf(out, "    class: %s\n", op.Class)
			for _, a := range op.Attrs {
				fmt.Fprintf(out, "    %s\n", a)
			}
			fmt.Fprintf(out, "    %s\n", strings.ReplaceAll(op.Doc, "\n", "\n    "))
		}
	}
}

// showMissing lists the operations in a graph that servers cannot run.
func showMissing(cmd *cobra.Command, path string, tags []string, output form) error {
	def, err := readGraph(path, tags)
	if err != nil {
		return err
	}
	missing := missingOps(def)
	return show(cmd, output, missing, func(w io.Writer) {
		for _, m := range missing {
			fmt.Fprintf(w, "%s, used by %s\n", m.Name, strings.Join(m.Nodes, ", "))
		}
		if len(missing) == 0 {
			fmt.Fprintln(w, "no operation is missing")
		}
	})
}
