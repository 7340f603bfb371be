package graphtext

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
)

// function reads the lines of a function. signature is the first line without "func ", and the last
// line is "}".
func (p *parser) function(signature string, lines []string) error {
	def, err := parseSignature(strings.TrimSuffix(strings.TrimSpace(signature), "{"))
	if err != nil {
		return err
	}
	op, err := def.Parse()
	if err != nil {
		return err
	}
	fn := graph.FunctionDef{Signature: *op, Ret: map[string]string{}}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if results, ok := strings.CutPrefix(line, "return"); ok {
			if err := setResults(&fn, results); err != nil {
				return err
			}
			continue
		}
		s := &scanner{rest: line}
		n := s.nodeDef(p.g.LookupOp)
		if s.err != nil {
			return s.err
		}
		fn.Nodes = append(fn.Nodes, n)
	}
	return p.g.Library.Add([]graph.FunctionDef{fn}, nil, p.g.Ops())
}

// setResults reads "output=node:out:0 ^done=node".
func setResults(fn *graph.FunctionDef, text string) error {
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("want output=value, not %q", word)
		}
		if control, ok := strings.CutPrefix(name, "^"); ok {
			if fn.ControlRet == nil {
				fn.ControlRet = map[string]string{}
			}
			fn.ControlRet[control] = value
			fn.Signature.ControlOutputs = append(fn.Signature.ControlOutputs, control)
			continue
		}
		fn.Ret[name] = value
	}
	return nil
}

// nodeDef reads a node of a function. The kinds of its attributes are those of the operation, if
// lookup finds it.
func (s *scanner) nodeDef(lookup func(string) (*opdef.Op, bool)) graph.NodeDef {
	n := graph.NodeDef{}
	n.Name, n.Op, n.Inputs = s.nodeHead()
	op, ok := lookup(n.Op)
	if !ok {
		op = &opdef.Op{}
	}
	n.Attrs, n.Device, _ = s.attrs(op)
	if value := n.Attrs.Tensor("value"); value != nil && op.Attr("dtype") != nil && n.Attrs["dtype"] == nil {
		n.Attrs["dtype"] = value.DType()
	}
	return n
}

// printFunctions writes the functions of a library, sorted by name.
func printFunctions(b *strings.Builder, g *graph.Graph) {
	for _, name := range g.Library.Names() {
		fn, _ := g.Library.Lookup(name)
		d := &fn.Def
		fmt.Fprintf(b, "func %s {\n", formatSignature(&d.Signature))
		for i := range d.Nodes {
			b.WriteString("  " + formatNodeDef(&d.Nodes[i], g.LookupOp) + "\n")
		}
		var results []string
		for _, out := range d.Signature.Outputs {
			results = append(results, out.Name+"="+d.Ret[out.Name])
		}
		for _, out := range d.Signature.ControlOutputs {
			results = append(results, "^"+out+"="+d.ControlRet[out])
		}
		if len(results) > 0 {
			b.WriteString("  return " + strings.Join(results, " ") + "\n")
		}
		b.WriteString("}\n")
	}
}

func formatNodeDef(n *graph.NodeDef, lookup func(string) (*opdef.Op, bool)) string {
	op, ok := lookup(n.Op)
	if !ok {
		op = &opdef.Op{}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s = %s(%s)", n.Name, n.Op, strings.Join(n.Inputs, ", "))
	value := n.Attrs.Tensor("value")
	for _, name := range slices.Sorted(maps.Keys(n.Attrs)) {
		if name != "dtype" || value == nil || op.Attr("dtype") == nil || n.Attrs.Type("dtype") != value.DType() {
			fmt.Fprintf(&b, " %s=%s", name, formatValue(n.Attrs[name], op.Attr(name) != nil))
		}
	}
	printDevice(&b, "device", n.Device)
	return b.String()
}

func formatSignature(op *opdef.Op) string {
	out := fmt.Sprintf("%s(%s) -> (%s)", op.Name, formatArgs(op.Inputs), formatArgs(op.Outputs))
	var attrs []string
	for i := range op.Attrs {
		a := &op.Attrs[i]
		text := a.Name + ": " + a.Kind
		if a.Default != nil {
			text += " = " + formatValue(a.Default, true)
		}
		attrs = append(attrs, text)
	}
	if len(attrs) > 0 {
		out += " [" + strings.Join(attrs, "; ") + "]"
	}
	if op.Stateful {
		out += " stateful"
	}
	return out
}

func formatArgs(args []opdef.Arg) string {
	parts := make([]string, len(args))
	for i, a := range args {
		t := a.TypeAttr + a.TypeListAttr
		if t == "" {
			t = a.DType.String()
		}
		if a.NumberAttr != "" {
			t = a.NumberAttr + " * " + t
		}
		if a.IsRef {
			t = "Ref(" + t + ")"
		}
		parts[i] = a.Name + ": " + t
	}
	return strings.Join(parts, ", ")
}
