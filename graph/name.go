package graph

import (
	"strconv"
	"strings"
)

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// LegalName reports whether name is one that nodes may have: a letter, digit, "." or, for nodes that the runtime makes,
// "_", followed by any of these and "/", "\", "-", ">".
func LegalName(name string) bool {
	if name == "" {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if isAlnum(c) || c == '.' || c == '_' || i > 0 && strings.IndexByte("/\\->", c) >= 0 {
			continue
		}
		return false
	}
	return true
}

// ParseInput splits an input as nodes have it written: "node", "node:2" or "^node", whose index is Control.
func ParseInput(s string) (name string, index int) {
	if rest, ok := strings.CutPrefix(s, "^"); ok {
		return rest, Control
	}
	if name, idx, ok := strings.Cut(s, ":"); ok {
		if n, err := strconv.ParseUint(idx, 10, 31); err == nil {
			return name, int(n)
		}
	}
	return s, 0
}

// String writes the output as inputs are written: "node", or "node:2" for one other than the first.
func (o Output) String() string {
	if o.Index == 0 {
		return o.Node.Name
	}
	return o.Node.Name + ":" + strconv.Itoa(o.Index)
}
