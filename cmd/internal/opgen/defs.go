package main

import (
	"bytes"
	"fmt"
	"strings"
)

func writeDefs(entries []entry) []byte {
	var b bytes.Buffer
	b.WriteString(header)
	b.WriteString("import \"github.com/weft-ml/weft/opdef\"\n\n")
	b.WriteString("// Defs are the definitions of all operations, without shape functions. Graphs of this package use them.\n")
	b.WriteString("var Defs = opdef.NewTable([]opdef.Def{\n")
	for _, e := range entries {
		d := e.def
		fmt.Fprintf(&b, "\t{Name: %q", d.Name)
		writeStrings(&b, "In", d.In)
		writeStrings(&b, "Out", d.Out)
		writeStrings(&b, "Attrs", d.Attrs)
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"Stateful", d.Stateful}, {"Commutative", d.Commutative}, {"Aggregate", d.Aggregate},
			{"AllowsUninitialized", d.AllowsUninitialized}, {"Distributed", d.Distributed},
		} {
			if f.set {
				fmt.Fprintf(&b, ", %s: true", f.name)
			}
		}
		b.WriteString("},\n")
	}
	b.WriteString("})\n")
	return b.Bytes()
}

func writeStrings(b *bytes.Buffer, field string, vals []string) {
	if len(vals) == 0 {
		return
	}
	fmt.Fprintf(b, ", %s: %#v", field, vals)
}

func writeDocs(entries []entry) []byte {
	var b bytes.Buffer
	b.WriteString("# Operations\n\nGenerated from the registry (`make generate`). Names, arguments and attributes are TensorFlow's.\n\n")
	fmt.Fprintf(&b, "%d operations.\n\n| operation | inputs | outputs | what it does |\n|---|---|---|---|\n", len(entries))
	for _, e := range entries {
		doc, _, _ := strings.Cut(strings.TrimSpace(e.def.Doc), "\n")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.def.Name, strings.Join(e.def.In, ", "), strings.Join(e.def.Out, ", "),
			strings.ReplaceAll(doc, "|", "\\|"))
	}
	return b.Bytes()
}
