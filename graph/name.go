package graph

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/status"
)

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// LegalName reports whether a node may have the name. A legal name consists of letters, digits and
// the characters "._/->" and does not start with "/", "-" or ">". After ">" there must be a letter,
// digit or ".". Names that start with "_" are reserved for the runtime.
func LegalName(name string) bool {
	return strings.HasPrefix(name, "_") && legalRest(name[1:]) || legalExternalName(name)
}

// legalExternalName is LegalName without the names that are reserved for the runtime.
func legalExternalName(name string) bool {
	return name != "" && (isAlnum(name[0]) || name[0] == '.') && legalRest(name[1:])
}

// legalRest does not recurse: a client chooses the number of ">" in a name.
func legalRest(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isAlnum(c), c == '.', c == '_', c == '/', c == '-':
		case c == '>':
			if i++; i == len(s) || !isAlnum(s[i]) && s[i] != '.' {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// legalIndex reports whether s is an output index in an input string: digits without leading zeros.
func legalIndex(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// ParseInput parses an input string of a node: "node", "node:2" or "^node", for which the index is
// Control.
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

// checkInput returns an error if an input string is malformed or legal returns false for its name.
func checkInput(input string, legal func(string) bool) error {
	name, isControl := strings.CutPrefix(input, "^")
	if !isControl {
		before, index, hasIndex := strings.Cut(name, ":")
		if hasIndex && !legalIndex(index) {
			return status.InvalidArgumentf("Illegal op input name '%s'", input)
		}
		name = before
	}
	if !legal(name) {
		return status.InvalidArgumentf("Illegal op input name '%s'", input)
	}
	return nil
}

// String returns the output as an input string: "node" for output 0, "node:2" for output 2.
func (o Output) String() string {
	if o.Index == 0 {
		return o.Node.Name
	}
	return o.Node.Name + ":" + strconv.Itoa(o.Index)
}
