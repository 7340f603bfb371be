package pbconv

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// ShapeFromProto returns a fully known shape. A nil message is a scalar.
func ShapeFromProto(p *pb.TensorShapeProto) (tensor.Shape, error) {
	partial, err := PartialShapeFromProto(p)
	if err != nil {
		return nil, err
	}
	shape, ok := partial.Full()
	if !ok {
		return nil, status.InvalidArgumentf("Shape %s is not fully defined", partial)
	}
	return shape, shape.Check()
}

// PartialShapeFromProto returns a partially known shape. A nil message is a scalar.
func PartialShapeFromProto(p *pb.TensorShapeProto) (tensor.PartialShape, error) {
	if p.GetUnknownRank() {
		if len(p.GetDim()) > 0 {
			return tensor.PartialShape{}, status.InvalidArgumentf("An unknown shape must not have any dimensions set.")
		}
		return tensor.PartialShape{}, nil
	}
	if n := len(p.GetDim()); n > tensor.MaxRank {
		return tensor.PartialShape{}, status.InvalidArgumentf("Shape with %d dimensions has too many dimensions", n)
	}
	dims, known := make([]int64, len(p.GetDim())), make(tensor.Shape, 0, len(p.GetDim()))
	for i, d := range p.GetDim() {
		dims[i] = d.GetSize()
		if dims[i] < tensor.UnknownDim {
			return tensor.PartialShape{}, status.InvalidArgumentf(
				"Shape %s has dimensions with values below -1 (where -1 means unknown)", dimString(p))
		}
		if dims[i] >= 0 {
			known = append(known, dims[i])
		}
	}
	if known.Check() != nil {
		return tensor.PartialShape{}, status.InvalidArgumentf("Shape %s is too large (more than 2**63 - 1 entries)", dimString(p))
	}
	return tensor.MakePartial(dims...), nil
}

// dimString formats a possibly invalid shape.
func dimString(p *pb.TensorShapeProto) string {
	parts := make([]string, len(p.GetDim()))
	for i, d := range p.GetDim() {
		parts[i] = strconv.FormatInt(d.GetSize(), 10)
		if d.GetSize() == tensor.UnknownDim {
			parts[i] = "?"
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// ShapeToProto returns the message of a shape.
func ShapeToProto(s tensor.Shape) *pb.TensorShapeProto {
	p := &pb.TensorShapeProto{}
	if len(s) == 0 {
		return p
	}
	dims := make([]pb.TensorShapeProto_Dim, len(s))
	p.Dim = make([]*pb.TensorShapeProto_Dim, len(s))
	for i, d := range s {
		dims[i].Size = d
		p.Dim[i] = &dims[i]
	}
	return p
}

// PartialShapeToProto returns the message of a partially known shape.
func PartialShapeToProto(s tensor.PartialShape) *pb.TensorShapeProto {
	if !s.RankKnown() {
		return &pb.TensorShapeProto{UnknownRank: true}
	}
	return ShapeToProto(s.Dims())
}
