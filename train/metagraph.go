package train

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
)

// ExportMetaGraph returns the graph of a scope with its collections and with a saver, unless that
// is nil. The collections include the contexts of loops and conditions, which TensorFlow needs to
// differentiate them.
func ExportMetaGraph(s *op.Scope, saver *Saver) (*savedmodel.MetaGraph, error) {
	m := &savedmodel.MetaGraph{Graph: s.Graph().Def(), Ops: opsOf(s.Graph()), Collections: map[string]savedmodel.Collection{}}
	if saver != nil {
		def := saver.Def()
		m.Saver = &def
	}
	for _, name := range s.Collections() {
		c, err := exportCollection(s.Collection(name))
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "collection %q: %w", name, err)
		}
		if c.Nodes != nil || c.Bytes != nil || c.Ints != nil || c.Floats != nil {
			m.Collections[name] = c
		}
	}
	return m, addContexts(m, s.Graph())
}

// MarshalCollection returns a serialized tensorflow.VariableDef.
func (v *Variable) MarshalCollection() ([]byte, error) {
	def := &pb.VariableDef{
		VariableName: savedmodel.OutputName(v.Handle), SnapshotName: savedmodel.OutputName(v.Value),
		IsResource: v.Resource, Trainable: v.Trainable,
	}
	if v.Initial.Node != nil && v.Initializer != nil { // an imported variable may have neither
		def.InitialValueName, def.InitializerName = savedmodel.OutputName(v.Initial), v.Initializer.Name
	}
	if v.Part != nil {
		offset := make([]int64, len(v.Shape))
		offset[0] = v.Part.Offset
		def.SaveSliceInfoDef = &pb.SaveSliceInfoDef{FullName: v.Part.Name, FullShape: v.Part.Shape, VarOffset: offset, VarShape: v.Shape}
	}
	return proto.Marshal(def)
}

// MarshalCollection returns a serialized tensorflow.SaverDef.
func (sv *Saver) MarshalCollection() ([]byte, error) {
	return proto.Marshal(&pb.SaverDef{
		FilenameTensorName: sv.nodes.Filename, SaveTensorName: sv.nodes.Save, RestoreOpName: sv.nodes.Restore,
		MaxToKeep: int32(sv.nodes.MaxToKeep), Sharded: sv.nodes.Sharded, KeepCheckpointEveryNHours: sv.nodes.KeepEvery,
		Version: pb.SaverDef_V2,
	})
}

// ImportMetaGraph adds the graph and the collections of a MetaGraph to the graph of a scope. It
// returns the saver of the MetaGraph, or nil if it has none or after a build error. The scope
// should have no name prefix, since the variables would then have other names than in the
// checkpoints of the saver. Messages of unknown types in collections become strings of their bytes.
//
//	latest, err := train.LatestCheckpoint(dir)
//	…
//	m, err := savedmodel.ReadMetaGraph(latest + ".meta")
//	…
//	saver := train.ImportMetaGraph(s, m, op.ImportOptions{ClearDevices: true}, train.SaverOptions{})
func ImportMetaGraph(s *op.Scope, m *savedmodel.MetaGraph, graphOptions op.ImportOptions, options SaverOptions) *Saver {
	nodes := s.Import(m.Graph, graphOptions)
	if nodes == nil {
		return nil
	}
	imported := importer{scope: s, nodes: nodes, vars: map[string]*Variable{}, saverOptions: options}
	for _, name := range slices.Sorted(maps.Keys(m.Collections)) {
		values, err := imported.collection(name, m.Collections[name])
		if err != nil {
			s.Fail(status.Errorf(status.CodeOf(err), "collection %q: %w", name, err))
			return nil
		}
		s.AddToCollection(name, values...)
	}
	if m.Saver == nil {
		return nil
	}
	saver, err := imported.saver(*m.Saver)
	if err != nil {
		s.Fail(err)
		return nil
	}
	return saver
}

// A metaCache holds the serialized MetaGraph of a saver until its graph grows.
type metaCache struct {
	nodes int    // size of the graph that was serialized
	bytes []byte // nil before the first use
}

func (c *metaCache) write(sv *Saver, path string) error {
	if n := sv.scope.Graph().NumIDs(); c.bytes == nil || c.nodes != n {
		m, err := ExportMetaGraph(sv.scope, sv)
		if err != nil {
			return err
		}
		if c.bytes, err = m.Marshal(); err != nil {
			return err
		}
		c.nodes = n
	}
	return fileio.Files{}.Write(path, c.bytes)
}
