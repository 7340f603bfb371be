// Package invariants switches on checks that are too dear for every run: build with -tags
// invariants, as the tests in continuous integration do.
//
// A check that looks at more than it costs to say stands behind the constant, and is compiled away
// without the tag:
//
//	if invariants.Enabled {
//		invariants.Check(queue.sorted(), "queue of %s is out of order", name)
//	}
package invariants

import "fmt"

// Check panics with the message if ok is false and invariants are enabled. What it finds is a
// mistake of ours, never input from outside.
func Check(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
