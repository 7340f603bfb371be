package data

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// body is the graph of a function's body, for its fingerprint.
type body struct {
	*hasher
	f        *pb.FunctionDef
	nodes    []*pb.NodeDef
	rets     []*pb.NodeDef
	controls []*pb.NodeDef

	defs  map[string]*opdef.Op // operation of each node, by its name
	attrs map[string]opdef.Attrs
}

func number64(v int64) *pb.AttrValue { return &pb.AttrValue{Value: &pb.AttrValue_I{I: v}} }

func (b *body) build() error {
	sig := b.f.GetSignature()
	for i, arg := range sig.GetInputArg() {
		b.nodes = append(b.nodes, &pb.NodeDef{Name: arg.GetName(), Op: "_Arg", Attr: map[string]*pb.AttrValue{
			"T": {Value: &pb.AttrValue_Type{Type: arg.GetType()}}, "index": number64(int64(i)),
		}})
	}
	args := len(b.nodes)
	b.defs, b.attrs = map[string]*opdef.Op{}, map[string]opdef.Attrs{}
	for _, n := range b.f.GetNodeDef() {
		n = proto.Clone(n).(*pb.NodeDef) //nolint:forcetypeassert // a clone has the type of its original
		if err := b.complete(n); err != nil {
			return err
		}
		b.nodes = append(b.nodes, n)
	}
	for _, n := range b.nodes[args:] {
		for i, input := range n.GetInput() {
			var err error
			if n.Input[i], err = b.input(input); err != nil {
				return err
			}
		}
	}
	for i, ret := range sig.GetOutputArg() {
		input, err := b.input(b.f.GetRet()[ret.GetName()])
		if err != nil {
			return err
		}
		n := &pb.NodeDef{Name: fmt.Sprintf("%s_RetVal_%d", ret.GetName(), i), Op: "_Retval", Input: []string{input}, Attr: map[string]*pb.AttrValue{
			"T": {Value: &pb.AttrValue_Type{Type: ret.GetType()}}, "index": number64(int64(i)),
		}}
		b.nodes, b.rets = append(b.nodes, n), append(b.rets, n)
	}
	for _, name := range sig.GetControlOutput() {
		for _, n := range b.nodes {
			if n.GetName() == b.f.GetControlRet()[name] {
				//sizedmake:ok part of a graph
				b.controls = append(b.controls, n)
			}
		}
	}
	return nil
}

// complete adds the default values of attributes that a node omits.
func (b *body) complete(n *pb.NodeDef) error {
	def, _, err := b.operation(n.GetOp(), false)
	if err != nil {
		return err
	}
	attrs, err := pbconv.AttrsFromProto(n.GetAttr())
	if err != nil {
		return err
	}
	if n.Attr == nil {
		n.Attr = map[string]*pb.AttrValue{}
	}
	if v, ok := attrs["value"].(tensor.Tensor); ok {
		if p, ok := foldedConstant(&v); ok {
			n.Attr["value"] = &pb.AttrValue{Value: &pb.AttrValue_Tensor{Tensor: p}}
		}
	}
	for i := range def.Attrs {
		a := &def.Attrs[i]
		if n.Attr[a.Name] != nil || a.Default == nil {
			continue
		}
		if n.Attr[a.Name], err = pbconv.AttrToProto(a.Default); err != nil {
			return err
		}
		if attrs == nil {
			attrs = opdef.Attrs{}
		}
		attrs[a.Name] = a.Default
	}
	b.defs[n.GetName()], b.attrs[n.GetName()] = def, attrs
	return nil
}

// input converts an input of a function's node to the syntax of graphs: "node", "node:1" or
// "^node".
func (b *body) input(s string) (string, error) {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || strings.HasPrefix(s, "^") {
		return s, nil
	}
	def := b.defs[parts[0]]
	if def == nil {
		return "", status.InvalidArgumentf("function '%s' has no node %s", b.f.GetSignature().GetName(), parts[0])
	}
	lo, _, err := opdef.ArgRange(def.Outputs, b.attrs[parts[0]], parts[1])
	if err != nil {
		return "", err
	}
	if len(parts) == 3 {
		i, err := strconv.Atoi(parts[2])
		if err != nil {
			return "", status.InvalidArgumentf("invalid input %s of a function's node", s)
		}
		lo += i
	}
	if lo == 0 {
		return parts[0], nil
	}
	return parts[0] + ":" + strconv.Itoa(lo), nil
}
