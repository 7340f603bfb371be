package pbconv

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// OpFromProto returns the definition of an operation, without a shape function.
func OpFromProto(p *pb.OpDef) (*opdef.Op, error) { return newReader().op(p) }

func (r *reader) op(p *pb.OpDef) (*opdef.Op, error) {
	op := &opdef.Op{
		Name: p.GetName(), Doc: p.GetSummary(), Stateful: p.GetIsStateful(), Commutative: p.GetIsCommutative(),
		Aggregate: p.GetIsAggregate(), AllowsUninitialized: p.GetAllowsUninitializedInput(),
		Distributed: p.GetIsDistributedCommunication(), ControlOutputs: p.GetControlOutput(),
	}
	if p.GetDescription() != "" {
		op.Doc += "\n\n" + p.GetDescription()
	}
	var err error
	if op.Inputs, err = each(p.GetInputArg(), arg); err != nil {
		return nil, err
	}
	if op.Outputs, err = each(p.GetOutputArg(), arg); err != nil {
		return nil, err
	}
	op.Attrs, err = each(p.GetAttr(), r.attrDef)
	return op, err
}

func arg(p *pb.OpDef_ArgDef) (opdef.Arg, error) {
	a := opdef.Arg{
		Name: p.GetName(), Doc: p.GetDescription(), TypeAttr: p.GetTypeAttr(), NumberAttr: p.GetNumberAttr(),
		TypeListAttr: p.GetTypeListAttr(), IsRef: p.GetIsRef(),
	}
	dtype, ok := dtypeOf(p.GetType())
	if !ok {
		return a, status.InvalidArgumentf("argument '%s' has invalid DataType enum: %d", a.Name, p.GetType())
	}
	a.DType = dtype
	return a, nil
}

func (r *reader) attrDef(p *pb.OpDef_AttrDef) (opdef.Attr, error) {
	a := opdef.Attr{
		Name: p.GetName(), Doc: p.GetDescription(), Kind: p.GetType(), HasMin: p.GetHasMinimum(), Min: p.GetMinimum(),
	}
	fail := func(err error) (opdef.Attr, error) {
		return a, status.Errorf(status.CodeOf(err), "attr '%s': %w", a.Name, err)
	}
	if p.GetDefaultValue() != nil {
		v, err := r.attr(p.DefaultValue)
		if err != nil {
			return fail(err)
		}
		if _, ok := v.(opdef.AnyList); ok {
			v = opdef.EmptyList(a.Kind)
		}
		a.Default = v
	}
	allowed := p.GetAllowedValues().GetList()
	for _, t := range allowed.GetType() {
		d, err := attrType(t)
		if err != nil {
			return fail(err)
		}
		a.Types = append(a.Types, d)
	}
	for _, s := range allowed.GetS() {
		a.Strings = append(a.Strings, string(s))
	}
	return a, nil
}

// OpToProto returns the message of an operation.
func OpToProto(op *opdef.Op) (*pb.OpDef, error) {
	summary, description, _ := strings.Cut(op.Doc, "\n\n")
	p := &pb.OpDef{
		Name: op.Name, Summary: summary, Description: description, IsStateful: op.Stateful,
		IsCommutative: op.Commutative, IsAggregate: op.Aggregate, AllowsUninitializedInput: op.AllowsUninitialized,
		IsDistributedCommunication: op.Distributed, ControlOutput: op.ControlOutputs,
		InputArg: args(op.Inputs), OutputArg: args(op.Outputs),
	}
	var err error
	p.Attr, err = each(op.Attrs, attrDefToProto)
	return p, err
}

func args(as []opdef.Arg) []*pb.OpDef_ArgDef {
	out := make([]*pb.OpDef_ArgDef, len(as))
	for i, a := range as {
		out[i] = &pb.OpDef_ArgDef{
			Name: a.Name, Description: a.Doc, Type: pb.DataType(a.DType), TypeAttr: a.TypeAttr,
			NumberAttr: a.NumberAttr, TypeListAttr: a.TypeListAttr, IsRef: a.IsRef,
		}
	}
	return out
}

func attrDefToProto(a opdef.Attr) (*pb.OpDef_AttrDef, error) {
	p := &pb.OpDef_AttrDef{Name: a.Name, Description: a.Doc, Type: a.Kind, HasMinimum: a.HasMin, Minimum: a.Min}
	var err error
	if a.Default != nil {
		if p.DefaultValue, err = AttrToProto(a.Default); err != nil {
			return nil, status.Errorf(status.CodeOf(err), "attr '%s': %w", a.Name, err)
		}
	}
	switch {
	case a.Types != nil:
		p.AllowedValues, err = AttrToProto(a.Types)
	case a.Strings != nil:
		p.AllowedValues, err = AttrToProto(a.Strings)
	}
	return p, err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
