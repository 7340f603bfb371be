package ophistory

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// Releases are the releases of TensorFlow that the table tells apart, oldest first.
var Releases = []string{"0.12", "1.0", "1.4", "1.8", "1.12", "1.15"}

//go:embed history.txt
var text string

// entry holds the releases of one operation, as indexes in Releases.
type entry struct {
	since int
	later map[string]int // first release of each attribute that is newer than the operation
}

var table = sync.OnceValue(func() map[string]entry { return parse(text) })

// parse returns the table in the language of the package comment. It panics on a malformed table,
// since the table is source code.
func parse(text string) map[string]entry {
	//sizedmake:ok the text is part of the program
	entries := make(map[string]entry, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		var e entry
		name := ""
		for word := range strings.FieldsSeq(line) {
			attr, index, isAttr := strings.Cut(word, "=")
			switch {
			case name == "":
				name = word
			case isAttr:
				if e.later == nil {
					e.later = map[string]int{}
				}
				//sizedmake:ok lines of a constant
				e.later[attr] = release(line, index)
			default:
				e.since = release(line, word)
			}
		}
		//sizedmake:ok lines of a constant
		entries[name] = e
	}
	return entries
}

// release returns the index of a release in a line of the table.
func release(line, index string) int {
	i, err := strconv.Atoi(index)
	if err != nil || i <= 0 || i > len(Releases) {
		panic("ophistory: malformed line: " + line)
	}
	return i
}

// OpSince returns the index in Releases of the first release that has the operation, or
// len(Releases) if all of them lack it. known is false for operations that no TensorFlow has, such
// as functions of a graph; the index is then len(Releases).
func OpSince(op string) (index int, known bool) {
	e, known := table()[op]
	if !known {
		return len(Releases), false
	}
	return e.since, true
}

// AttrSince returns the index in Releases of the first release whose definition of the operation
// has the attribute, or len(Releases) if all of them lack it. An attribute that no release has, for
// example one whose name begins with "_", is as old as its operation.
func AttrSince(op, attr string) int {
	e, known := table()[op]
	if !known {
		return len(Releases)
	}
	if since, ok := e.later[attr]; ok {
		return since
	}
	return e.since
}
