package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/kernel"
)

// opInfo is what weft ops shows of an operation.
type opInfo struct {
	Name    string   `json:"name"`
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
	Attrs   []string `json:"attrs"`
	Doc     string   `json:"doc"`
}

func newOps() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "ops [NAME…]",
		Short: "List the operations that servers can run",
		RunE: func(cmd *cobra.Command, args []string) error {
			names := kernel.Default.Names()
			if len(args) > 0 {
				names = args
			}
			infos := make([]opInfo, 0, len(names))
			for _, name := range names {
				def, ok := kernel.Default.Def(name)
				if !ok {
					return fmt.Errorf("no operation is called %q", name)
				}
				infos = append(infos, opInfo{def.Name, def.In, def.Out, def.Attrs, strings.TrimSpace(def.Doc)})
			}
			return printOps(cmd, infos, output, len(args) > 0)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "form of the answer: text or json")
	return cmd
}

func printOps(cmd *cobra.Command, infos []opInfo, output string, whole bool) error {
	out := cmd.OutOrStdout()
	switch output {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(infos)
	case "text":
	default:
		return usageError{fmt.Errorf("-o %s: it is text or json", output)}
	}
	for _, op := range infos {
		fmt.Fprintf(out, "%s(%s) -> (%s)\n", op.Name, strings.Join(op.Inputs, ", "), strings.Join(op.Outputs, ", "))
		if whole {
			for _, a := range op.Attrs {
				fmt.Fprintf(out, "    %s\n", a)
			}
			fmt.Fprintf(out, "    %s\n", strings.ReplaceAll(op.Doc, "\n", "\n    "))
		}
	}
	return nil
}
