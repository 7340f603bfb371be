package graph

import "strings"

// Summary describes the node in one line, as TensorFlow does in errors: {{node y}} =
// Op[attr=value](input, ^control), with the requested device as the last attribute.
func (n *Node) Summary() string {
	d := n.Def()
	d.Device = n.Device
	return d.Summary()
}

// Summary describes the node in one line, as TensorFlow does in errors.
func (d *NodeDef) Summary() string {
	attrs := d.Attrs.Format()
	if d.Device != "" {
		if attrs != "" {
			attrs += ", "
		}
		attrs += `_device="` + d.Device + `"`
	}
	return "{{node " + d.Name + "}} = " + d.Op + "[" + attrs + "](" + strings.Join(d.Inputs, ", ") + ")"
}

// Summary describes the graph, one node a line.
func (g *Graph) Summary() string {
	var b strings.Builder
	for n := range g.Nodes() {
		b.WriteString(n.Summary())
		b.WriteByte('\n')
	}
	return b.String()
}
