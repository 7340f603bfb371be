package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// attach adds the name of the node to an error, in the form that clients resolve to a place in
// their program. If the text contains a name in that form, it adds the plain name.
func attach(err error, node string) error {
	e := status.From(err)
	if strings.Contains(e.Message, "{{node ") {
		return e.Annotate("\n\t [[%s]]", node)
	}
	return status.AtNode(e, node)
}

// firstID is the ID of the first node of a graph in TensorFlow's errors. Two internal nodes precede
// it.
const firstID = 2

// describeNode formats a node as TensorFlow's errors do.
func describeNode(n *graph.Node) string {
	return fmt.Sprintf("{name:'%s' id:%d op device:{requested: '%s', assigned: '%s'} def:{%s}}",
		n.Name, n.ID+firstID, n.Device, n.Assigned, n.Summary())
}

// maxDescriptions is the number of groups that are described in full. A description reads all
// nodes, and soft placement ignores a request, or warns, for each of a million groups.
const maxDescriptions = 100

// describeGroup lists the members of a group with their requests and their supported device types.
func (p *placer) describeGroup(root int) string {
	if p.descriptions++; p.descriptions > maxDescriptions {
		return ""
	}
	var types []string
	var members strings.Builder
	seen := map[string]bool{} // names of operations
	for n := range p.g.Nodes() {
		if p.root(n.ID) != root {
			continue
		}
		if !seen[n.Op.Name] {
			seen[n.Op.Name] = true
			types = append(types, n.Op.Name+": "+typeNames(p.supportedTypes(n), " ")+" ")
		}
		fmt.Fprintf(&members, "\n  %s (%s) %s", n.Name, n.Op.Name, n.Device)
		if n.Assigned != "" {
			fmt.Fprintf(&members, " framework assigned device=%s", n.Assigned)
		}
	}
	slices.Reverse(types)
	return "\nColocation Debug Info:\nColocation group had the following types and supported devices: \nRoot " +
		p.groups[root].String() + "\n" + strings.Join(types, "\n") +
		"\n\nColocation members, user-requested devices, and framework assigned devices, if any:" + members.String() + "\n"
}
