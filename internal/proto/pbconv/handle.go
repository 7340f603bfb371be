package pbconv

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// HandleFromProto returns a resource handle. It refers to the resource by name only.
func HandleFromProto(p *pb.ResourceHandleProto) (*tensor.Handle, error) {
	h := &tensor.Handle{
		Device: p.GetDevice(), Container: p.GetContainer(), Name: p.GetName(), HashCode: p.GetHashCode(),
		TypeName: p.GetMaybeTypeName(),
	}
	elems, err := handleElems(p.GetDtypesAndShapes())
	if err != nil {
		return nil, status.InvalidArgumentf("resource handle '%s': %w", h.Name, err)
	}
	h.Elems = elems
	return h, nil
}

func handleElems(ps []*pb.ResourceHandleProto_DtypeAndShape) ([]tensor.HandleElem, error) {
	if len(ps) == 0 {
		return nil, nil
	}
	out := make([]tensor.HandleElem, len(ps))
	for i, p := range ps {
		shape, err := PartialShapeFromProto(p.GetShape())
		if err != nil {
			return nil, err
		}
		dtype, ok := dtypeOf(p.GetDtype())
		if !ok {
			return nil, status.InvalidArgumentf("invalid DataType enum: %d", p.GetDtype())
		}
		out[i] = tensor.HandleElem{DType: dtype, Shape: shape}
	}
	return out, nil
}

// HandleToProto returns the message of a resource handle.
func HandleToProto(h *tensor.Handle) *pb.ResourceHandleProto {
	if h == nil {
		return &pb.ResourceHandleProto{}
	}
	return &pb.ResourceHandleProto{
		Device: h.Device, Container: h.Container, Name: h.Name, HashCode: h.HashCode, MaybeTypeName: h.TypeName,
		DtypesAndShapes: handleElemsToProto(h.Elems),
	}
}

func handleElemsToProto(elems []tensor.HandleElem) []*pb.ResourceHandleProto_DtypeAndShape {
	var out []*pb.ResourceHandleProto_DtypeAndShape
	for _, e := range elems {
		out = append(out, &pb.ResourceHandleProto_DtypeAndShape{
			Dtype: pb.DataType(e.DType), Shape: PartialShapeToProto(e.Shape),
		})
	}
	return out
}

// handles returns a resource tensor. Missing elements are empty handles.
func (r *reader) handles(shape tensor.Shape, ps []*pb.ResourceHandleProto) (tensor.Tensor, error) {
	n := shape.NumElements()
	ps = ps[:min(int64(len(ps)), n)]
	if err := r.expand(n-int64(len(ps)), wordSize); err != nil {
		return tensor.Tensor{}, err
	}
	t, err := tensor.Zeros(tensor.Resource, shape)
	if err != nil {
		return tensor.Tensor{}, err
	}
	out := tensor.Values[*tensor.Handle](&t)
	for i, p := range ps {
		if out[i], err = HandleFromProto(p); err != nil {
			return tensor.Tensor{}, err
		}
	}
	none := &tensor.Handle{}
	for i := range out[len(ps):] {
		out[len(ps)+i] = none
	}
	return t, nil
}
