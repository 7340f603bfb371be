package opdef

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// Parse checks the definition and returns it in parsed form. Errors are mistakes in source code.
func (d *Def) Parse() (*Op, error) {
	op := &Op{
		Name: d.Name, Doc: d.Doc, Shape: d.Shape, Stateful: d.Stateful, Commutative: d.Commutative,
		Aggregate: d.Aggregate, AllowsUninitialized: d.AllowsUninitialized, Distributed: d.Distributed,
	}
	for _, s := range d.Attrs {
		a, err := parseAttr(s)
		if err == nil && op.Attr(a.Name) != nil {
			err = fmt.Errorf("the name is used twice")
		}
		if err != nil {
			return nil, fmt.Errorf("op %s, attr %q: %w", d.Name, s, err)
		}
		op.Attrs = append(op.Attrs, a)
	}
	names := map[string]bool{}
	var err error
	if op.Inputs, err = op.parseArgs(d.In, names); err != nil {
		return nil, fmt.Errorf("op %s, input %w", d.Name, err)
	}
	if op.Outputs, err = op.parseArgs(d.Out, names); err != nil {
		return nil, fmt.Errorf("op %s, output %w", d.Name, err)
	}
	return op, nil
}

// parseArgs reads arguments whose names are not among those that are used already.
func (o *Op) parseArgs(args []string, names map[string]bool) ([]Arg, error) {
	var out []Arg
	for _, s := range args {
		a, err := o.parseArg(s)
		if err == nil && names[a.Name] {
			err = fmt.Errorf("the name is used twice")
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		names[a.Name] = true
		out = append(out, a)
	}
	return out, nil
}

var argForm = regexp.MustCompile(`^(\w+): (Ref\()?(?:(\w+) \* )?(\w+)(\))?$`)

func (o *Op) parseArg(s string) (Arg, error) {
	m := argForm.FindStringSubmatch(s)
	if m == nil || (m[2] == "") != (m[5] == "") {
		return Arg{}, fmt.Errorf("is not of the form 'name: [N *] type'")
	}
	arg := Arg{Name: m[1], NumberAttr: m[3], IsRef: m[2] != ""}
	if arg.NumberAttr != "" {
		if a := o.Attr(arg.NumberAttr); a == nil || a.Kind != "int" {
			return Arg{}, fmt.Errorf("no int attr %s", arg.NumberAttr)
		}
	}
	if a := o.Attr(m[4]); a != nil {
		switch a.Kind {
		case "type":
			arg.TypeAttr = m[4]
		case "list(type)":
			arg.TypeListAttr = m[4]
		default:
			return Arg{}, fmt.Errorf("attr %s is no type", m[4])
		}
		return arg, nil
	}
	dtype, ok := tensor.ParseDType(m[4])
	if !ok {
		return Arg{}, fmt.Errorf("unknown type %s", m[4])
	}
	arg.DType = dtype
	return arg, nil
}

var attrForm = regexp.MustCompile(`(?s)^(\w+): *(\w+|\{[^}]*\}|list\((?:\w+|\{[^}]*\})\))(?: *>= *(-?\d+))?(?: *= *(.*))?$`)

func parseAttr(s string) (Attr, error) {
	m := attrForm.FindStringSubmatch(s)
	if m == nil {
		return Attr{}, fmt.Errorf("is not of the form 'name: kind [>= min] [= default]'")
	}
	a := Attr{Name: m[1]}
	kind, isList := m[2], false
	if rest, ok := strings.CutPrefix(kind, "list("); ok {
		kind, isList = strings.TrimSuffix(rest, ")"), true
	}
	if err := a.parseKind(kind); err != nil {
		return Attr{}, err
	}
	if isList {
		a.Kind = "list(" + a.Kind + ")"
	}
	if m[3] != "" {
		v, err := strconv.ParseInt(m[3], 10, 64)
		if err != nil {
			return Attr{}, err
		}
		a.HasMin, a.Min = true, v
	}
	if strings.Contains(s, "=") && m[4] != "" {
		v, err := ParseValue(a.Kind, m[4])
		if err != nil {
			return Attr{}, fmt.Errorf("default: %w", err)
		}
		if err := a.Check(v); err != nil {
			return Attr{}, fmt.Errorf("default: %w", err)
		}
		a.Default = v
	}
	return a, nil
}

// typeSets are the names for sets of types that TensorFlow's registration language has.
var typeSets = map[string][]tensor.DType{
	"numbertype": {
		tensor.Float32, tensor.Float64, tensor.Int32, tensor.Uint8, tensor.Int16, tensor.Int8, tensor.Complex64,
		tensor.Int64, tensor.QInt8, tensor.QUint8, tensor.QInt32, tensor.BFloat16, tensor.QInt16, tensor.QUint16,
		tensor.Uint16, tensor.Complex128, tensor.Float16, tensor.Uint32, tensor.Uint64,
	},
	"realnumbertype": {
		tensor.Float32, tensor.Float64, tensor.Int32, tensor.Uint8, tensor.Int16, tensor.Int8, tensor.Int64,
		tensor.BFloat16, tensor.Uint16, tensor.Float16, tensor.Uint32, tensor.Uint64,
	},
	"quantizedtype": {tensor.QInt8, tensor.QUint8, tensor.QInt32, tensor.QInt16, tensor.QUint16},
}

func (a *Attr) parseKind(kind string) error {
	switch kind {
	case "string", "int", "float", "bool", "type", "shape", "tensor", "func":
		a.Kind = kind
		return nil
	}
	if set, ok := typeSets[kind]; ok {
		a.Kind, a.Types = "type", set
		return nil
	}
	body, ok := strings.CutPrefix(kind, "{")
	if !ok {
		return fmt.Errorf("unknown kind %s", kind)
	}
	body = strings.TrimSuffix(body, "}")
	if strings.ContainsAny(body, `'"`) {
		v, err := ParseValue("list(string)", "["+body+"]")
		a.Kind = "string"
		a.Strings, _ = v.([]string)
		return err
	}
	a.Kind = "type"
	for v := range strings.SplitSeq(body, ",") {
		v = strings.TrimSpace(v)
		if set, ok := typeSets[v]; ok {
			a.Types = append(a.Types, set...)
			continue
		}
		dtype, known := tensor.ParseDType(v)
		if !known {
			return fmt.Errorf("unknown type %s", v)
		}
		a.Types = append(a.Types, dtype)
	}
	return nil
}
