package pbconv

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// GraphFromProto returns the definition of a graph. It validates the message only. graph.Import
// checks whether the definition is a valid graph.
func GraphFromProto(p *pb.GraphDef) (*graph.Def, error) {
	r := newReader()
	def := &graph.Def{Versions: VersionsFromProto(p.GetVersions())}
	var err error
	if def.Nodes, err = each(p.GetNode(), r.node); err != nil {
		return nil, err
	}
	if def.Library, err = each(p.GetLibrary().GetFunction(), r.functionDef); err != nil {
		return nil, err
	}
	for _, g := range p.GetLibrary().GetGradient() {
		if def.Gradient == nil {
			def.Gradient = map[string]string{}
		}
		if old, ok := def.Gradient[g.GetFunctionName()]; ok && old != g.GetGradientFunc() {
			return nil, status.InvalidArgumentf("Cannot assign gradient function '%s' to '%s' because it already has "+
				"gradient function '%s'", g.GetGradientFunc(), g.GetFunctionName(), old)
		}
		def.Gradient[g.GetFunctionName()] = g.GetGradientFunc()
	}
	return def, nil
}

// VersionsFromProto returns the producer and consumer versions of a graph.
func VersionsFromProto(p *pb.VersionDef) graph.Versions {
	v := graph.Versions{Producer: int(p.GetProducer()), MinConsumer: int(p.GetMinConsumer())}
	for _, bad := range p.GetBadConsumers() {
		v.BadConsumers = append(v.BadConsumers, int(bad))
	}
	return v
}

// NodeFromProto returns the definition of a node.
func NodeFromProto(p *pb.NodeDef) (graph.NodeDef, error) { return newReader().node(p) }

func (r *reader) node(p *pb.NodeDef) (graph.NodeDef, error) {
	attrs, err := r.attrs(p.GetAttr())
	if err != nil {
		return graph.NodeDef{}, status.AtNode(err, p.GetName())
	}
	return graph.NodeDef{
		Name: p.GetName(), Op: p.GetOp(), Inputs: p.GetInput(), Device: p.GetDevice(), Attrs: attrs,
	}, nil
}

func (r *reader) functionDef(p *pb.FunctionDef) (graph.FunctionDef, error) {
	out := graph.FunctionDef{Ret: p.GetRet(), ControlRet: p.GetControlRet()}
	fail := func(err error) (graph.FunctionDef, error) {
		return out, status.Errorf(status.CodeOf(err), "function '%s': %w", p.GetSignature().GetName(), err)
	}
	op, err := r.op(p.GetSignature())
	if err != nil {
		return fail(err)
	}
	out.Signature = *op
	if out.Nodes, err = each(p.GetNodeDef(), r.node); err != nil {
		return fail(err)
	}
	if len(out.Nodes) == 0 {
		if err := r.oldNodes(p, &out); err != nil {
			return fail(err)
		}
	}
	if out.Attrs, err = r.attrs(p.GetAttr()); err != nil {
		return fail(err)
	}
	for i, a := range p.GetArgAttr() {
		attrs, err := r.attrs(a.GetAttr())
		if err != nil {
			return fail(err)
		}
		if out.ArgAttrs == nil {
			out.ArgAttrs = map[int]opdef.Attrs{}
		}
		out.ArgAttrs[int(i)] = attrs
	}
	return out, nil
}

// GraphToProto returns the message of a graph. It shares the element memory of tensors.
func GraphToProto(def *graph.Def) (*pb.GraphDef, error) {
	p := &pb.GraphDef{Versions: VersionsToProto(def.Versions)}
	var err error
	if p.Node, err = each(def.Nodes, NodeToProto); err != nil {
		return nil, err
	}
	if len(def.Library)+len(def.Gradient) == 0 {
		return p, nil
	}
	p.Library = &pb.FunctionDefLibrary{}
	if p.Library.Function, err = each(def.Library, FunctionToProto); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(def.Gradient) {
		p.Library.Gradient = append(p.Library.Gradient, &pb.GradientDef{FunctionName: name, GradientFunc: def.Gradient[name]})
	}
	return p, nil
}

// VersionsToProto returns the message of versions.
func VersionsToProto(v graph.Versions) *pb.VersionDef {
	p := &pb.VersionDef{Producer: int32(v.Producer), MinConsumer: int32(v.MinConsumer)}
	for _, bad := range v.BadConsumers {
		p.BadConsumers = append(p.BadConsumers, int32(bad))
	}
	return p
}

// NodeToProto returns the message of a node.
func NodeToProto(n graph.NodeDef) (*pb.NodeDef, error) {
	attrs, err := AttrsToProto(n.Attrs)
	if err != nil {
		return nil, status.AtNode(err, n.Name)
	}
	return &pb.NodeDef{Name: n.Name, Op: n.Op, Input: n.Inputs, Device: n.Device, Attr: attrs}, nil
}

// FunctionToProto returns the message of a library function.
func FunctionToProto(f graph.FunctionDef) (*pb.FunctionDef, error) {
	p := &pb.FunctionDef{Ret: f.Ret, ControlRet: f.ControlRet}
	fail := func(err error) (*pb.FunctionDef, error) {
		return nil, status.Errorf(status.CodeOf(err), "function '%s': %w", f.Signature.Name, err)
	}
	var err error
	if p.Signature, err = OpToProto(&f.Signature); err != nil {
		return fail(err)
	}
	if f.OldOutputs != nil {
		err = setOldNodes(p, f)
	} else {
		p.NodeDef, err = each(f.Nodes, NodeToProto)
	}
	if err != nil {
		return fail(err)
	}
	if p.Attr, err = AttrsToProto(f.Attrs); err != nil {
		return fail(err)
	}
	for i, a := range f.ArgAttrs {
		attrs, err := AttrsToProto(a)
		if err != nil {
			return fail(err)
		}
		if p.ArgAttr == nil {
			p.ArgAttr = map[uint32]*pb.FunctionDef_ArgAttrs{}
		}
		p.ArgAttr[uint32(i)] = &pb.FunctionDef_ArgAttrs{Attr: attrs}
	}
	return p, nil
}
