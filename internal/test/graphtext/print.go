package graphtext

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/tensor"
)

// Print writes a graph: functions sorted by name, nodes by ID, and attributes by name.
func Print(g *graph.Graph) string {
	var b strings.Builder
	printVersions(&b, g.Versions)
	printFunctions(&b, g)
	for n := range g.Nodes() {
		b.WriteString(PrintNode(n))
		b.WriteByte('\n')
	}
	return b.String()
}

func printVersions(b *strings.Builder, v graph.Versions) {
	if v.Producer == 0 && v.MinConsumer == 0 && len(v.BadConsumers) == 0 {
		return
	}
	fmt.Fprintf(b, "versions producer=%d", v.Producer)
	if v.MinConsumer != 0 {
		fmt.Fprintf(b, " min_consumer=%d", v.MinConsumer)
	}
	if len(v.BadConsumers) > 0 {
		fmt.Fprintf(b, " bad_consumers=%s", strings.Join(strings.Fields(fmt.Sprint(v.BadConsumers)), ", "))
	}
	b.WriteByte('\n')
}

// PrintNode writes one node.
func PrintNode(n *graph.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s = %s(%s)", n.Name, n.Op.Name, strings.Join(inputs(n), ", "))
	written := implied(n.Op, n.Attrs, knownTypes(n))
	for _, name := range slices.Sorted(maps.Keys(n.Attrs)) {
		v := n.Attrs[name]
		attr := n.Op.Attr(name)
		if attr != nil && (attr.Default != nil && reflect.DeepEqual(v, attr.Default) || reflect.DeepEqual(v, written[name])) {
			continue
		}
		fmt.Fprintf(&b, " %s=%s", name, formatValue(v, attr != nil))
	}
	printDevice(&b, "device", n.Device)
	printDevice(&b, "assigned", n.Assigned)
	return b.String()
}

func printDevice(b *strings.Builder, key, name string) {
	if name == "" {
		return
	}
	if strings.ContainsAny(name, " \t\n\"") {
		name = strconv.Quote(name)
	}
	fmt.Fprintf(b, " %s=%s", key, name)
}

func inputs(n *graph.Node) []string {
	var out []string
	for _, in := range n.Inputs() {
		if in.Node == nil {
			out = append(out, "?")
			continue
		}
		out = append(out, in.String())
	}
	for _, c := range n.ControlInputs() {
		out = append(out, "^"+c.Name)
	}
	return out
}

// knownTypes returns the types of the inputs as far as a reader of the text knows them at the line
// of n.
func knownTypes(n *graph.Node) []tensor.DType {
	types := make([]tensor.DType, n.NumInputs())
	for i, in := range n.Inputs() {
		if in.Node != nil && in.Node.ID < n.ID {
			types[i] = in.DType()
		}
	}
	return types
}
