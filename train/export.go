package train

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/savedmodel"
)

// Export says what a SavedModel is to hold beside a graph and its variables.
type Export struct {
	Dir        string                          // does not exist or is empty
	Signatures map[string]savedmodel.Signature // what the model can do
	Tags       []string                        // [savedmodel.TagServe] if nil
	MainOp     *graph.Node                     // runs when the model is loaded; nil for none
	// Assets are files that the graph needs: when the model is loaded, an output is fed with the
	// path of a copy.
	Assets map[graph.Output]string
	// ClearDevices leaves out the devices of the nodes, so that the model can be used elsewhere.
	ClearDevices bool
	// StripDefaults leaves out attributes that have their default, so that older programs can load
	// the model.
	StripDefaults bool
}

// SaveModel writes the graph of a scope as a SavedModel, with the values that its variables have in
// a session. The saver is one of the graph; nil for a graph without variables.
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
		if _, err := os.Stat(path); err != nil {
			return fileio.Error(path, err)
		}
	}
	return savedmodel.CheckCreate(e.Dir)
}

// addAssets copies the files, in order of the outputs that they are fed to.
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

// opsOf returns the operations that a graph uses, in order of their names.
func opsOf(g *graph.Graph) []*opdef.Op {
	used := map[string]*opdef.Op{}
	for n := range g.Nodes() {
		if known, ok := g.Ops().LookupOp(n.Op.Name); ok { // others are functions of the graph
			used[n.Op.Name] = known
		}
	}
	ops := make([]*opdef.Op, 0, len(used))
	for _, name := range slices.Sorted(maps.Keys(used)) {
		ops = append(ops, used[name])
	}
	return ops
}

// SavedModelHook writes the model as a SavedModel after the last step, with the values that its
// variables have then.
type SavedModelHook struct {
	BaseHook
	Export

	scope *op.Scope
	saver *Saver
}

// Begin implements [SessionRunHook]. It fails if the model cannot be written to [Export.Dir], or if
// an asset is missing, so that this is known before the first step.
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
