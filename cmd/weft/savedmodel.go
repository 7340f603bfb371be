package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/tensor"
)

func newSavedModel() *cobra.Command {
	return group("saved-model", "Show, run and freeze SavedModels", newSavedModelShow(), newSavedModelRun(), newSavedModelFreeze())
}

// metaGraphInfo is a graph in the output of weft saved-model show.
type metaGraphInfo struct {
	Tags       []string                 `json:"tags"`
	MadeBy     string                   `json:"tensorflow_version,omitempty"`
	Nodes      int                      `json:"nodes"`
	Functions  int                      `json:"functions"`
	Signatures map[string]signatureInfo `json:"signatures"`
	Assets     []string                 `json:"assets,omitempty"`
}

type signatureInfo struct {
	Method  string                `json:"method,omitempty"`
	Inputs  map[string]tensorInfo `json:"inputs"`
	Outputs map[string]tensorInfo `json:"outputs"`
}

type tensorInfo struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape string `json:"shape"`
}

func newSavedModelShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show FOLDER", Short: "Show the graphs and signatures of a SavedModel", Args: exactly("FOLDER")}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, err := savedmodel.Open(args[0])
		if err != nil {
			return err
		}
		infos := make([]metaGraphInfo, len(m.MetaGraphs))
		for i, g := range m.MetaGraphs {
			infos[i] = describeMetaGraph(g)
		}
		return show(cmd, *output, infos, func(w io.Writer) {
			for _, info := range infos {
				info.print(w)
			}
		})
	}
	return cmd
}

func describeMetaGraph(g *savedmodel.MetaGraph) metaGraphInfo {
	info := metaGraphInfo{
		Tags: g.Tags, MadeBy: g.MadeBy, Nodes: len(g.Graph.Nodes), Functions: len(g.Graph.Library), Signatures: map[string]signatureInfo{},
	}
	for _, a := range g.Assets {
		if !slices.Contains(info.Assets, a.Filename) { // several nodes may read one file
			info.Assets = append(info.Assets, a.Filename)
		}
	}
	for name, sig := range g.Signatures {
		info.Signatures[name] = signatureInfo{sig.Method, describeTensors(sig.Inputs), describeTensors(sig.Outputs)}
	}
	return info
}

func describeTensors(infos map[string]savedmodel.TensorInfo) map[string]tensorInfo {
	out := map[string]tensorInfo{}
	for name, t := range infos {
		shown := tensorInfo{t.Name, t.DType.Name(), t.Shape.String()}
		if t.Sparse != nil {
			shown.Name = fmt.Sprintf("sparse(%s, %s, %s)", t.Sparse.Indices, t.Sparse.Values, t.Sparse.Shape)
		}
		out[name] = shown
	}
	return out
}

func (m metaGraphInfo) print(w io.Writer) {
	fmt.Fprintf(w, "graph with tags %s: %d nodes, %d functions", strings.Join(m.Tags, ","), m.Nodes, m.Functions)
	if m.MadeBy != "" {
		fmt.Fprintf(w, ", made by TensorFlow %s", m.MadeBy)
	}
	fmt.Fprintln(w)
	for _, name := range slices.Sorted(maps.Keys(m.Signatures)) {
		sig := m.Signatures[name]
		fmt.Fprintf(w, "  signature %s %s\n", name, sig.Method)
		printTensors(w, "input", sig.Inputs)
		printTensors(w, "output", sig.Outputs)
	}
	for _, a := range m.Assets {
		fmt.Fprintf(w, "  asset %s\n", a)
	}
}

func printTensors(w io.Writer, kind string, infos map[string]tensorInfo) {
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		t := infos[name]
		fmt.Fprintf(w, "    %s %s: %s%s from %s\n", kind, name, t.DType, t.Shape, t.Name)
	}
}

// clearDevicesFlag adds --clear-devices to a command.
func clearDevicesFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("clear-devices", false, "ignore the devices of the nodes, so that the model runs on any device")
}

// loadOptions returns the options for loading a model. As in TensorFlow's tool, a missing device is
// replaced by another device of the same task.
func loadOptions(tags []string, clearDevices bool) []serve.ModelOption {
	opts := []serve.ModelOption{serve.WithTags(tags...), serve.WithSession(weft.WithSoftPlacement())}
	if clearDevices {
		opts = append(opts, serve.WithClearDevices())
	}
	return opts
}

// adviseDevices adds a hint about --clear-devices to an error about missing devices.
func adviseDevices(err error) error {
	if err != nil && strings.Contains(err.Error(), "Cannot assign a device for operation") {
		return fmt.Errorf("%w\nUse --clear-devices to run the model on any device", err)
	}
	return err
}

// tagsFlag adds --tags to a command.
func tagsFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringSlice("tags", []string{savedmodel.TagServe}, "tags of the graph")
}

func newSavedModelRun() *cobra.Command {
	cmd := &cobra.Command{
		Use: "run FOLDER", Short: "Run a signature of a SavedModel",
		Long: "Run a signature of a SavedModel in this process or on a server. Inputs are JSON, separately or in one object:\n\n" +
			"    weft saved-model run /models/digits --input 'x=[[1, 2]]'\n" +
			"    weft saved-model run /models/digits --inputs '{\"x\": [[1, 2]]}'\n" +
			"    weft saved-model run /models/digits --inputs @inputs.json\n\n" +
			"With --clear-devices a model that was trained on a cluster runs in one process.",
		Args: exactly("FOLDER"),
	}
	output, tags, flags := outputFlag(cmd), tagsFlag(cmd), cmd.Flags()
	signature := flags.String("signature", savedmodel.DefaultSignature, "signature to run")
	one := flags.StringArray("input", nil, "one input as NAME=JSON; may be repeated")
	all := flags.String("inputs", "", "all inputs as a JSON object, or @FILE to read them from a file")
	target := flags.String("target", local.Target, "where to run the model: local, or grpc://host:port")
	clearDevices := clearDevicesFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		texts, err := inputTexts(*one, *all)
		if err != nil {
			return usageError{err}
		}
		m, err := serve.Load(cmd.Context(), *target, args[0], loadOptions(*tags, *clearDevices)...)
		if err != nil {
			return adviseDevices(err)
		}
		defer m.Close()
		sig, err := m.Signature(*signature)
		if err != nil {
			return err
		}
		inputs, err := parseInputs(sig, texts)
		if err != nil {
			return usageError{err}
		}
		out, err := sig.RunTensors(cmd.Context(), inputs)
		if err != nil {
			return adviseDevices(err)
		}
		values := map[string]any{}
		for name, t := range out {
			values[name] = jsonValue(t.Go())
		}
		return show(cmd, *output, values, func(w io.Writer) {
			for _, a := range sig.Outputs {
				t := out[a.Name]
				fmt.Fprintf(w, "%s %s%v\n%s\n", a.Name, t.DType().Name(), t.Shape(), t.Summary(1000))
			}
		})
	}
	return cmd
}

// inputTexts returns the JSON of each input.
func inputTexts(one []string, all string) (map[string]string, error) {
	texts := map[string]string{}
	if path, isFile := strings.CutPrefix(all, "@"); isFile {
		b, err := fileio.Files{}.Read(path)
		if err != nil {
			return nil, err
		}
		all = string(b)
	}
	if all != "" {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(all), &object); err != nil {
			return nil, fmt.Errorf("--inputs is not a JSON object: %w", err)
		}
		for name, text := range object {
			texts[name] = string(text)
		}
	}
	for _, text := range one {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--input %s: must be NAME=JSON", text)
		}
		texts[name] = value
	}
	return texts, nil
}

func parseInputs(sig *serve.Signature, texts map[string]string) (map[string]tensor.Tensor, error) {
	inputs := map[string]tensor.Tensor{}
	for name, text := range texts {
		i := slices.IndexFunc(sig.Inputs, func(a serve.Argument) bool { return a.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the signature has no input %q", name)
		}
		var err error
		if inputs[name], err = parseValues(sig.Inputs[i].DType, text); err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
	}
	return inputs, nil
}

func newSavedModelFreeze() *cobra.Command {
	cmd := &cobra.Command{
		Use: "freeze FOLDER GRAPH", Short: "Replace the variables of a SavedModel by constants",
		Long: "Write a GraphDef that computes some outputs of a SavedModel, with its variables replaced by constants.",
		Args: exactly("FOLDER", "GRAPH"),
	}
	output, tags := outputFlag(cmd), tagsFlag(cmd)
	signature := cmd.Flags().String("signature", savedmodel.DefaultSignature, "signature whose outputs to keep, unless --outputs is set")
	outputs := cmd.Flags().StringSlice("outputs", nil, "names of the outputs to keep, such as y or y:0")
	clearDevices := clearDevicesFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keep := *outputs
		if len(keep) == 0 {
			var err error
			if keep, err = outputsOf(args[0], *tags, *signature); err != nil {
				return err
			}
		}
		def, err := serve.Freeze(cmd.Context(), local.Target, args[0], keep, loadOptions(*tags, *clearDevices)...)
		if err != nil {
			return adviseDevices(err)
		}
		if err := savedmodel.WriteGraph(args[1], def); err != nil {
			return err
		}
		frozen := struct {
			Graph   string   `json:"graph"`
			Nodes   int      `json:"nodes"`
			Outputs []string `json:"outputs"`
		}{args[1], len(def.Nodes), keep}
		return show(cmd, *output, frozen, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %d nodes, outputs %s\n", frozen.Graph, frozen.Nodes, strings.Join(keep, ", "))
		})
	}
	return cmd
}

// outputsOf returns the names of the outputs of a signature.
func outputsOf(dir string, tags []string, signature string) ([]string, error) {
	m, err := savedmodel.Open(dir)
	if err != nil {
		return nil, err
	}
	g, err := m.MetaGraph(tags...)
	if err != nil {
		return nil, err
	}
	sig, ok := g.Signatures[signature]
	if !ok {
		return nil, fmt.Errorf("the model has no signature %q: use --outputs", signature)
	}
	var names []string
	for _, key := range slices.Sorted(maps.Keys(sig.Outputs)) {
		names = append(names, sig.Outputs[key].Name)
	}
	return names, nil
}
