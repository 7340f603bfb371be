package weft

import (
	"context"
	"maps"
	"os"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// SavedModel is a SavedModel that is loaded into a session: its variables have their values and its
// signatures can be run, by several goroutines.
type SavedModel struct {
	// Session runs what no signature does. Nodes of its graph are found with
	// [savedmodel.FindOutput].
	Session *Session
	// Meta says what the model holds.
	Meta *savedmodel.MetaGraph

	signatures map[string]*Signature
}

// LoadSavedModel loads the graph with the given tags (package savedmodel; [savedmodel.TagServe] if
// there are none) of the SavedModel in a folder into a new session on a target, restores its
// variables and runs what it says is to be run then. On another machine the folder must have the
// same path. [SavedModel.Close] ends the session.
//
//	m, err := weft.LoadSavedModel(ctx, "local", "/models/digits", nil)
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	digits, err := m.Signature(savedmodel.DefaultSignature)
//	if err != nil {
//		return err
//	}
//	out, err := digits.Run(ctx, map[string]any{"images": [][]float32{…}})
//	probabilities := out["probabilities"].([][]float32)
func LoadSavedModel(ctx context.Context, target, dir string, tags []string, opts ...Option) (*SavedModel, error) {
	model, meta, err := openSavedModel(dir, tags, opts)
	if err != nil {
		return nil, err
	}
	return loadSavedModel(ctx, target, model, meta, opts...)
}

// openSavedModel reads a SavedModel and picks the graph with the given tags, as the options want
// it.
func openSavedModel(dir string, tags []string, opts []Option) (*savedmodel.Model, *savedmodel.MetaGraph, error) {
	set, err := newSettings(opts)
	if err != nil {
		return nil, nil, err
	}
	model, err := savedmodel.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	if len(tags) == 0 {
		tags = []string{savedmodel.TagServe}
	}
	meta, err := model.MetaGraph(tags...)
	if err == nil && set.clearDevices {
		meta.ClearDevices()
	}
	return model, meta, err
}

func loadSavedModel(
	ctx context.Context, target string, model *savedmodel.Model, meta *savedmodel.MetaGraph, opts ...Option,
) (*SavedModel, error) {
	g, err := graph.Import(meta.Graph, definitions(meta.Ops), graph.ImportOptions{})
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", model.Dir, err)
	}
	s, err := NewSession(target, g, opts...)
	if err != nil {
		return nil, err
	}
	m := &SavedModel{Session: s, Meta: meta, signatures: map[string]*Signature{}}
	if err := m.start(ctx, model, g); err != nil {
		_ = m.Close() // the first error says more
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", model.Dir, err)
	}
	return m, nil
}

// Close ends the session of the model.
func (m *SavedModel) Close() error { return m.Session.Close() }

// Signature returns the signature of the given name.
func (m *SavedModel) Signature(name string) (*Signature, error) {
	if s := m.signatures[name]; s != nil {
		return s, nil
	}
	return nil, status.NotFoundf("the model has no signature %q: it has %q", name, m.Signatures())
}

// Signatures returns the names of the signatures that can be run, in order.
func (m *SavedModel) Signatures() []string {
	names := make([]string, 0, len(m.signatures))
	for name := range m.signatures {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// known operations come first; those that a model defines itself may be known to the target.
type definitionsOf map[string]*opdef.Op

func (d definitionsOf) LookupOp(name string) (*opdef.Op, bool) {
	if o, ok := op.Defs.LookupOp(name); ok {
		return o, true
	}
	o, ok := d[name]
	return o, ok
}

func definitions(ops []*opdef.Op) opdef.Lookup {
	d := definitionsOf{}
	for _, o := range ops {
		d[o.Name] = o
	}
	return d
}

// start restores the variables, runs the initialization and prepares the signatures.
func (m *SavedModel) start(ctx context.Context, model *savedmodel.Model, g *graph.Graph) error {
	feeds := map[graph.Output]tensor.Tensor{}
	for _, a := range m.Meta.Assets {
		o, err := savedmodel.FindOutput(g, a.Tensor)
		if err != nil {
			return err
		}
		feeds[o] = tensor.Scalar(model.AssetPath(a))
	}
	if err := m.restore(ctx, g, model.Variables(), feeds); err != nil {
		return err
	}
	init, err := m.initializer(g)
	if err != nil {
		return err
	}
	if init != nil {
		if _, err := m.Session.Run(ctx, feeds, nil, []*graph.Node{init}); err != nil {
			return err
		}
	}
	for name, sig := range m.Meta.Signatures {
		if name == savedmodel.SignatureInitOp || name == savedmodel.SignatureTrainOp {
			continue
		}
		if m.signatures[name], err = newSignature(m.Session, g, sig, feeds); err != nil {
			return status.Errorf(status.CodeOf(err), "signature %q: %w", name, err)
		}
	}
	return nil
}

func (m *SavedModel) restore(ctx context.Context, g *graph.Graph, prefix string, assets map[graph.Output]tensor.Tensor) error {
	saver := m.Meta.Saver
	if saver == nil {
		return nil
	}
	if _, err := os.Stat(prefix + ".index"); err != nil {
		return nil //nolint:nilerr // a model without variables
	}
	file, err := savedmodel.FindOutput(g, saver.Filename)
	if err != nil {
		return err
	}
	restore, err := savedmodel.FindNode(g, saver.Restore)
	if err != nil {
		return err
	}
	feeds := map[graph.Output]tensor.Tensor{file: tensor.Scalar(prefix)}
	maps.Copy(feeds, assets)
	_, err = m.Session.Run(ctx, feeds, nil, []*graph.Node{restore})
	return err
}

// initializer returns the node to be run when the model is loaded; nil for none.
func (m *SavedModel) initializer(g *graph.Graph) (*graph.Node, error) {
	if sig, ok := m.Meta.Signatures[savedmodel.SignatureInitOp]; ok {
		return savedmodel.FindNode(g, sig.Outputs[savedmodel.SignatureInitOp].Name)
	}
	for _, name := range []string{savedmodel.CollectionMainOp, savedmodel.CollectionLegacyInitOp} {
		switch nodes := m.Meta.Collections[name].Nodes; len(nodes) {
		case 0:
		case 1:
			return savedmodel.FindNode(g, nodes[0])
		default:
			return nil, status.FailedPreconditionf("Expected exactly one main op in : %s", name)
		}
	}
	return nil, nil
}
