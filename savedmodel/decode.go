package savedmodel

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// decode converts a message to a MetaGraph.
func decode(p *pb.MetaGraphDef) (*MetaGraph, error) {
	info := p.GetMetaInfoDef()
	m := &MetaGraph{
		Tags: info.GetTags(), MadeBy: info.GetTensorflowVersion(), DefaultsStripped: info.GetStrippedDefaultAttrs(),
		Collections: map[string]Collection{}, Signatures: map[string]Signature{},
	}
	var err error
	if m.Graph, err = pbconv.GraphFromProto(p.GetGraphDef()); err != nil {
		return nil, err
	}
	for _, def := range info.GetStrippedOpList().GetOp() {
		op, err := pbconv.OpFromProto(def)
		if err != nil {
			return nil, err
		}
		m.Ops = append(m.Ops, op)
	}
	if p.GetSaverDef().GetRestoreOpName() != "" {
		m.Saver = decodeSaver(p.GetSaverDef())
	}
	for name, c := range p.GetCollectionDef() {
		m.Collections[name] = decodeCollection(c)
	}
	for name, s := range p.GetSignatureDef() {
		if m.Signatures[name], err = decodeSignature(s); err != nil {
			return nil, status.Errorf(status.CodeOf(err), "signature %q: %w", name, err)
		}
	}
	for _, a := range p.GetAssetFileDef() {
		m.Assets = append(m.Assets, Asset{Tensor: a.GetTensorInfo().GetName(), Filename: a.GetFilename()})
	}
	if p.ObjectGraphDef != nil {
		if m.ObjectGraph, err = proto.Marshal(p.ObjectGraphDef); err != nil {
			return nil, status.Internalf("%w", err)
		}
	}
	return m, m.addLegacyAssets()
}

// addLegacyAssets adds the assets that older models list in a collection.
func (m *MetaGraph) addLegacyAssets() error {
	if len(m.Assets) > 0 {
		return nil
	}
	for _, a := range m.Collections[CollectionAssets].Any {
		var p pb.AssetFileDef
		if err := proto.Unmarshal(a.Value, &p); err != nil {
			return status.DataLossf("collection %s: %w", CollectionAssets, err)
		}
		m.Assets = append(m.Assets, Asset{Tensor: p.GetTensorInfo().GetName(), Filename: p.GetFilename()})
	}
	return nil
}

func decodeSaver(p *pb.SaverDef) *Saver {
	return &Saver{
		Filename: p.GetFilenameTensorName(), Save: p.GetSaveTensorName(), Restore: p.GetRestoreOpName(),
		MaxToKeep: int(p.GetMaxToKeep()), Sharded: p.GetSharded(), KeepEvery: p.GetKeepCheckpointEveryNHours(),
		FormatV1: p.GetVersion() != pb.SaverDef_V2,
	}
}

func decodeCollection(p *pb.CollectionDef) Collection {
	switch kind := p.GetKind().(type) {
	case *pb.CollectionDef_BytesList_:
		return Collection{Bytes: notNil(kind.BytesList.GetValue())}
	case *pb.CollectionDef_Int64List_:
		return Collection{Ints: notNil(kind.Int64List.GetValue())}
	case *pb.CollectionDef_FloatList_:
		return Collection{Floats: notNil(kind.FloatList.GetValue())}
	case *pb.CollectionDef_AnyList_:
		c := Collection{Any: []Any{}}
		for _, a := range kind.AnyList.GetValue() {
			c.Any = append(c.Any, Any{a.GetTypeUrl(), a.GetValue()})
		}
		return c
	default:
		return Collection{Nodes: notNil(p.GetNodeList().GetValue())}
	}
}

// notNil returns an empty list for nil, since the field that is not nil is the kind of a
// collection.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func decodeSignature(p *pb.SignatureDef) (Signature, error) {
	s := Signature{Method: p.GetMethodName()}
	var err error
	if s.Inputs, err = decodeInfos(p.GetInputs()); err != nil {
		return s, err
	}
	if s.Outputs, err = decodeInfos(p.GetOutputs()); err != nil {
		return s, err
	}
	for name, t := range p.GetDefaults() {
		if s.Defaults == nil {
			s.Defaults = map[string]tensor.Tensor{}
		}
		if s.Defaults[name], err = pbconv.TensorFromProto(t); err != nil {
			return s, err
		}
	}
	return s, nil
}

func decodeInfos(ps map[string]*pb.TensorInfo) (map[string]TensorInfo, error) {
	out := make(map[string]TensorInfo, len(ps))
	for name, p := range ps {
		info, err := decodeInfo(p, 0)
		if err != nil {
			return nil, err
		}
		out[name] = info
	}
	return out, nil
}

// maxComponents is the maximum depth of nested composite tensors. It bounds the recursion for a
// malicious file.
const maxComponents = 100

func decodeInfo(p *pb.TensorInfo, depth int) (TensorInfo, error) {
	if depth > maxComponents {
		return TensorInfo{}, status.InvalidArgumentf("a composite tensor of a signature is nested more than %d levels deep", maxComponents)
	}
	t := TensorInfo{Name: p.GetName(), DType: tensor.DType(p.GetDtype())} //nolint:gosec // checked below
	if int32(t.DType) != int32(p.GetDtype()) {
		return t, status.InvalidArgumentf("%d is not a valid data type", p.GetDtype())
	}
	var err error
	if t.Shape, err = pbconv.PartialShapeFromProto(p.GetTensorShape()); err != nil {
		return t, err
	}
	if p.TensorShape == nil {
		t.Shape = tensor.PartialShape{}
	}
	if s := p.GetCooSparse(); s != nil {
		t.Sparse = &SparseInfo{s.GetValuesTensorName(), s.GetIndicesTensorName(), s.GetDenseShapeTensorName()}
	}
	c := p.GetCompositeTensor()
	if c == nil {
		return t, nil
	}
	t.Composite = &CompositeInfo{}
	if t.Composite.Type, err = proto.Marshal(c.GetTypeSpec()); err != nil {
		return t, status.Internalf("%w", err)
	}
	for _, part := range c.GetComponents() {
		info, err := decodeInfo(part, depth+1)
		if err != nil {
			return t, err
		}
		t.Composite.Components = append(t.Composite.Components, info)
	}
	return t, nil
}
