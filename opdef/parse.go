package opdef

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// Parse checks the definition and returns it in parsed form. Its errors are programming errors in
// the definition.
func (d *Def) Parse() (*Op, error) {
	op := &Op{
		Name: d.Name, Doc: d.Doc, Shape: d.Shape, Stateful: d.Stateful, Commutative: d.Commutative,
		Aggregate: d.Aggregate, AllowsUninitialized: d.AllowsUninitialized, Distributed: d.Distributed, Class: d.class(),
	}
	for _, s := range d.Attrs {
		a, err := parseAttr(s)
		if err == nil && op.Attr(a.Name) != nil {
			err = fmt.Errorf("duplicate name")
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

// parseArgs parses arguments and adds their names to names. A name that names contains already is
// an error.
func (o *Op) parseArgs(args []string, names map[string]bool) ([]Arg, error) {
	var out []Arg
	for _, s := range args {
		a, err := o.parseArg(s)
		if err == nil && names[a.Name] {
			err = fmt.Errorf("duplicate name")
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		names[a.Name] = true
		out = append(out, a)
	}
	return out, nil
}

func (o *Op) parseArg(s string) (Arg, error) {
	name, typ, ok := strings.Cut(s, ": ")
	typ, isRef := strings.CutPrefix(typ, "Ref(")
	if isRef && ok {
		typ, ok = strings.CutSuffix(typ, ")")
	}
	number, elem, isList := strings.Cut(typ, " * ")
	if !isList {
		number, elem = "", typ
	}
	if !ok || !isWord(name) || !isWord(elem) || isList && !isWord(number) {
		return Arg{}, fmt.Errorf("is not of the form 'name: [N *] type'")
	}
	arg := Arg{Name: name, NumberAttr: number, IsRef: isRef}
	if arg.NumberAttr != "" {
		if a := o.Attr(arg.NumberAttr); a == nil || a.Kind != "int" {
			return Arg{}, fmt.Errorf("no int attr %s", arg.NumberAttr)
		}
	}
	if a := o.Attr(elem); a != nil {
		switch a.Kind {
		case "type":
			arg.TypeAttr = elem
		case "list(type)":
			arg.TypeListAttr = elem
		default:
			return Arg{}, fmt.Errorf("attr %s is not of kind type or list(type)", elem)
		}
		return arg, nil
	}
	dtype, ok := tensor.ParseDType(elem)
	if !ok {
		return Arg{}, fmt.Errorf("unknown type %s", elem)
	}
	arg.DType = dtype
	return arg, nil
}

// isWord reports whether s is a word: letters, digits and underscores.
func isWord(s string) bool { return s != "" && wordLen(s) == len(s) }

// wordLen returns the length of the word at the start of s.
func wordLen(s string) int {
	for i, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return i
		}
	}
	return len(s)
}

var errAttrForm = errors.New("is not of the form 'name: kind [>= min] [= default]'")

// cutKind splits s after the kind of an attribute at its start: a word, a set in braces, or a list
// of one of these.
func cutKind(s string) (kind, rest string, isList, ok bool) {
	s, isList = strings.CutPrefix(s, "list(")
	n := wordLen(s)
	if strings.HasPrefix(s, "{") {
		n = strings.IndexByte(s, '}') + 1
	}
	kind, rest = s[:n], s[n:]
	if isList {
		rest, ok = strings.CutPrefix(rest, ")")
		return kind, rest, true, ok && n > 0
	}
	return kind, rest, false, n > 0
}

func parseAttr(s string) (Attr, error) {
	name, rest, ok := strings.Cut(s, ":")
	if !ok || !isWord(name) {
		return Attr{}, errAttrForm
	}
	kind, rest, isList, ok := cutKind(strings.TrimLeft(rest, " "))
	if !ok {
		return Attr{}, errAttrForm
	}
	a := Attr{Name: name}
	if err := a.parseKind(kind); err != nil {
		return Attr{}, err
	}
	if isList {
		a.Kind = "list(" + a.Kind + ")"
	}
	if least, ok := strings.CutPrefix(strings.TrimLeft(rest, " "), ">="); ok {
		least = strings.TrimLeft(least, " ")
		rest = strings.TrimLeft(least, "-0123456789")
		v, err := strconv.ParseInt(strings.TrimSuffix(least, rest), 10, 64)
		if err != nil {
			return Attr{}, err
		}
		a.HasMin, a.Min = true, v
	}
	if rest == "" {
		return a, nil
	}
	text, ok := strings.CutPrefix(strings.TrimLeft(rest, " "), "=")
	if !ok {
		return Attr{}, errAttrForm
	}
	v, err := ParseValue(a.Kind, strings.TrimLeft(text, " "))
	if err == nil {
		err = a.Check(v)
	}
	if err != nil {
		return Attr{}, fmt.Errorf("default: %w", err)
	}
	a.Default = v
	return a, nil
}

// typeSets are the named sets of types of TensorFlow's registration language.
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

// ParseTypes returns the element types in a set in the language of definitions: the name of a set,
// or types in braces.
func ParseTypes(set string) ([]tensor.DType, error) {
	var a Attr
	if err := a.parseKind(set); err != nil {
		return nil, err
	}
	if a.Kind != "type" || a.Types == nil {
		return nil, fmt.Errorf("%s is not a set of types", set)
	}
	return a.Types, nil
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
