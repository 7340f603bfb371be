package data

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// graphWriter writes datasets as the graphs that create them.
type graphWriter struct {
	graph     *pb.GraphDef
	stateless bool // stateful functions are errors
	functions map[string]bool
}

// writeGraph returns the graph of a dataset. A node "dataset" of operation _Retval marks the
// result.
func writeGraph(t *tensor.Tensor, stateless bool) (*pb.GraphDef, error) {
	w := &graphWriter{graph: &pb.GraphDef{Versions: &pb.VersionDef{}}, stateless: stateless, functions: map[string]bool{}}
	out, err := w.dataset(t)
	if err != nil {
		return nil, err
	}
	err = w.node("dataset", "_Retval", []string{out}, opdef.Attrs{"T": tensor.Variant, "index": int64(0)})
	return w.graph, err
}

func (w *graphWriter) node(name, op string, in []string, attrs opdef.Attrs) error {
	p, err := pbconv.AttrsToProto(attrs)
	if err == nil {
		w.graph.Node = append(w.graph.Node, &pb.NodeDef{Name: name, Op: op, Input: in, Attr: p})
	}
	return err
}

// add adds a node with the name that TensorFlow uses in such graphs.
func (w *graphWriter) add(op string, in []string, attrs opdef.Attrs) (string, error) {
	name := fmt.Sprintf("%s/_%d", op, len(w.graph.Node))
	return name, w.node(name, op, in, attrs)
}

// tensor adds the nodes that produce a tensor: those of a dataset, or a constant.
func (w *graphWriter) tensor(t *tensor.Tensor) (string, error) {
	if t.DType() == tensor.Variant {
		if name, ok, err := w.datasets(t); ok || err != nil {
			return name, err
		}
	}
	attrs, err := constant(t)
	name := fmt.Sprintf("Const/_%d", len(w.graph.Node))
	w.graph.Node = append(w.graph.Node, &pb.NodeDef{Name: name, Op: "Const", Attr: attrs})
	return name, err
}

// datasets adds the nodes that produce a tensor of datasets. It returns false if t is none.
func (w *graphWriter) datasets(t *tensor.Tensor) (string, bool, error) {
	for _, v := range tensor.Values[tensor.VariantValue](t) {
		if _, ok := v.Value.(dataset); !ok {
			return "", false, nil
		}
	}
	if t.Rank() == 0 {
		name, err := w.dataset(t)
		return name, true, err
	}
	rows := int(t.Shape()[0])
	if t.Rank() != 1 || rows == 0 {
		return "", false, nil
	}
	in := membudget.Make[string](rows)
	for i, v := range tensor.Values[tensor.VariantValue](t) {
		row := tensor.Scalar(v)
		var err error
		if in[i], err = w.dataset(&row); err != nil {
			return "", true, err
		}
	}
	name, err := w.add("Pack", in, opdef.Attrs{"N": int64(rows), "T": tensor.Variant, "axis": int64(0)})
	return name, true, err
}

func (w *graphWriter) dataset(t *tensor.Tensor) (string, error) {
	switch d := tensor.Value[tensor.VariantValue](t).Value.(type) {
	case *nodeDataset:
		return w.nodeDataset(d)
	case *listDataset:
		return w.window(d)
	case *shardDirDataset:
		return w.shardDir(d)
	default:
		return "", status.Unimplementedf("cannot write a %T as a graph", d)
	}
}

func (w *graphWriter) nodeDataset(d *nodeDataset) (string, error) {
	op := d.n.Op.Name
	switch op {
	case "NonSerializableDataset", "ExperimentalNonSerializableDataset", "GeneratorDataset":
		return "", status.Unimplementedf("cannot write %s as a graph", op)
	}
	in := membudget.Make[string](len(d.inputs))
	for i := range d.inputs {
		var err error
		if in[i], err = w.tensor(&d.inputs[i]); err != nil {
			return "", err
		}
	}
	if err := w.library(d.n); err != nil {
		return "", err
	}
	w.graph.Versions.Producer = max(w.graph.Versions.Producer, int32(d.n.GraphVersion))
	return w.add(op, in, d.n.Attrs)
}

// window adds the nodes that create the dataset of a window from its elements.
func (w *graphWriter) window(d *listDataset) (string, error) {
	var in []string
	var types []tensor.DType
	for _, e := range d.all {
		for i := range e {
			name, err := w.tensor(&e[i])
			if err != nil {
				return "", err
			}
			in, types = append(in, name), append(types, e[i].DType())
		}
	}
	return w.add("WindowOp", in, opdef.Attrs{"output_types": d.types, "output_shapes": d.shapes, "Tinputs": types})
}

// shardDir adds the nodes that read a shard of files.
func (w *graphWriter) shardDir(d *shardDirDataset) (string, error) {
	var in []string
	for _, t := range []tensor.Tensor{tensor.Scalar(d.dir), tensor.Scalar(d.start)} {
		name, err := w.tensor(&t)
		if err != nil {
			return "", err
		}
		in = append(in, name)
	}
	return w.add("SnapshotDatasetReader", in, opdef.Attrs{
		"output_types": d.types, "output_shapes": d.shapes, "compression": d.compression, "version": int64(savedVersion),
	})
}

// library adds the functions of a node to the graph's library.
func (w *graphWriter) library(n *node) error {
	names := slices.Collect(n.Attrs.Functions())
	if len(names) == 0 {
		return nil
	}
	lib, err := n.libraryOf(names...)
	if err != nil {
		return err
	}
	return w.addFunctions(lib)
}

// libraryOf returns functions of the graph and those that they use.
func (n *node) libraryOf(names ...string) (*pb.FunctionDefLibrary, error) {
	graphs, ok := n.Functions.(kernel.Graphs)
	if !ok {
		return nil, status.Unimplementedf("cannot serialize the functions of %s", n.Op.Name)
	}
	b, err := graphs.Library(names)
	if err != nil {
		return nil, err
	}
	lib := &pb.FunctionDefLibrary{}
	if err := protomem.Unmarshal(b, lib); err != nil {
		return nil, status.Internalf("cannot decode the functions of %s: %v", n.Op.Name, err)
	}
	return lib, nil
}

func (w *graphWriter) addFunctions(lib *pb.FunctionDefLibrary) error {
	if w.graph.Library == nil {
		w.graph.Library = &pb.FunctionDefLibrary{}
	}
	into := w.graph.Library
	for _, f := range lib.GetFunction() {
		name := f.GetSignature().GetName()
		if w.functions[name] {
			continue
		}
		if w.stateless {
			if err := checkStateless(f); err != nil {
				return err
			}
		}
		//sizedmake:ok part of a graph
		w.functions[name] = true
		into.Function = append(into.Function, f)
		for _, g := range lib.GetGradient() {
			if g.GetFunctionName() == name {
				//sizedmake:ok part of a graph
				into.Gradient = append(into.Gradient, g)
			}
		}
	}
	return nil
}

// ignoredState holds the stateful operations whose state does not affect the elements of datasets.
var ignoredState = map[string]bool{
	"Assert": true, "Print": true, "PrintV2": true, "Timestamp": true, "LookupTableFindV2": true, "LookupTableSize": true, "LookupTableSizeV2": true,
	// Their branches and bodies are functions of the library, which are checked separately.
	"If": true, "While": true,
}

// checkStateless returns an error if a function has an operation whose state is not part of a
// graph.
func checkStateless(f *pb.FunctionDef) error {
	if !f.GetSignature().GetIsStateful() {
		return nil
	}
	for _, n := range f.GetNodeDef() {
		op, ok := kernel.Default.LookupOp(n.GetOp())
		if ok && op.Stateful && !ignoredState[op.Name] && !makesDataset(op) {
			return status.FailedPreconditionf("%s is stateful.", op.Name)
		}
	}
	return nil
}

func makesDataset(op *opdef.Op) bool {
	return len(op.Outputs) == 1 && op.Outputs[0].DType == tensor.Variant &&
		(strings.HasSuffix(op.Name, "Dataset") || strings.HasSuffix(op.Name, "DatasetV2"))
}

// loadGraph runs a graph and returns its only result, usually a dataset.
func loadGraph(functions kernel.Functions, r *run, graphDef string) (tensor.Tensor, error) {
	graphs, ok := functions.(kernel.Graphs)
	if !ok {
		return tensor.Tensor{}, status.Unimplementedf("cannot run the graph of a dataset: functions are not available")
	}
	protomem.MustTake((*pb.GraphDef)(nil).ProtoReflect().Descriptor(), []byte(graphDef))
	f, err := graphs.Load([]byte(graphDef))
	if err != nil {
		return tensor.Tensor{}, err
	}
	if len(f.Op().Outputs) != 1 {
		return tensor.Tensor{}, status.InvalidArgumentf("The graph of a dataset has %d results, must have one", len(f.Op().Outputs))
	}
	made, err := (&captured{Function: f}).call(r, nil)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return made[0], nil
}
