package opdef

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// String returns the signature, attributes and flags of the operation in the format of TensorFlow's
// errors.
func (o *Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Op<name=%s; signature=%s -> %s", o.Name, formatArgs(o.Inputs), formatArgs(o.Outputs))
	for i := range o.Attrs {
		o.Attrs[i].format(&b)
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"is_commutative", o.Commutative}, {"is_aggregate", o.Aggregate}, {"is_stateful", o.Stateful},
		{"allows_uninitialized_input", o.AllowsUninitialized}, {"is_distributed_communication", o.Distributed},
	} {
		if flag.set {
			b.WriteString("; " + flag.name + "=true")
		}
	}
	b.WriteByte('>')
	return b.String()
}

func formatArgs(args []Arg) string {
	parts := make([]string, len(args))
	for i := range args {
		parts[i] = args[i].String()
	}
	return strings.Join(parts, ", ")
}

// String returns the argument as "name:type", as in TensorFlow's signatures.
func (a *Arg) String() string {
	typ := a.TypeAttr + a.TypeListAttr
	if a.DType != tensor.Invalid {
		typ = a.DType.String()
	}
	if a.NumberAttr != "" {
		typ = a.NumberAttr + "*" + typ
	}
	if a.IsRef {
		typ = "Ref(" + typ + ")"
	}
	return a.Name + ":" + typ
}

func (a *Attr) format(b *strings.Builder) {
	fmt.Fprintf(b, "; attr=%s:%s", a.Name, a.Kind)
	if a.Default != nil {
		b.WriteString(",default=" + FormatAttr(a.Default))
	}
	if a.HasMin {
		fmt.Fprintf(b, ",min=%d", a.Min)
	}
	switch {
	case a.Types != nil:
		b.WriteString(",allowed=" + FormatAttr(a.Types))
	case a.Strings != nil:
		b.WriteString(",allowed=" + FormatAttr(a.Strings))
	}
}

// Format returns the attributes, sorted by name, in the format of TensorFlow's summaries of nodes.
func (a Attrs) Format() string {
	parts := make([]string, 0, len(a))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		parts = append(parts, name+"="+FormatAttr(a[name]))
	}
	return strings.Join(parts, ", ")
}

// FormatAttr returns an attribute value in the format of TensorFlow's summaries of nodes, which
// abbreviates long values.
func FormatAttr(v any) string {
	switch v := v.(type) {
	case string:
		return formatString(v)
	case float32:
		return tensor.FormatFloat(float64(v), 32)
	case tensor.DType:
		return v.Enum()
	case tensor.Tensor:
		return v.String()
	case Func:
		return v.Name + "[" + v.Attrs.Format() + "]"
	case Placeholder:
		return "$" + string(v)
	case []string:
		return formatList(v)
	case []int64:
		return formatList(v)
	case []float32:
		return formatList(v)
	case []bool:
		return formatList(v)
	case []tensor.DType:
		return formatList(v)
	case []tensor.PartialShape:
		return formatList(v)
	case []tensor.Tensor:
		return formatList(v)
	case []Func:
		return formatList(v)
	case AnyList:
		return "[]"
	default:
		return fmt.Sprint(v)
	}
}

// formatString quotes a string. Of a string of 80 bytes or more it keeps 10 at each end.
func formatString(s string) string {
	if len(s) > 80 { // each byte is escaped by itself, to four bytes at most
		s = s[:40] + s[len(s)-40:]
	}
	s = tensor.Escape(s, false)
	if len(s) >= 80 {
		s = s[:10] + "..." + s[len(s)-10:]
	}
	return `"` + s + `"`
}

// formatList formats a list. Of a list of 30 elements or more it keeps 5 at each end.
func formatList[T any](vals []T) string {
	parts := make([]string, 0, min(len(vals), 30))
	for i, v := range vals {
		if len(vals) >= 30 && i >= 5 && i < len(vals)-5 {
			if i == 5 {
				parts = append(parts, "...")
			}
			continue
		}
		parts = append(parts, FormatAttr(v))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
