// Package invariants enables checks that are too expensive for every run. Build with -tags
// invariants to compile them in, as continuous integration does.
//
// Guard an expensive check with the constant, so that it is compiled away without the tag:
//
//	if invariants.Enabled {
//		invariants.Check(queue.sorted(), "queue of %s is out of order", name)
//	}
package invariants

import "fmt"

// Check panics with the message if ok is false and invariants are enabled. A failure is a bug of
// Weft, never invalid input.
func Check(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
