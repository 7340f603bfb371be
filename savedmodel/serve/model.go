package serve

import (
	"context"
	"maps"
	"slices"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Model is a loaded SavedModel: its variables are restored and its signatures can be run. It may be
// used concurrently.
type Model struct {
	// Session runs steps that no signature describes. [savedmodel.FindOutput] finds the nodes of
	// Graph by name.
	Session *weft.Session
	// Graph is the graph of the session.
	Graph *graph.Graph
	// Meta is the content of the model.
	Meta *savedmodel.MetaGraph

	signatures map[string]*Signature
}

// Load loads a SavedModel into a new session on a target ("local", "grpc://host:port"), restores
// its variables and runs its initialization. The tasks that hold variables read the checkpoint
// themselves: on other machines dir must have the same path. The caller closes the model.
//
// Errors include NotFound if the folder holds no model or the model has no graph with the tags.
func Load(ctx context.Context, target, dir string, opts ...ModelOption) (*Model, error) {
	set := newSettings(opts)
	files, meta, err := open(dir, set)
	if err != nil {
		return nil, err
	}
	return load(ctx, target, files, meta, set)
}

// open reads a SavedModel and selects the graph with the tags of the settings.
func open(dir string, set *settings) (*savedmodel.Model, *savedmodel.MetaGraph, error) {
	files, err := savedmodel.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	meta, err := files.MetaGraph(set.tags...)
	if err == nil && set.clearDevices {
		meta.ClearDevices()
	}
	return files, meta, err
}

// load starts a session with the graph of a model that was read.
func load(
	ctx context.Context, target string, files *savedmodel.Model, meta *savedmodel.MetaGraph, set *settings,
) (*Model, error) {
	g, err := graph.Import(meta.Graph, definitions(meta.Ops), graph.ImportOptions{})
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", files.Dir, err)
	}
	sess, err := weft.NewSession(target, g, set.session...)
	if err != nil {
		return nil, err
	}
	m := &Model{Session: sess, Graph: g, Meta: meta, signatures: map[string]*Signature{}}
	if err := m.start(ctx, files); err != nil {
		_ = m.Close() // the first error is the cause
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", files.Dir, err)
	}
	return m, nil
}

// Close closes the session of the model.
func (m *Model) Close() error { return m.Session.Close() }

// Signature returns the signature of the given name. It is a NotFound error if the model has none.
func (m *Model) Signature(name string) (*Signature, error) {
	if s := m.signatures[name]; s != nil {
		return s, nil
	}
	return nil, status.NotFoundf("the model has no signature %q: it has %q", name, m.Signatures())
}

// Signatures returns the names of the signatures that can be run, sorted.
func (m *Model) Signatures() []string {
	names := make([]string, 0, len(m.signatures))
	for name := range m.signatures {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// definitionsOf looks an operation up in package op and else among those that a model defines,
// which only the target may know.
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
func (m *Model) start(ctx context.Context, files *savedmodel.Model) error {
	g, feeds := m.Graph, weft.Feeds{}
	for _, a := range m.Meta.Assets {
		o, err := savedmodel.FindOutput(g, a.Tensor)
		if err != nil {
			return err
		}
		feeds[o] = tensor.Scalar(files.AssetPath(a))
	}
	if err := m.restore(ctx, files.Variables(), feeds); err != nil {
		return err
	}
	init, err := m.initializer()
	if err != nil {
		return err
	}
	if init != nil {
		if err := m.Session.Exec(ctx, feeds, init); err != nil {
			return err
		}
	}
	for name, sig := range m.Meta.Signatures {
		if name == savedmodel.SignatureInitOp || name == savedmodel.SignatureTrainOp {
			continue
		}
		if m.signatures[name], err = m.newSignature(sig, feeds); err != nil {
			return status.Errorf(status.CodeOf(err), "signature %q: %w", name, err)
		}
	}
	return nil
}

// restore runs the restore operation of the model for the checkpoint with the given prefix, if
// there is one.
func (m *Model) restore(ctx context.Context, prefix string, assets weft.Feeds) error {
	saver := m.Meta.Saver
	if saver == nil {
		return nil
	}
	if !(fileio.Files{}).Exists(prefix + ".index") {
		return nil // a model without variables
	}
	file, err := savedmodel.FindOutput(m.Graph, saver.Filename)
	if err != nil {
		return err
	}
	restore, err := savedmodel.FindNode(m.Graph, saver.Restore)
	if err != nil {
		return err
	}
	feeds := weft.Feeds{file: tensor.Scalar(prefix)}
	maps.Copy(feeds, assets)
	return m.Session.Exec(ctx, feeds, restore)
}

// initializer returns the node that runs when the model is loaded; nil if there is none.
func (m *Model) initializer() (*graph.Node, error) {
	if sig, ok := m.Meta.Signatures[savedmodel.SignatureInitOp]; ok {
		return savedmodel.FindNode(m.Graph, sig.Outputs[savedmodel.SignatureInitOp].Name)
	}
	for _, name := range []string{savedmodel.CollectionMainOp, savedmodel.CollectionLegacyInitOp} {
		switch nodes := m.Meta.Collections[name].Nodes; len(nodes) {
		case 0:
		case 1:
			return savedmodel.FindNode(m.Graph, nodes[0])
		default:
			return nil, status.FailedPreconditionf("Expected exactly one main op in : %s", name)
		}
	}
	return nil, nil
}
