package status

import (
	"fmt"
	"slices"
	"strings"
)

// maxGroupText bounds the text of an error that sums up several.
const maxGroupText = 8 << 10

// Group combines the outcomes of concurrent operations into one error. Derived errors ([IsDerived])
// do not hide their root causes, and equal errors count once. The zero Group is empty. A Group is
// not safe for concurrent use.
type Group struct {
	ok      int
	roots   []*Error // without duplicates, in descending order of "CODE: text"
	derived []*Error // likewise
}

// Add adds one outcome, nil for success.
func (g *Group) Add(err error) {
	if err == nil {
		g.ok++
		return
	}
	if IsDerived(err) {
		insert(&g.derived, From(err))
		return
	}
	insert(&g.roots, From(err))
}

// insert adds e to a sorted list, unless it has an equal error.
func insert(list *[]*Error, e *Error) {
	i, found := slices.BinarySearchFunc(*list, e, func(a, b *Error) int { return strings.Compare(b.full(), a.full()) })
	if !found {
		*list = slices.Insert(*list, i, e)
	}
}

// full returns the code and the text, by which errors are compared and listed.
func (e *Error) full() string { return e.Code.String() + ": " + e.Message }

// HasRoot reports whether one of the errors is not derived.
func (g *Group) HasRoot() bool { return len(g.roots) > 0 }

// Concatenated returns the combined error in the form of TensorFlow's master: nil if everything
// succeeded, a single root cause unchanged, and several root causes one below the other between
// rules.
func (g *Group) Concatenated() error {
	if len(g.roots) < 2 {
		return g.single()
	}
	lines := []string{"\n====================="}
	for _, e := range g.roots {
		lines = append(lines, e.full())
	}
	lines = append(lines, "=====================\n")
	return g.sum(g.roots[0].Code, lines)
}

// Summary returns the combined error in the form of TensorFlow's worker: nil if everything
// succeeded, a single root cause unchanged, and several root causes numbered.
func (g *Group) Summary() error {
	if len(g.roots) < 2 {
		return g.single()
	}
	code := g.roots[0].Code
	lines := []string{fmt.Sprintf("%d root error(s) found.", len(g.roots))}
	for i, e := range g.roots {
		if code == Cancelled {
			code = e.Code
		}
		lines = append(lines, fmt.Sprintf("  (%d) %s", i, e.full()))
	}
	lines = append(lines, fmt.Sprintf("%d successful operations.", g.ok),
		fmt.Sprintf("%d derived errors ignored.", len(g.derived)))
	return g.sum(code, lines)
}

// single returns the first error, root causes before derived ones, or nil.
func (g *Group) single() error {
	switch {
	case len(g.roots) > 0:
		out := *g.roots[0]
		out.Payloads = g.payloads()
		return &out
	case len(g.derived) > 0:
		out := *g.derived[0]
		out.Payloads = g.payloads()
		return out.Derive()
	}
	return nil
}

func (g *Group) sum(code Code, lines []string) error {
	text := strings.Join(lines, "\n")
	return &Error{Code: code, Message: text[:min(len(text), maxGroupText)], Payloads: g.payloads(), cause: g.roots[0]}
}

// payloads returns the payloads of all errors, without the mark of derived errors. Those of root
// causes take precedence.
func (g *Group) payloads() map[string][]byte {
	var out map[string][]byte
	for _, list := range [][]*Error{g.derived, g.roots} {
		for _, e := range list {
			for k, v := range e.Payloads {
				if k == PayloadDerived {
					continue
				}
				if out == nil {
					out = map[string][]byte{}
				}
				out[k] = v
			}
		}
	}
	return out
}
