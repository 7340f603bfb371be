package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// row is a line of the table in the documentation of a builder.
type row struct{ name, kind, shape string }

// writeDoc writes the doc comment of a builder: the description of the operation, and a table of
// the types and shapes of its arguments and results and of the values of its attributes.
func writeDoc(b *bytes.Buffer, e entry) {
	op := e.op
	b.WriteString("\n// " + strings.ReplaceAll(sentence(op.Name, strings.TrimSpace(op.Doc)), "\n", "\n// ") + "\n")
	shapes := probe(op)
	var rows []row
	add := func(args []opdef.Arg, shapes []string) {
		for i, a := range args {
			rows = append(rows, row{ident(a.Name), kindOf(op, a), shapes[i]})
		}
	}
	add(op.Inputs, shapes.in)
	if len(op.Inputs) > 0 && len(op.Outputs) > 0 {
		rows = append(rows, row{name: "→"})
	}
	add(op.Outputs, shapes.out)
	if len(rows) > 0 {
		b.WriteString("//\n")
		writeRows(b, rows)
	}
	if attrs := attrRows(op); len(attrs) > 0 {
		b.WriteString("//\n// where\n//\n")
		writeRows(b, attrs)
	}
}

// sentence returns the first sentence of a doc comment: "MatMul multiplies …" if the description
// begins with a verb, otherwise "Abs: The …".
func sentence(name, doc string) string {
	first, _, _ := strings.Cut(doc, " ")
	first = strings.TrimRight(first, ".,:")
	if !isVerb(first) {
		return name + ": " + doc
	}
	return name + " " + string(unicode.ToLower(rune(doc[0]))) + doc[1:]
}

// notVerbs holds words at the start of descriptions that end in "s" but are not verbs.
var notVerbs = map[string]bool{"Products": true, "Logarithms": true, "Spence's": true, "Dawson's": true}

func isVerb(word string) bool {
	for i, r := range word {
		if unicode.IsUpper(r) != (i == 0) || !unicode.IsLetter(r) && i > 0 {
			return false
		}
	}
	return strings.HasSuffix(word, "s") && !notVerbs[word]
}

// kindOf describes the number and types of the tensors of an argument.
func kindOf(op *opdef.Op, a opdef.Arg) string {
	kind := a.DType.Base().Name()
	if a.TypeAttr != "" {
		kind = shown(op, a.TypeAttr)
	}
	switch {
	case a.TypeListAttr != "":
		return "tensors of the types " + shown(op, a.TypeListAttr)
	case a.NumberAttr != "":
		kind = shown(op, a.NumberAttr) + " tensors of " + kind
	}
	if a.IsRef {
		kind = "variable of " + kind
	}
	return kind
}

// shown returns the name by which the documentation refers to an attribute. For a required
// attribute it is the name of the parameter.
func shown(op *opdef.Op, attr string) string {
	if a := op.Attr(attr); a != nil && a.Default == nil && !inferredAttrs(op)[attr] {
		return ident(attr)
	}
	return attr
}

// attrRows returns the rows for the type attributes, with their types, and for the required
// attributes, with their values.
func attrRows(op *opdef.Op) []row {
	inferred := inferredAttrs(op)
	var rows []row
	for _, a := range op.Attrs {
		name := shown(op, a.Name)
		switch {
		case a.Types != nil:
			rows = append(rows, row{name, typeNames(a.Types), ""})
		case (inferred[a.Name] || a.Default == nil) && strings.Contains(a.Kind, "type"):
			rows = append(rows, row{name, "any type" + leastOf(a), ""})
		case a.Default == nil || a.Strings != nil:
			rows = append(rows, row{name, valuesOf(a), ""})
		}
	}
	return rows
}

func valuesOf(a opdef.Attr) string {
	if a.Strings != nil {
		return "one of " + strings.Join(a.Strings, ", ")
	}
	return a.Kind + leastOf(a)
}

func leastOf(a opdef.Attr) string {
	switch {
	case !a.HasMin:
		return ""
	case a.Kind == "int":
		return fmt.Sprintf(", at least %d", a.Min)
	default:
		return fmt.Sprintf(", at least %d of them", a.Min)
	}
}

func typeNames(types []tensor.DType) string {
	for _, set := range namedSets {
		if rest, ok := withoutAll(types, set.types); ok {
			if len(rest) == 0 {
				return set.name
			}
			return set.name + ", " + typeNames(rest)
		}
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name()
	}
	return strings.Join(names, ", ")
}

// namedSets holds the sets of types that the documentation refers to by name, the largest first.
// The package comment of op lists their types.
var namedSets = []struct {
	name  string
	types []tensor.DType
}{
	{"numbertype", typeSet("numbertype")},
	{"realnumbertype", typeSet("realnumbertype")},
}

// typeSet returns the types of a named set.
func typeSet(name string) []tensor.DType {
	types, err := opdef.ParseTypes(name)
	if err != nil {
		panic(err) // opdef does not have the name
	}
	return types
}

// withoutAll returns types without those of set, and whether types contains all of set.
func withoutAll(types, set []tensor.DType) (rest []tensor.DType, ok bool) {
	found := 0
	for _, t := range types {
		if slices.Contains(set, t) {
			found++
		} else {
			rest = append(rest, t)
		}
	}
	return rest, found == len(set)
}

// writeRows writes a table as a code block with aligned columns.
func writeRows(b *bytes.Buffer, rows []row) {
	names, kinds := 0, 0
	for _, r := range rows {
		names = max(names, len(r.name))
		if r.shape != "" {
			kinds = max(kinds, len(r.kind))
		}
	}
	for _, r := range rows {
		line := fmt.Sprintf("%-*s  %-*s  %s", names, r.name, kinds, r.kind, r.shape)
		b.WriteString("//\t" + strings.TrimRight(line, " ") + "\n")
	}
}
