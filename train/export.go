package train

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/savedmodel"
)

// Export describes a SavedModel.
type Export struct {
	Dir        string                          // folder of the model; must be empty or not exist
	Signatures map[string]savedmodel.Signature // by name, such as [savedmodel.DefaultSignature]
	Tags       []string                        // of the MetaGraph; [savedmodel.TagServe] if nil
	MainOp     *graph.Node                     // runs when the model is loaded; nil for none
	// Assets maps outputs (string scalars) to paths of files. The files are copied to the model,
	// and when the model is loaded each output is fed with the path of the copy.
	Assets map[graph.Output]string
	// ClearDevices removes the devices of the nodes, so that the model runs on any device.
	ClearDevices bool
	// StripDefaults removes attributes with their default value, so that older programs can load
	// the model.
	StripDefaults bool
}

// SaveModel writes the graph of a scope and the values of its variables in a session as a
// SavedModel. The saver must belong to the graph; it is nil for a graph without variables. The
// error has the code AlreadyExists if Dir is not empty. After an error Dir is empty or does not
// exist.
func (e Export) SaveModel(ctx context.Context, sess Session, s *op.Scope, saver *Saver) error {
	b, err := savedmodel.Create(e.Dir)
	if err != nil {
		return err
	}
	defer b.Abort()
	if saver != nil {
		if err := saver.Write(ctx, sess, b.Variables()); err != nil {
			return err
		}
	}
	m, err := e.metaGraph(s, saver)
	if err == nil {
		err = e.addAssets(b, m)
	}
	if err == nil {
		err = b.Add(m)
	}
	if err != nil {
		return err
	}
	return b.Save()
}

// check reports whether SaveModel can write to its folder and read the assets.
func (e Export) check() error {
	for _, path := range e.Assets {
		if _, err := (fileio.Files{}).Stat(path); err != nil {
			return err
		}
	}
	return savedmodel.CheckCreate(e.Dir)
}

// addAssets copies the assets to the model and lists them in order of their outputs.
func (e Export) addAssets(b *savedmodel.Builder, m *savedmodel.MetaGraph) error {
	for o, path := range e.Assets {
		name, err := b.AddAsset(path)
		if err != nil {
			return err
		}
		m.Assets = append(m.Assets, savedmodel.Asset{Tensor: savedmodel.OutputName(o), Filename: name})
	}
	slices.SortFunc(m.Assets, func(a, b savedmodel.Asset) int { return strings.Compare(a.Tensor, b.Tensor) })
	return nil
}

func (e Export) metaGraph(s *op.Scope, saver *Saver) (*savedmodel.MetaGraph, error) {
	m, err := ExportMetaGraph(s, saver)
	if err != nil {
		return nil, err
	}
	if m.Tags = e.Tags; m.Tags == nil {
		m.Tags = []string{savedmodel.TagServe}
	}
	m.Signatures = e.Signatures
	if e.MainOp != nil {
		m.Collections[savedmodel.CollectionMainOp] = savedmodel.Collection{Nodes: []string{e.MainOp.Name}}
	}
	if e.ClearDevices {
		for i := range m.Graph.Nodes {
			m.Graph.Nodes[i].Device = ""
		}
	}
	if e.StripDefaults {
		m.StripDefaults()
	}
	return m, nil
}

// opsOf returns the definitions of the operations in a graph, in order of their names.
func opsOf(g *graph.Graph) []*opdef.Op {
	used := map[string]*opdef.Op{}
	for n := range g.Nodes() {
		// otherwise it calls a function of the graph
		if known, ok := g.Ops().LookupOp(n.Op.Name); ok {
			used[n.Op.Name] = known
		}
	}
	ops := make([]*opdef.Op, 0, len(used))
	for _, name := range slices.Sorted(maps.Keys(used)) {
		ops = append(ops, used[name])
	}
	return ops
}

// SavedModelHook exports a SavedModel with the final values of the variables after the last step.
type SavedModelHook struct {
	BaseHook
	Export

	scope *op.Scope
	saver *Saver
}

// Begin implements [SessionRunHook]. It fails before the first step if the model cannot be written
// to [Export.Dir] or an asset is missing.
func (h *SavedModelHook) Begin(s *op.Scope) error {
	if err := h.check(); err != nil {
		return err
	}
	h.scope = s
	if len(Variables(s, GlobalVariables)) > 0 {
		h.saver = buildSaver(s, SaverOptions{Sharded: true})
	}
	return s.Err()
}

// End implements [SessionRunHook].
func (h *SavedModelHook) End(ctx context.Context, sess Session) error {
	return h.SaveModel(ctx, sess, h.scope, h.saver)
}
