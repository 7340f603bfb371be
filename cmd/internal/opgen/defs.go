package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/weft-ml/weft/internal/kernels/gpu"
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
	b.WriteString(gpuText(entries))
	fmt.Fprintf(&b, "%d operations.\n\n| operation | inputs | outputs | GPU | what it does |\n|---|---|---|---|---|\n", len(entries))
	for _, e := range entries {
		doc, _, _ := strings.Cut(strings.TrimSpace(e.def.Doc), "\n")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.def.Name, strings.Join(e.def.In, ", "), strings.Join(e.def.Out, ", "),
			supportText(gpu.SupportOf(e.def.Name)), strings.ReplaceAll(doc, "|", "\\|"))
	}
	return b.Bytes()
}

// gpuText explains the column about GPUs, and counts its entries.
func gpuText(entries []entry) string {
	var device, passes, host, detour int
	for _, e := range entries {
		switch s := gpu.SupportOf(e.def.Name); {
		case s.Device:
			device++
		case s.Passes:
			passes++
		case s.Host && !s.Detour:
			host++
		case s.Detour:
			detour++
		}
	}
	return fmt.Sprintf("The column GPU says what computes a node that is placed on a [GPU](../guides/gpu.md):\n\n"+
		"| | | operations |\n|---|---|---:|\n"+
		"| device | a kernel on the device. A few forms and types take a detour | %d |\n"+
		"| passes | nothing: the node passes tensors on, keeps them or looks at their shapes | %d |\n"+
		"| host | the CPU: all arguments are in the memory of the host, as in TensorFlow | %d |\n"+
		"| detour | the CPU, on copies in the memory of the host | %d |\n"+
		"| | nothing: TensorFlow has no kernel for GPUs either | %d |\n\n",
		device, passes, host, detour, len(entries)-device-passes-host-detour)
}

// supportText says how nodes of an operation compute on a GPU. It leaves out the types that are in
// the memory of the host, such as int32.
func supportText(s gpu.Support) string {
	var detours []string
	for _, t := range s.Detours {
		detours = append(detours, t.Name())
	}
	switch {
	case s.Device && s.Detour:
		return "device; detour for " + strings.Join(detours, ", ")
	case s.Device:
		return "device"
	case s.Passes:
		return "passes"
	case s.Detour:
		return "detour"
	case s.Host:
		return "host"
	}
	return ""
}
