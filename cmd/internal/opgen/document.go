package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// row is a line of the table of a builder's documentation.
type row struct{ name, kind, shape string }

// writeDoc writes what an operation does and, as a table, the types and shapes of its arguments and
// results and the values that its attributes may have.
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

// sentence joins a name and what Go readers expect after it: "MatMul multiplies …" where the text
// begins with a verb, and "Abs: The …" where it does not.
func sentence(name, doc string) string {
	first, _, _ := strings.Cut(doc, " ")
	first = strings.TrimRight(first, ".,:")
	if !isVerb(first) {
		return name + ": " + doc
	}
	return name + " " + string(unicode.ToLower(rune(doc[0]))) + doc[1:]
}

// notVerbs are words that end like verbs and begin the text of an operation.
var notVerbs = map[string]bool{"Products": true, "Logarithms": true, "Spence's": true, "Dawson's": true}

func isVerb(word string) bool {
	for i, r := range word {
		if unicode.IsUpper(r) != (i == 0) || !unicode.IsLetter(r) && i > 0 {
			return false
		}
	}
	return strings.HasSuffix(word, "s") && !notVerbs[word]
}

// kindOf says what tensors an argument stands for.
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

// shown returns the name of an attribute as the builder has it: that of a parameter if it must be
// given.
func shown(op *opdef.Op, attr string) string {
	if a := op.Attr(attr); a != nil && a.Default == nil && !inferredAttrs(op)[attr] {
		return ident(attr)
	}
	return attr
}

// attrRows says which types the type attributes stand for, and which values those that must be
// given may have.
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
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name()
	}
	return strings.Join(names, ", ")
}

// writeRows writes a table as a block of code, in columns.
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
