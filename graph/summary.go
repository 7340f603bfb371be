package graph

import "strings"

// Summary returns a one-line description of the node in the format of TensorFlow's errors: {{node
// y}} = Op[attr=value](input, ^control). The requested device is the last attribute.
func (n *Node) Summary() string {
	d := n.Def()
	d.Device = n.Device
	return d.Summary()
}

// Summary returns a one-line description of the node in the format of TensorFlow's errors.
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

// Summary returns the summaries of all nodes, one per line.
func (g *Graph) Summary() string {
	var b strings.Builder
	for n := range g.Nodes() {
		b.WriteString(n.Summary())
		b.WriteByte('\n')
	}
	return b.String()
}
