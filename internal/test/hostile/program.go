package hostile

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/kernel"
)

// maxNodes is the number of nodes above which a program is not multiplied.
const maxNodes = 400

func (r *random) program() *Program {
	p := r.correct()
	for r.oneIn(4) {
		r.join(p)
	}
	for r.change(p); r.oneIn(3); {
		r.change(p)
	}
	switch r.IntN(14) {
	case 0:
		r.loop(p)
		p.note("loop")
	case 1:
		r.multiply(p)
		p.note("multiply")
	case 2:
		r.function(p)
		p.note("function")
	}
	if r.oneIn(4) {
		p.Steps = 1 + r.IntN(30)
	}
	return p
}

// correct returns a copy of a correct program.
func (r *random) correct() *Program {
	seed := pick(r, r.g.seeds)
	seed.Graph = proto.CloneOf(seed.Graph)
	seed.Init, seed.Targets = append([]string(nil), seed.Init...), append([]string(nil), seed.Targets...)
	return &seed
}

func (p *Program) note(format string, args ...any) {
	p.Changes = append(p.Changes, fmt.Sprintf(format, args...))
}

// join adds another correct program, and may connect one of its inputs to the first.
func (r *random) join(p *Program) {
	other := r.correct()
	prefix := fmt.Sprint("j", len(p.Graph.Node), "_")
	for _, n := range other.Graph.Node {
		n.Name = prefix + n.Name
		for i, in := range n.Input {
			if rest, ok := strings.CutPrefix(in, "^"); ok {
				n.Input[i] = "^" + prefix + rest
			} else {
				n.Input[i] = prefix + in
			}
		}
	}
	first := pick(r, p.Graph.Node).Name
	if last := other.Graph.Node[len(other.Graph.Node)-1]; len(last.Input) > 0 && r.oneIn(4) {
		last.Input[r.IntN(len(last.Input))] = first
	}
	p.Graph.Node = append(p.Graph.Node, other.Graph.Node...)
	for _, name := range other.Init {
		p.Init = append(p.Init, prefix+name)
	}
	for _, name := range other.Targets {
		p.Targets = append(p.Targets, prefix+name)
	}
}

// change changes one thing of a program.
func (r *random) change(p *Program) {
	n := pick(r, p.Graph.Node)
	for range 10 { // constants are many and less interesting
		if n.Op != "Const" && n.Op != "PlaceholderWithDefault" {
			break
		}
		n = pick(r, p.Graph.Node)
	}
	switch kind := r.IntN(42); {
	case kind < 24:
		r.changeValue(p)
	case kind < 32:
		r.enlarge(p, n)
	case kind < 36:
		r.changeAttr(p, n)
	case kind < 37:
		n.Op = pick(r, r.g.ops)
		p.note("%s: op %s", n.Name, n.Op)
	case kind < 38:
		old, last := n.Op, pick(r, r.correct().Graph.Node)
		n.Op, n.Attr = last.Op, last.Attr
		p.note("%s: op %s for %s", n.Name, n.Op, old)
	case kind < 40:
		r.changeInput(p, n)
	case kind < 41:
		n.Device = r.text()
		p.note("%s: device %q", n.Name, n.Device)
	default:
		if r.oneIn(2) {
			n.Name = pick(r, p.Graph.Node).Name
		} else {
			p.Graph.Versions = &pb.VersionDef{Producer: int32(r.integer()), MinConsumer: int32(r.integer())}
		}
	}
}

// changeValue changes the value of a constant.
func (r *random) changeValue(p *Program) {
	var constants []*pb.NodeDef
	for _, n := range p.Graph.Node {
		if n.Op == "Const" && n.Attr["value"].GetTensor() != nil {
			constants = append(constants, n)
		}
	}
	if len(constants) == 0 {
		return
	}
	n := pick(r, constants)
	t := r.changed(n.Attr["value"].GetTensor())
	n.Attr["value"] = &pb.AttrValue{Value: &pb.AttrValue_Tensor{Tensor: t}}
	n.Attr["dtype"] = typeAttr(t.Dtype)
	for _, user := range p.Graph.Node { // the placeholder that hides it
		if user.Op == "PlaceholderWithDefault" && len(user.Input) > 0 && user.Input[0] == n.Name {
			user.Attr["dtype"] = typeAttr(t.Dtype)
		}
	}
	p.note("%s: value %v %v", n.Name, t.Dtype, t.TensorShape)
}

// enlarge puts a large tensor in place of an input.
func (r *random) enlarge(p *Program, n *pb.NodeDef) {
	if len(n.Input) == 0 {
		return
	}
	at := r.IntN(len(n.Input))
	from := p.node(n.Input[at])
	if from == nil || from.Op != "PlaceholderWithDefault" {
		return
	}
	dtype := from.Attr["dtype"].GetType()
	rank := 1 + r.IntN(4)
	if len(from.Input) == 0 {
		return
	}
	if c := p.node(from.Input[0]); c != nil && c.Attr["value"].GetTensor() != nil && r.oneIn(2) {
		rank = len(c.Attr["value"].GetTensor().GetTensorShape().GetDim())
	}
	dims := make([]int64, rank)
	left := pick(r, []int64{1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26, 1 << 28, 1 << 30})
	for i := range dims {
		dims[i] = 1 + r.Int64N(left)
		left = max(1, left/dims[i])
	}
	b := &builder{graph: p.Graph}
	shape, err := pbconv.TensorToProto(vector(dims))
	if err != nil {
		return
	}
	value := r.tensor(dtype)
	value.TensorShape = &pb.TensorShapeProto{}
	if size := int64(len(value.TensorContent)); size > 0 {
		value.TensorContent = value.TensorContent[:min(16, size)]
	}
	if len(value.StringVal) > 1 {
		value.StringVal = value.StringVal[:1]
	}
	fill := map[string]*pb.AttrValue{"T": typeAttr(dtype), "index_type": typeAttr(pb.DataType_DT_INT64)}
	dimsNode, valueNode := b.encoded(shape), b.encoded(value)
	n.Input[at] = b.add(b.name(), "Fill", fill, dimsNode, valueNode)
	p.note("%s: input %d of shape %v", n.Name, at, dims)
}

// node returns the node that an input names, or nil.
func (p *Program) node(input string) *pb.NodeDef {
	name, _, _ := strings.Cut(strings.TrimPrefix(input, "^"), ":")
	for _, n := range p.Graph.Node {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (r *random) changeInput(p *Program, n *pb.NodeDef) {
	other := pick(r, p.Graph.Node).Name
	switch kind := r.IntN(6); {
	case kind == 0 || len(n.Input) == 0:
		n.Input = append(n.Input, "^"+other)
	case kind == 1:
		n.Input = n.Input[:len(n.Input)-1]
	case kind == 2:
		n.Input = append(n.Input, n.Input[r.IntN(len(n.Input))])
	case kind == 3:
		i, j := r.IntN(len(n.Input)), r.IntN(len(n.Input))
		n.Input[i], n.Input[j] = n.Input[j], n.Input[i]
	case kind == 4:
		n.Input[r.IntN(len(n.Input))] = fmt.Sprint(other, ":", pick(r, []int64{0, 1, 2, 5, 1 << 31, -1}))
	default:
		n.Input[r.IntN(len(n.Input))] = other
	}
	p.note("%s: inputs %v", n.Name, n.Input)
}

// changeAttr gives an attribute another value, one that it does not have included.
func (r *random) changeAttr(p *Program, n *pb.NodeDef) {
	op, ok := kernel.Default.LookupOp(n.Op)
	if !ok || len(op.Attrs) == 0 {
		return
	}
	attr := pick(r, op.Attrs)
	if n.Attr == nil {
		n.Attr = map[string]*pb.AttrValue{}
	}
	if r.oneIn(12) {
		delete(n.Attr, attr.Name)
		p.note("%s: no %s", n.Name, attr.Name)
		return
	}
	kind := attr.Kind
	if r.oneIn(40) {
		kind = pick(r, []string{"string", "int", "type", "shape", "tensor", "func", "list(int)", "list(shape)"})
	}
	n.Attr[attr.Name] = r.attr(kind, attr.Strings)
	p.note("%s: %s=%.100v", n.Name, attr.Name, n.Attr[attr.Name])
}

// attr returns the value of an attribute.
func (r *random) attr(kind string, allowed []string) *pb.AttrValue {
	switch kind {
	case "string":
		if len(allowed) > 0 && !r.oneIn(3) {
			return &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(pick(r, allowed))}}
		}
		return &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(r.text())}}
	case "int":
		return &pb.AttrValue{Value: &pb.AttrValue_I{I: r.integer()}}
	case "float":
		return &pb.AttrValue{Value: &pb.AttrValue_F{F: float32(r.float())}}
	case "bool":
		return &pb.AttrValue{Value: &pb.AttrValue_B{B: r.oneIn(2)}}
	case "type":
		return typeAttr(r.dtype())
	case "shape":
		return &pb.AttrValue{Value: &pb.AttrValue_Shape{Shape: r.shape()}}
	case "tensor":
		return &pb.AttrValue{Value: &pb.AttrValue_Tensor{Tensor: r.tensor(r.dtype())}}
	case "func":
		return &pb.AttrValue{Value: &pb.AttrValue_Func{Func: &pb.NameAttrList{Name: pick(r, []string{"F", "G", "AddV2", "", "Nowhere"})}}}
	}
	list := &pb.AttrValue_ListValue{}
	n := pick(r, []int{0, 1, 1, 2, 3, 4, 5, 8, 100, 5000})
	for range n {
		switch v := r.attr(strings.TrimSuffix(strings.TrimPrefix(kind, "list("), ")"), allowed); value := v.Value.(type) {
		case *pb.AttrValue_S:
			list.S = append(list.S, value.S)
		case *pb.AttrValue_I:
			list.I = append(list.I, value.I)
		case *pb.AttrValue_F:
			list.F = append(list.F, value.F)
		case *pb.AttrValue_B:
			list.B = append(list.B, value.B)
		case *pb.AttrValue_Type:
			list.Type = append(list.Type, value.Type)
		case *pb.AttrValue_Shape:
			list.Shape = append(list.Shape, value.Shape)
		case *pb.AttrValue_Tensor:
			list.Tensor = append(list.Tensor, value.Tensor)
		case *pb.AttrValue_Func:
			list.Func = append(list.Func, value.Func)
		}
	}
	return &pb.AttrValue{Value: &pb.AttrValue_List{List: list}}
}
