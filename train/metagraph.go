package train

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/fileio"
	"github.com/weft-ml/weft/internal/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// ExportMetaGraph returns the graph of a scope with its collections and, if it is not nil, a saver.
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
		if c.Nodes != nil || c.Bytes != nil {
			m.Collections[name] = c
		}
	}
	return m, nil
}

// exportCollection returns the form of a collection in a MetaGraph; empty if its values have none.
func exportCollection(values []any) (savedmodel.Collection, error) {
	var c savedmodel.Collection
	for _, v := range values {
		switch v := v.(type) {
		case *graph.Node:
			c.Nodes = append(c.Nodes, v.Name)
		case graph.Output:
			c.Nodes = append(c.Nodes, savedmodel.OutputName(v))
		case op.CollectionMessage:
			b, err := v.MarshalCollection()
			if err != nil {
				return c, err
			}
			c.Bytes = append(c.Bytes, b)
		}
	}
	return c, nil
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

// variableCollections are the collections that hold variables.
var variableCollections = []string{GlobalVariables, LocalVariables, TrainableVariables, MovingAverageVariables, globalStepKey}

// ImportMetaGraph adds a graph that was written down, with the variables of its collections, to the graph of a scope, and
// returns its saver, nil if it has none. The scope should be outermost: with a prefix the variables have other names than
// in the checkpoints of that saver.
//
//	m, err := savedmodel.ReadMetaGraph(train.LatestCheckpoint(dir) + ".meta")
//	…
//	saver := train.ImportMetaGraph(s, m, op.ImportOptions{ClearDevices: true}, train.SaverOptions{})
func ImportMetaGraph(s *op.Scope, m *savedmodel.MetaGraph, graphOptions op.ImportOptions, options SaverOptions) *Saver {
	nodes := s.Import(m.Graph, graphOptions)
	if nodes == nil {
		return nil
	}
	imported := importer{nodes: nodes, vars: map[string]*Variable{}}
	for _, name := range variableCollections {
		for _, b := range m.Collections[name].Bytes {
			v, err := imported.variable(b)
			if err != nil {
				s.Fail(status.Errorf(status.CodeOf(err), "collection %q: %w", name, err))
				return nil
			}
			s.AddToCollection(name, v)
		}
	}
	if m.Saver == nil {
		return nil
	}
	def := *m.Saver
	def.Filename, def.Save, def.Restore = s.Prefix()+def.Filename, s.Prefix()+def.Save, s.Prefix()+def.Restore
	saver, err := SaverOf(s, def, options)
	if err != nil {
		s.Fail(err)
		return nil
	}
	return saver
}

// importer makes variables of what a MetaGraph says of them.
type importer struct {
	nodes map[string]*graph.Node // by the names in the MetaGraph
	vars  map[string]*Variable   // that were made, which several collections may have
}

func (im *importer) variable(b []byte) (*Variable, error) {
	var def pb.VariableDef
	if err := proto.Unmarshal(b, &def); err != nil {
		return nil, status.DataLossf("not a VariableDef: %w", err)
	}
	if v := im.vars[def.GetVariableName()]; v != nil {
		return v, nil
	}
	v := &Variable{Resource: def.GetIsResource(), Trainable: def.GetTrainable()}
	for _, o := range []struct {
		to   *op.Output
		name string
	}{{&v.Handle, def.GetVariableName()}, {&v.Value, def.GetSnapshotName()}, {&v.Initial, def.GetInitialValueName()}} {
		name, index := graph.ParseInput(o.name)
		n := im.nodes[name]
		if n == nil || index < 0 || index >= len(n.OutTypes) {
			if o.to != &v.Initial { // older graphs do not say what the initial value is
				return nil, status.NotFoundf("the variable %s refers to %q, which the graph does not have", def.GetVariableName(), o.name)
			}
			continue
		}
		*o.to = n.Out(index)
	}
	n := v.Handle.Node
	v.Name, v.Initializer = n.Name, im.nodes[def.GetInitializerName()]
	v.DType = n.Attrs.Type("dtype")
	v.Shape, _ = n.Attrs.Shape("shape").Full()
	if part := def.GetSaveSliceInfoDef(); part != nil && len(part.GetVarOffset()) > 0 {
		v.Part = &Part{Name: part.GetFullName(), Shape: tensor.Shape(part.GetFullShape()), Offset: part.GetVarOffset()[0]}
	}
	im.vars[def.GetVariableName()] = v
	return v, nil
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
