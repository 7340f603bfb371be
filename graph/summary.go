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
	return "{{node " + d.Name + "}} = " + d.Op + "[" + attrs + "](" + joinInputs(d.Inputs) + ")"
}

// maxInputText is the size of the text of inputs, in bytes, after which a summary omits the rest. A
// node may have a million inputs from one node with a long name.
const maxInputText = 1 << 20

func joinInputs(inputs []string) string {
	size := 0
	for i, input := range inputs {
		if size > maxInputText {
			return strings.Join(inputs[:i], ", ") + ", ..."
		}
		size += len(input)
	}
	return strings.Join(inputs, ", ")
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
