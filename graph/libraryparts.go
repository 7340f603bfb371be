package graph

import (
	"maps"
	"slices"
)

// Part returns the definitions and gradients of the named functions and of all functions that they
// use, sorted by name. Unknown names are ignored.
func (l *Library) Part(names []string) ([]FunctionDef, map[string]string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	used := map[string]bool{}
	gradient := map[string]string{}
	var use func(name string)
	use = func(name string) {
		f := l.functions[name]
		if f == nil || used[name] {
			return
		}
		used[name] = true
		for i := range f.Def.Nodes {
			use(f.Def.Nodes[i].Op)
			for called := range f.Def.Nodes[i].Attrs.Functions() {
				use(called)
			}
		}
		if own := l.gradient[name]; own != "" {
			gradient[name] = own
			use(own)
		}
	}
	for _, name := range names {
		use(name)
	}
	defs := make([]FunctionDef, 0, len(used))
	for _, name := range slices.Sorted(maps.Keys(used)) {
		defs = append(defs, l.functions[name].Def)
	}
	return defs, gradient
}

// With returns a new library with the functions and gradients of l and the given ones. The given
// ones replace those of the same name.
func (l *Library) With(functions []FunctionDef, gradient map[string]string) *Library {
	out := newLibrary()
	l.mu.RLock()
	maps.Copy(out.functions, l.functions)
	maps.Copy(out.gradient, l.gradient)
	l.mu.RUnlock()
	for i := range functions {
		out.functions[functions[i].Signature.Name] = &Function{Def: functions[i]}
	}
	maps.Copy(out.gradient, gradient)
	return out
}
