package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/pass/loopframe"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/savedmodel"
)

func newGraph() *cobra.Command {
	return group("graph", "Show and check graphs in files", newGraphShow(), newGraphCheck())
}

const graphArgument = "GRAPH is a file with a GraphDef in binary or text form, a file with a MetaGraphDef whose name ends in .meta, or the folder " +
	"of a SavedModel. --tags selects the graph of a SavedModel."

// readGraph reads the graph of an argument GRAPH.
func readGraph(path string, tags []string) (*graph.Def, error) {
	if info, err := (fileio.Files{}).Stat(path); err == nil && info.IsDir() {
		m, err := savedmodel.Open(path)
		if err != nil {
			return nil, err
		}
		g, err := m.MetaGraph(tags...)
		if err != nil {
			return nil, err
		}
		return g.Graph, nil
	}
	if filepath.Ext(path) == ".meta" {
		m, err := savedmodel.ReadMetaGraph(path)
		if err != nil {
			return nil, err
		}
		return m.Graph, nil
	}
	return savedmodel.ReadGraph(path)
}

// nodeInfo is a node in the output of weft graph show.
type nodeInfo struct {
	Name   string            `json:"name"`
	Op     string            `json:"op"`
	Inputs []string          `json:"inputs"`
	Device string            `json:"device,omitempty"`
	Attrs  map[string]string `json:"attrs"`
}

func newGraphShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show GRAPH", Short: "Show the nodes of a graph", Long: "Show the nodes and functions of a graph. " + graphArgument, Args: exactly("GRAPH"),
	}
	output, tags := outputFlag(cmd), tagsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		def, err := readGraph(args[0], *tags)
		if err != nil {
			return err
		}
		shown := struct {
			Nodes     []nodeInfo            `json:"nodes"`
			Functions map[string][]nodeInfo `json:"functions,omitempty"`
		}{describeNodes(def.Nodes), map[string][]nodeInfo{}}
		for _, f := range def.Library {
			shown.Functions[f.Signature.Name] = describeNodes(f.Nodes)
		}
		return show(cmd, *output, shown, func(w io.Writer) {
			for i := range def.Nodes {
				fmt.Fprintln(w, def.Nodes[i].Summary())
			}
			for _, f := range def.Library {
				fmt.Fprintf(w, "function %s\n", f.Signature.Name)
				for i := range f.Nodes {
					fmt.Fprintln(w, "  "+f.Nodes[i].Summary())
				}
			}
		})
	}
	return cmd
}

func describeNodes(nodes []graph.NodeDef) []nodeInfo {
	infos := make([]nodeInfo, len(nodes))
	for i, n := range nodes {
		attrs := map[string]string{}
		for name := range n.Attrs {
			attrs[name] = opdef.FormatAttr(n.Attrs[name])
		}
		infos[i] = nodeInfo{n.Name, n.Op, append([]string{}, n.Inputs...), n.Device, attrs}
	}
	return infos
}

// problem is a reason why a graph cannot run.
type problem struct {
	Kind string `json:"kind"` // "operation", "graph", "shape", "loop" or "function"
	Text string `json:"text"`
}

func newGraphCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check GRAPH", Short: "Check whether servers can run a graph",
		Long: "Check whether servers can run a graph: whether they have its operations, whether its nodes and functions are well " +
			"formed, and whether its shapes and loops are consistent. The exit status is 1 if there is a problem. " + graphArgument,
		Args: exactly("GRAPH"),
	}
	output, tags := outputFlag(cmd), tagsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		def, err := readGraph(args[0], *tags)
		if err != nil {
			return err
		}
		problems := checkGraph(def)
		err = show(cmd, *output, problems, func(w io.Writer) {
			for _, p := range problems {
				fmt.Fprintf(w, "%s: %s\n", p.Kind, p.Text)
			}
			if len(problems) == 0 {
				fmt.Fprintf(w, "ok: %d nodes, %d functions\n", len(def.Nodes), len(def.Library))
			}
		})
		if err == nil && len(problems) > 0 {
			err = errors.New("servers cannot run the graph")
		}
		return err
	}
	return cmd
}

// checkGraph returns the problems of a graph.
func checkGraph(def *graph.Def) []problem {
	problems := []problem{}
	for _, m := range missingOps(def) {
		problems = append(problems, problem{"operation", fmt.Sprintf("%s, used by %s", m.Name, strings.Join(m.Nodes, ", "))})
	}
	if len(problems) > 0 {
		return problems
	}
	add := func(kind string, err error) {
		if err != nil {
			problems = append(problems, problem{kind, err.Error()})
		}
	}
	g, err := graph.Import(def, kernel.Default, graph.ImportOptions{})
	if err != nil {
		add("graph", err)
		return problems
	}
	_, err = graph.InferShapes(g)
	add("shape", err)
	_, err = loopframe.Find(g)
	add("loop", err)
	for _, f := range def.Library {
		if len(f.Signature.Attrs) == 0 { // a function with attributes is instantiated by its calls
			_, err := g.Library.InstantiateBody(opdef.Func{Name: f.Signature.Name}, g.Ops())
			add("function", err)
		}
	}
	return problems
}

// missingOp is an operation that servers cannot run.
type missingOp struct {
	Name  string   `json:"name"`
	Nodes []string `json:"nodes"` // some of its nodes; in a function "function/node"
}

// ofPython lists the operations whose kernels only fail, since servers cannot call Python
// functions.
var ofPython = map[string]bool{"PyFunc": true, "PyFuncStateless": true, "EagerPyFunc": true}

// missingOps returns the operations in a graph that servers cannot run, in order of their names.
func missingOps(def *graph.Def) []missingOp {
	const limit = 3 // nodes that are listed for each operation
	functions := map[string]bool{}
	for i := range def.Library {
		functions[def.Library[i].Signature.Name] = true
	}
	users := map[string][]string{}
	visit := func(prefix string, nodes []graph.NodeDef) {
		for i := range nodes {
			op := nodes[i].Op
			if _, known := kernel.Default.LookupOp(op); (!known || ofPython[op]) && !functions[op] && len(users[op]) < limit {
				users[op] = append(users[op], prefix+nodes[i].Name)
			}
		}
	}
	visit("", def.Nodes)
	for i := range def.Library {
		visit(def.Library[i].Signature.Name+"/", def.Library[i].Nodes)
	}
	missing := []missingOp{}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		missing = append(missing, missingOp{name, users[name]})
	}
	return missing
}
