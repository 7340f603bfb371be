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

// ExportMetaGraph returns the graph of a scope with its collections and, if it is not nil, a saver.
// What TensorFlow needs to differentiate loops and conditions is among the collections.
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
	if v.Initial.Node != nil && v.Initializer != nil { // imported variables may lack them
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

// ImportMetaGraph adds a graph that was written down, with its collections, to the graph of a
// scope, and returns its saver, nil if it has none. The scope should be outermost: with a prefix
// the variables have other names than in the checkpoints of that saver. Messages in collections
// that are unknown here become texts.
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

// metaCache keeps the serialized MetaGraph of a saver for as long as its graph does not grow.
type metaCache struct {
	nodes int
	bytes []byte
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
	return fileio.Write(path, c.bytes)
}
