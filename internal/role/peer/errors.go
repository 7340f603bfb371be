package peer

import (
	"strings"

	"github.com/weft-ml/weft/status"
)

const (
	nodeStart = "[[{{node "
	nodeEnd   = "}}]]"
)

// ErrorFor returns an error in the form in which a release finds the operation that has failed.
// summary returns the summary of a node, "{{node x}} = Op[…](…)", or "" if the node is not known.
func (r Release) ErrorFor(err error, summary func(node string) string) error {
	e, ok := err.(*status.Error) //nolint:errorlint // the message of this very error
	if !ok || !r.Has(NodeInErrors) || !strings.Contains(e.Message, nodeStart) {
		return err
	}
	var b strings.Builder
	rest := e.Message
	for {
		before, after, found := strings.Cut(rest, nodeStart)
		b.WriteString(before)
		if !found {
			break
		}
		name, tail, found := strings.Cut(after, nodeEnd)
		if !found {
			b.WriteString(nodeStart)
			rest = after
			continue
		}
		b.WriteString("[[Node: " + name + " = ")
		_, definition, _ := strings.Cut(summary(name), " = ")
		b.WriteString(definition + "]]")
		rest = tail
	}
	out := *e
	out.Message = b.String()
	return &out
}
