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
		if err != nil {
			return nil, fmt.Errorf("op %s, attr %q: %w", d.Name, s, err)
		}
		op.Attrs = append(op.Attrs, a)
	}
	for _, s := range d.In {
		a, err := op.parseArg(s)
		if err != nil {
			return nil, fmt.Errorf("op %s, input %q: %w", d.Name, s, err)
		}
		op.Inputs = append(op.Inputs, a)
	}
	for _, s := range d.Out {
		a, err := op.parseArg(s)
		if err != nil {
			return nil, fmt.Errorf("op %s, output %q: %w", d.Name, s, err)
		}
		op.Outputs = append(op.Outputs, a)
	}
	return op, nil
}

var argForm = regexp.MustCompile(`^(\w+): (?:(\w+) \* )?(Ref\()?(\w+)(\))?$`)

func (o *Op) parseArg(s string) (Arg, error) {
	m := argForm.FindStringSubmatch(s)
	if m == nil || (m[3] == "") != (m[5] == "") {
		return Arg{}, fmt.Errorf("is not of the form 'name: [N *] type'")
	}
	arg := Arg{Name: m[1], NumberAttr: m[2], IsRef: m[3] != ""}
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

var attrForm = regexp.MustCompile(`^(\w+): *(\w+|\{[^}]*\}|list\((?:\w+|\{[^}]*\})\))(?: *>= *(-?\d+))?(?: *= *(.*))?$`)

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
	for _, v := range strings.Split(strings.TrimSuffix(body, "}"), ",") {
		v = strings.TrimSpace(v)
		if s, quoted := unquote(v); quoted {
			a.Kind, a.Strings = "string", append(a.Strings, s)
			continue
		}
		set, ok := typeSets[v]
		if !ok {
			dtype, known := tensor.ParseDType(v)
			if !known {
				return fmt.Errorf("unknown type %s", v)
			}
			set = []tensor.DType{dtype}
		}
		a.Kind, a.Types = "type", append(a.Types, set...)
	}
	return nil
}

func unquote(s string) (string, bool) {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1], true
	}
	return "", false
}

// ParseValue reads an attribute value of the given kind as definitions write defaults: 'text' in quotes, 3, 0.5, true,
// float, [2,-1], [1,2,3].
func ParseValue(kind, s string) (any, error) {
	s = strings.TrimSpace(s)
	if elem, ok := strings.CutPrefix(kind, "list("); ok {
		return parseList(strings.TrimSuffix(elem, ")"), s)
	}
	switch kind {
	case "string":
		v, ok := unquote(s)
		if !ok {
			return nil, fmt.Errorf("%s is not in quotes", s)
		}
		return v, nil
	case "int":
		return strconv.ParseInt(s, 10, 64)
	case "float":
		v, err := strconv.ParseFloat(s, 32)
		return float32(v), err
	case "bool":
		return strconv.ParseBool(s)
	case "type":
		if v, ok := tensor.ParseDType(s); ok {
			return v, nil
		}
		return nil, fmt.Errorf("unknown type %s", s)
	case "shape":
		return parseShape(s)
	case "func":
		v, ok := unquote(s)
		if !ok {
			v = s
		}
		return Func{Name: v}, nil
	}
	return nil, fmt.Errorf("a %s has no default in this language", kind)
}

func parseShape(s string) (tensor.PartialShape, error) {
	if s == "<unknown>" {
		return tensor.PartialShape{}, nil
	}
	dims, err := parseList("int", s)
	if err != nil {
		return tensor.PartialShape{}, err
	}
	return tensor.MakePartial(dims.([]int64)...), nil
}

func parseList(kind, s string) (any, error) {
	if !strings.HasPrefix(s, "[") || !strings.HasSuffix(s, "]") {
		return nil, fmt.Errorf("%s is not a list in brackets", s)
	}
	s = strings.TrimSpace(s[1 : len(s)-1])
	var parts []string
	if s != "" {
		parts = strings.Split(s, ",")
	}
	switch kind {
	case "string":
		return parseEach[string](kind, parts)
	case "int":
		return parseEach[int64](kind, parts)
	case "float":
		return parseEach[float32](kind, parts)
	case "bool":
		return parseEach[bool](kind, parts)
	case "type":
		return parseEach[tensor.DType](kind, parts)
	}
	if len(parts) == 0 {
		return EmptyList("list(" + kind + ")"), nil
	}
	return nil, fmt.Errorf("a list of %s has no default in this language", kind)
}

func parseEach[T any](kind string, parts []string) (any, error) {
	out := make([]T, len(parts))
	for i, p := range parts {
		v, err := ParseValue(kind, p)
		if err != nil {
			return nil, err
		}
		out[i] = v.(T)
	}
	return out, nil
}
