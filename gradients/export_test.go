package gradients

import (
	"maps"
	"slices"
)

// Differentiable returns the operations that have a rule.
func Differentiable() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if rules[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// SetMaxNodes replaces the limit on nodes of functions until the returned function is called.
func SetMaxNodes(n int) (restore func()) {
	old := maxNodes
	maxNodes = n
	return func() { maxNodes = old }
}
