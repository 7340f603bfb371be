package savedmodel

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// encode converts a MetaGraph to a message.
func (m *MetaGraph) encode() (*pb.MetaGraphDef, error) {
	p := &pb.MetaGraphDef{
		MetaInfoDef: &pb.MetaGraphDef_MetaInfoDef{
			Tags: m.Tags, TensorflowVersion: m.MadeBy, StrippedDefaultAttrs: m.DefaultsStripped, StrippedOpList: &pb.OpList{},
		},
		CollectionDef: map[string]*pb.CollectionDef{}, SignatureDef: map[string]*pb.SignatureDef{},
	}
	var err error
	if p.GraphDef, err = pbconv.GraphToProto(m.Graph); err != nil {
		return nil, err
	}
	for _, op := range m.Ops {
		def, err := encodeOp(op)
		if err != nil {
			return nil, err
		}
		p.MetaInfoDef.StrippedOpList.Op = append(p.MetaInfoDef.StrippedOpList.Op, def)
	}
	if m.Saver != nil {
		p.SaverDef = m.Saver.encode()
	}
	for name, c := range m.Collections {
		p.CollectionDef[name] = c.encode()
	}
	for name, s := range m.Signatures {
		if p.SignatureDef[name], err = s.encode(); err != nil {
			return nil, status.Errorf(status.CodeOf(err), "signature %q: %w", name, err)
		}
	}
	for _, a := range m.Assets {
		p.AssetFileDef = append(p.AssetFileDef, a.encode())
	}
	if m.ObjectGraph != nil {
		p.ObjectGraphDef = &pb.SavedObjectGraph{}
		if err := proto.Unmarshal(m.ObjectGraph, p.ObjectGraphDef); err != nil {
			return nil, status.InvalidArgumentf("not a SavedObjectGraph: %w", err)
		}
	}
	return p, nil
}

func encodeOp(op *opdef.Op) (*pb.OpDef, error) {
	bare := *op
	bare.Doc = ""
	return pbconv.OpToProto(&bare)
}

func (s *Saver) encode() *pb.SaverDef {
	p := &pb.SaverDef{
		FilenameTensorName: s.Filename, SaveTensorName: s.Save, RestoreOpName: s.Restore, MaxToKeep: int32(s.MaxToKeep),
		Sharded: s.Sharded, KeepCheckpointEveryNHours: s.KeepEvery, Version: pb.SaverDef_V2,
	}
	if s.FormatV1 {
		p.Version = pb.SaverDef_V1
	}
	return p
}

func (c Collection) encode() *pb.CollectionDef {
	switch {
	case c.Bytes != nil:
		return &pb.CollectionDef{Kind: &pb.CollectionDef_BytesList_{BytesList: &pb.CollectionDef_BytesList{Value: c.Bytes}}}
	case c.Ints != nil:
		return &pb.CollectionDef{Kind: &pb.CollectionDef_Int64List_{Int64List: &pb.CollectionDef_Int64List{Value: c.Ints}}}
	case c.Floats != nil:
		return &pb.CollectionDef{Kind: &pb.CollectionDef_FloatList_{FloatList: &pb.CollectionDef_FloatList{Value: c.Floats}}}
	case c.Any != nil:
		list := &pb.CollectionDef_AnyList{}
		for _, a := range c.Any {
			list.Value = append(list.Value, &anypb.Any{TypeUrl: a.TypeURL, Value: a.Value})
		}
		return &pb.CollectionDef{Kind: &pb.CollectionDef_AnyList_{AnyList: list}}
	}
	return &pb.CollectionDef{Kind: &pb.CollectionDef_NodeList_{NodeList: &pb.CollectionDef_NodeList{Value: c.Nodes}}}
}

func (s Signature) encode() (*pb.SignatureDef, error) {
	p := &pb.SignatureDef{MethodName: s.Method}
	var err error
	if p.Inputs, err = encodeInfos(s.Inputs); err != nil {
		return nil, err
	}
	if p.Outputs, err = encodeInfos(s.Outputs); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Defaults)) {
		if p.Defaults == nil {
			p.Defaults = map[string]*pb.TensorProto{}
		}
		t := s.Defaults[name]
		if p.Defaults[name], err = pbconv.TensorToProto(&t); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func encodeInfos(infos map[string]TensorInfo) (map[string]*pb.TensorInfo, error) {
	out := make(map[string]*pb.TensorInfo, len(infos))
	for name, info := range infos {
		p, err := info.encode()
		if err != nil {
			return nil, err
		}
		out[name] = p
	}
	return out, nil
}

func (t TensorInfo) encode() (*pb.TensorInfo, error) {
	p := &pb.TensorInfo{Dtype: pb.DataType(t.DType), TensorShape: pbconv.PartialShapeToProto(t.Shape)}
	switch {
	case t.Sparse != nil:
		p.Encoding = &pb.TensorInfo_CooSparse_{CooSparse: &pb.TensorInfo_CooSparse{
			ValuesTensorName: t.Sparse.Values, IndicesTensorName: t.Sparse.Indices, DenseShapeTensorName: t.Sparse.Shape,
		}}
	case t.Composite != nil:
		c := &pb.TensorInfo_CompositeTensor{TypeSpec: &pb.TypeSpecProto{}}
		if err := proto.Unmarshal(t.Composite.Type, c.TypeSpec); err != nil {
			return nil, status.InvalidArgumentf("not a TypeSpecProto: %w", err)
		}
		for _, part := range t.Composite.Components {
			q, err := part.encode()
			if err != nil {
				return nil, err
			}
			c.Components = append(c.Components, q)
		}
		p.Encoding = &pb.TensorInfo_CompositeTensor_{CompositeTensor: c}
	case t.Name != "" || t.DType != tensor.Invalid:
		p.Encoding = &pb.TensorInfo_Name{Name: t.Name}
	}
	return p, nil
}

func (a Asset) encode() *pb.AssetFileDef {
	return &pb.AssetFileDef{TensorInfo: &pb.TensorInfo{Encoding: &pb.TensorInfo_Name{Name: a.Tensor}}, Filename: a.Filename}
}
