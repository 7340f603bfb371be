package opdef

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Attrs are the attributes of a node by name. The Go types of the values are, by kind:
//
//	string  string                 list(string)  []string
//	int     int64                  list(int)     []int64
//	float   float32                list(float)   []float32
//	bool    bool                   list(bool)    []bool
//	type    tensor.DType           list(type)    []tensor.DType
//	shape   tensor.PartialShape    list(shape)   []tensor.PartialShape
//	tensor  tensor.Tensor          list(tensor)  []tensor.Tensor
//	func    Func                   list(func)    []Func
//
// and [Placeholder] for any of them inside a function body. Values in a graph are never modified.
// After [Op.CheckAttrs] every attribute of the operation is present with its type. Typed accessors
// therefore return no error: they return the zero value if the attribute is absent.
type Attrs map[string]any

// Functions returns the names of the functions in the attributes, and in the attributes of these
// functions.
func (a Attrs) Functions() iter.Seq[string] {
	return func(yield func(string) bool) { a.functions(yield) }
}

func (a Attrs) functions(yield func(string) bool) bool {
	for _, v := range a {
		fs, _ := v.([]Func)
		if f, ok := v.(Func); ok {
			fs = []Func{f}
		}
		for _, f := range fs {
			if !yield(f.Name) || !f.Attrs.functions(yield) {
				return false
			}
		}
	}
	return true
}

// String returns an attribute of kind string.
func (a Attrs) String(name string) string { v, _ := a[name].(string); return v }

// Int returns an attribute of kind int.
func (a Attrs) Int(name string) int { v, _ := a[name].(int64); return int(v) }

// Float returns an attribute of kind float.
func (a Attrs) Float(name string) float32 { v, _ := a[name].(float32); return v }

// Bool returns an attribute of kind bool.
func (a Attrs) Bool(name string) bool { v, _ := a[name].(bool); return v }

// Type returns an attribute of kind type.
func (a Attrs) Type(name string) tensor.DType { v, _ := a[name].(tensor.DType); return v }

// Shape returns an attribute of kind shape; an unknown shape if it is absent.
func (a Attrs) Shape(name string) tensor.PartialShape {
	v, _ := a[name].(tensor.PartialShape)
	return v
}

// Tensor returns an attribute of kind tensor, or nil.
func (a Attrs) Tensor(name string) *tensor.Tensor {
	if v, ok := a[name].(tensor.Tensor); ok {
		return &v
	}
	return nil
}

// Func returns an attribute of kind func.
func (a Attrs) Func(name string) Func { v, _ := a[name].(Func); return v }

// Strings returns an attribute of kind list(string).
func (a Attrs) Strings(name string) []string { v, _ := a[name].([]string); return v }

// Ints returns an attribute of kind list(int).
func (a Attrs) Ints(name string) []int64 { v, _ := a[name].([]int64); return v }

// Floats returns an attribute of kind list(float).
func (a Attrs) Floats(name string) []float32 { v, _ := a[name].([]float32); return v }

// Bools returns an attribute of kind list(bool).
func (a Attrs) Bools(name string) []bool { v, _ := a[name].([]bool); return v }

// Types returns an attribute of kind list(type).
func (a Attrs) Types(name string) []tensor.DType { v, _ := a[name].([]tensor.DType); return v }

// Shapes returns an attribute of kind list(shape).
func (a Attrs) Shapes(name string) []tensor.PartialShape {
	v, _ := a[name].([]tensor.PartialShape)
	return v
}

// Funcs returns an attribute of kind list(func).
func (a Attrs) Funcs(name string) []Func { v, _ := a[name].([]Func); return v }

// Clone returns a copy of the map. The values are shared.
func (a Attrs) Clone() Attrs { return maps.Clone(a) }

// EmptyList returns an empty list of the given kind, such as "list(int)"; nil if the kind is not a
// list.
func EmptyList(kind string) any {
	switch kind {
	case "list(string)":
		return []string{}
	case "list(int)":
		return []int64{}
	case "list(float)":
		return []float32{}
	case "list(bool)":
		return []bool{}
	case "list(type)":
		return []tensor.DType{}
	case "list(shape)":
		return []tensor.PartialShape{}
	case "list(tensor)":
		return []tensor.Tensor{}
	case "list(func)":
		return []Func{}
	}
	return nil
}

// AnyList is an empty list of unknown kind. Messages do not record the kind of an empty list.
// [Op.CheckAttrs] replaces it by an empty list of the right type.
type AnyList struct{}

// KindOf returns the kind of an attribute value, such as "int" or "list(type)"; "" if v is not an
// attribute value. The kind of a [Placeholder] is "placeholder", that of [AnyList] "list(any)".
func KindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case int64:
		return "int"
	case float32:
		return "float"
	case bool:
		return "bool"
	case tensor.DType:
		return "type"
	case tensor.PartialShape:
		return "shape"
	case tensor.Tensor:
		return "tensor"
	case Func:
		return "func"
	case []string:
		return "list(string)"
	case []int64:
		return "list(int)"
	case []float32:
		return "list(float)"
	case []bool:
		return "list(bool)"
	case []tensor.DType:
		return "list(type)"
	case []tensor.PartialShape:
		return "list(shape)"
	case []tensor.Tensor:
		return "list(tensor)"
	case []Func:
		return "list(func)"
	case Placeholder:
		return "placeholder"
	case AnyList:
		return "list(any)"
	}
	return ""
}

// CheckAttrs checks the attributes of a node and returns them with the defaults of the operation
// added. The result may be attrs itself. It fails with InvalidArgument if an attribute is missing,
// of the wrong kind, or has a value that is not allowed. As in TensorFlow, attributes that the
// operation does not have are not checked. The runtime uses those whose names begin with "_", and
// newer clients may set others. node is the name of the node, for errors.
func (o *Op) CheckAttrs(node string, attrs Attrs) (Attrs, error) {
	out, copied := attrs, false
	set := func(name string, v any) {
		if !copied {
			out, copied = make(Attrs, len(attrs)+len(o.Attrs)), true
			maps.Copy(out, attrs)
		}
		out[name] = v
	}
	var missing []string
	for i := range o.Attrs {
		a := &o.Attrs[i]
		v, given := attrs[a.Name]
		switch {
		case given:
		case a.Default == nil:
			missing = append(missing, a.Name)
			continue
		default:
			set(a.Name, a.Default)
			continue
		}
		if kind := KindOf(v); kind != a.Kind && listLen(v) == 0 && strings.HasPrefix(kind, "list(") && EmptyList(a.Kind) != nil {
			v = EmptyList(a.Kind)
			set(a.Name, v)
		}
		if err := a.Check(v); err != nil {
			return nil, status.InvalidArgumentf("%w\n\t; NodeDef: {{node %s}}; %v", err, node, o)
		}
	}
	if missing != nil {
		plural := ""
		if len(missing) > 1 {
			plural = "s"
		}
		return nil, status.InvalidArgumentf("NodeDef missing attr%s '%s' from %v; NodeDef: {{node %s}}", plural,
			strings.Join(missing, "', '"), o, node)
	}
	if out == nil {
		out = Attrs{}
	}
	return out, nil
}

// Check returns an InvalidArgument error if v is not a value of the attribute.
func (a *Attr) Check(v any) error {
	kind := KindOf(v)
	switch {
	case kind == "placeholder":
		return nil
	case kind == "list(any)" && EmptyList(a.Kind) == nil:
		return status.InvalidArgumentf("AttrValue missing value with expected type '%s'\n\t for attr '%s'", a.Kind, a.Name)
	case kind != a.Kind:
		return status.InvalidArgumentf("AttrValue had value with type '%s' when '%s' expected\n\t for attr '%s'",
			kind, a.Kind, a.Name)
	}
	if err := a.checkTypes(v); err != nil {
		return err
	}
	if err := a.checkStrings(v); err != nil {
		return err
	}
	return a.checkMin(v)
}

func (a *Attr) checkTypes(v any) error {
	var types []tensor.DType
	switch v := v.(type) {
	case tensor.DType:
		types = []tensor.DType{v}
	case []tensor.DType:
		types = v
	}
	for _, t := range types {
		switch {
		case t.IsRef() && t.Base().Valid():
			return status.InvalidArgumentf("AttrValue must not have reference type value of %v\n\t for attr '%s'", t, a.Name)
		case t == tensor.Invalid:
			return status.InvalidArgumentf("AttrValue has invalid DataType\n\t for attr '%s'", a.Name)
		case !t.Valid():
			return status.InvalidArgumentf("AttrValue has invalid DataType enum: %d\n\t for attr '%s'", t, a.Name)
		case a.Types != nil && !slices.Contains(a.Types, t):
			return status.InvalidArgumentf("Value for attr '%s' of %v is not in the list of allowed values: %s",
				a.Name, t, JoinTypes(a.Types))
		}
	}
	return nil
}

func (a *Attr) checkStrings(v any) error {
	if a.Strings == nil {
		return nil
	}
	vals, _ := v.([]string)
	if s, ok := v.(string); ok {
		vals = []string{s}
	}
	for _, s := range vals {
		if !slices.Contains(a.Strings, s) {
			return status.InvalidArgumentf("Value for attr '%s' of \"%s\" is not in the list of allowed values: \"%s\"",
				a.Name, s, strings.Join(a.Strings, "\", \""))
		}
	}
	return nil
}

func (a *Attr) checkMin(v any) error {
	if !a.HasMin {
		return nil
	}
	if n, ok := v.(int64); ok {
		if n < a.Min {
			return status.InvalidArgumentf("Value for attr '%s' of %d must be at least minimum %d", a.Name, n, a.Min)
		}
		return nil
	}
	if n := listLen(v); int64(n) < a.Min {
		return status.InvalidArgumentf("Length for attr '%s' of %d must be at least minimum %d", a.Name, n, a.Min)
	}
	return nil
}

func listLen(v any) int {
	switch v := v.(type) {
	case []string:
		return len(v)
	case []int64:
		return len(v)
	case []float32:
		return len(v)
	case []bool:
		return len(v)
	case []tensor.DType:
		return len(v)
	case []tensor.PartialShape:
		return len(v)
	case []tensor.Tensor:
		return len(v)
	case []Func:
		return len(v)
	}
	return 0
}

// JoinTypes formats a list of types as in TensorFlow's errors: "float, int32".
func JoinTypes(types []tensor.DType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}
