package status

import (
	"fmt"
	"slices"
	"strings"
)

// maxGroupText bounds the text of an error that sums up several.
const maxGroupText = 8 << 10

// Group gathers the outcomes of things that were done at the same time and makes one error of them,
// in which errors that only follow from others ([IsDerived]) do not hide the ones they follow from.
// Equal errors count once. The zero Group is empty; a Group is not safe for concurrent use.
type Group struct {
	ok      int
	roots   []*Error // without repetition, those whose "CODE: text" sorts highest first
	derived []*Error // the same
}

// Add takes one outcome, nil for success.
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

// insert adds e to a sorted list unless its equal is there.
func insert(list *[]*Error, e *Error) {
	i, found := slices.BinarySearchFunc(*list, e, func(a, b *Error) int { return strings.Compare(b.full(), a.full()) })
	if !found {
		*list = slices.Insert(*list, i, e)
	}
}

// full returns the code and the text, by which errors are compared and listed.
func (e *Error) full() string { return e.Code.String() + ": " + e.Message }

// HasRoot reports whether one of the errors is the cause of itself.
func (g *Group) HasRoot() bool { return len(g.roots) > 0 }

// Concatenated returns an error that lists root causes one after the other under a rule, as
// TensorFlow's master reports the errors of several tasks: nil if everything succeeded, and a
// single root cause as it is.
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

// Summary returns an error that numbers root causes, as TensorFlow's worker reports the errors of
// several devices: nil if everything succeeded, and a single root cause as it is.
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

// single returns the only error that is worth reporting, or nil.
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

// payloads returns those of all errors, except for the mark of derived ones; root causes win.
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
