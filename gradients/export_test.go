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
