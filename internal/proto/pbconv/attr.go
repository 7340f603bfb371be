package pbconv

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// AttrFromProto returns the value of an attribute, with the Go type that package opdef uses for its
// kind. An empty list, and a message without a value, is an opdef.AnyList.
func AttrFromProto(p *pb.AttrValue) (any, error) { return newReader().attr(p) }

func (r *reader) attr(p *pb.AttrValue) (any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	switch v := p.GetValue().(type) {
	case *pb.AttrValue_S:
		return string(v.S), nil
	case *pb.AttrValue_I:
		return v.I, nil
	case *pb.AttrValue_F:
		return v.F, nil
	case *pb.AttrValue_B:
		return v.B, nil
	case *pb.AttrValue_Type:
		return attrType(v.Type)
	case *pb.AttrValue_Shape:
		return PartialShapeFromProto(v.Shape)
	case *pb.AttrValue_Tensor:
		return r.tensor(v.Tensor)
	case *pb.AttrValue_Func:
		return r.function(v.Func)
	case *pb.AttrValue_Placeholder:
		return opdef.Placeholder(v.Placeholder), nil
	case *pb.AttrValue_List:
		return r.list(v.List)
	default:
		return opdef.AnyList{}, nil
	}
}

func attrType(p pb.DataType) (tensor.DType, error) {
	d, ok := dtypeOf(p)
	if !ok {
		return d, status.InvalidArgumentf("AttrValue has invalid DataType enum: %d", p)
	}
	return d, nil
}

func (r *reader) function(p *pb.NameAttrList) (opdef.Func, error) {
	attrs, err := r.attrs(p.GetAttr())
	if err != nil {
		return opdef.Func{}, status.Errorf(status.CodeOf(err), "function '%s': %w", p.GetName(), err)
	}
	return opdef.Func{Name: p.GetName(), Attrs: attrs}, nil
}

func (r *reader) list(p *pb.AttrValue_ListValue) (any, error) {
	filled := 0
	for _, n := range []int{
		len(p.GetS()), len(p.GetI()), len(p.GetF()), len(p.GetB()), len(p.GetType()), len(p.GetShape()),
		len(p.GetTensor()), len(p.GetFunc()),
	} {
		if n > 0 {
			filled++
		}
	}
	switch {
	case filled == 0:
		return opdef.AnyList{}, nil
	case filled > 1:
		return nil, status.InvalidArgumentf("AttrValue is a list of more than one type")
	case len(p.S) > 0:
		return each(p.S, func(s []byte) (string, error) { return string(s), nil })
	case len(p.I) > 0:
		return p.I, nil
	case len(p.F) > 0:
		return p.F, nil
	case len(p.B) > 0:
		return p.B, nil
	case len(p.Type) > 0:
		return each(p.Type, attrType)
	case len(p.Shape) > 0:
		return each(p.Shape, PartialShapeFromProto)
	case len(p.Tensor) > 0:
		return each(p.Tensor, r.tensor)
	default:
		return each(p.Func, r.function)
	}
}

// each converts every element of a list.
func each[T, F any](list []F, convert func(F) (T, error)) ([]T, error) {
	out := make([]T, len(list))
	for i, v := range list {
		var err error
		if out[i], err = convert(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// AttrsFromProto returns attributes by name.
func AttrsFromProto(ps map[string]*pb.AttrValue) (opdef.Attrs, error) { return newReader().attrs(ps) }

func (r *reader) attrs(ps map[string]*pb.AttrValue) (opdef.Attrs, error) {
	if len(ps) == 0 {
		return nil, nil
	}
	out := make(opdef.Attrs, len(ps))
	for name, p := range ps {
		if strings.HasPrefix(name, "_") {
			p = withoutSymbols(p)
		}
		v, err := r.attr(p)
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "attr '%s': %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}

// withoutSymbols returns an attribute whose shapes have unknown dimensions instead of numbers below
// -1. The optimizer of a TensorFlow master denotes equal unknown dimensions by such numbers, in
// attributes like _input_shapes that no operation has.
func withoutSymbols(p *pb.AttrValue) *pb.AttrValue {
	shapes := func(p *pb.AttrValue) []*pb.TensorShapeProto {
		if p.GetShape() != nil {
			return []*pb.TensorShapeProto{p.GetShape()}
		}
		return p.GetList().GetShape()
	}
	isSymbol := func(d *pb.TensorShapeProto_Dim) bool { return d.GetSize() < tensor.UnknownDim }
	if !slices.ContainsFunc(shapes(p), func(s *pb.TensorShapeProto) bool { return slices.ContainsFunc(s.GetDim(), isSymbol) }) {
		return p
	}
	p = proto.CloneOf(p)
	for _, s := range shapes(p) {
		for _, d := range s.GetDim() {
			d.Size = max(d.GetSize(), tensor.UnknownDim)
		}
	}
	return p
}

// AttrToProto returns the message of an attribute's value.
func AttrToProto(v any) (*pb.AttrValue, error) {
	switch v := v.(type) {
	case string:
		// nodes share the text of a default, or of an attribute of the function that they were in
		if len(v) >= minText && !membudget.Take(int64(len(v))) {
			return nil, errNoMemory
		}
		return &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(v)}}, nil
	case int64:
		return &pb.AttrValue{Value: &pb.AttrValue_I{I: v}}, nil
	case float32:
		return &pb.AttrValue{Value: &pb.AttrValue_F{F: v}}, nil
	case bool:
		return &pb.AttrValue{Value: &pb.AttrValue_B{B: v}}, nil
	case tensor.DType:
		return &pb.AttrValue{Value: &pb.AttrValue_Type{Type: pb.DataType(v)}}, nil
	case tensor.PartialShape:
		return &pb.AttrValue{Value: &pb.AttrValue_Shape{Shape: PartialShapeToProto(v)}}, nil
	case tensor.Tensor:
		t, err := TensorToProto(&v)
		return &pb.AttrValue{Value: &pb.AttrValue_Tensor{Tensor: t}}, err
	case opdef.Func:
		f, err := functionToProto(v)
		return &pb.AttrValue{Value: &pb.AttrValue_Func{Func: f}}, err
	case opdef.Placeholder:
		return &pb.AttrValue{Value: &pb.AttrValue_Placeholder{Placeholder: string(v)}}, nil
	default:
		list, err := listToProto(v)
		return &pb.AttrValue{Value: &pb.AttrValue_List{List: list}}, err
	}
}

func listToProto(v any) (p *pb.AttrValue_ListValue, err error) {
	p = &pb.AttrValue_ListValue{}
	switch v := v.(type) {
	case opdef.AnyList:
	case []string:
		if err := takeTexts(v); err != nil {
			return nil, err
		}
		p.S, err = each(v, func(s string) ([]byte, error) { return []byte(s), nil })
	case []int64:
		p.I = v
	case []float32:
		p.F = v
	case []bool:
		p.B = v
	case []tensor.DType:
		p.Type, err = each(v, func(d tensor.DType) (pb.DataType, error) { return pb.DataType(d), nil })
	case []tensor.PartialShape:
		p.Shape, err = each(v, func(s tensor.PartialShape) (*pb.TensorShapeProto, error) {
			return PartialShapeToProto(s), nil
		})
	case []tensor.Tensor:
		p.Tensor, err = each(v, func(t tensor.Tensor) (*pb.TensorProto, error) { return TensorToProto(&t) })
	case []opdef.Func:
		p.Func, err = each(v, functionToProto)
	default:
		return nil, status.Internalf("a %T is not an attribute value", v)
	}
	return p, err
}

func functionToProto(f opdef.Func) (*pb.NameAttrList, error) {
	attrs, err := AttrsToProto(f.Attrs)
	return &pb.NameAttrList{Name: f.Name, Attr: attrs}, err
}

// AttrsToProto returns the messages of attributes by name.
func AttrsToProto(attrs opdef.Attrs) (map[string]*pb.AttrValue, error) {
	if len(attrs) == 0 {
		return nil, nil
	}
	out := make(map[string]*pb.AttrValue, len(attrs))
	for name, v := range attrs {
		p, err := AttrToProto(v)
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "attr '%s': %w", name, err)
		}
		out[name] = p
	}
	return out, nil
}
