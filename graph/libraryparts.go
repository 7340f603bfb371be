package graph

import (
	"maps"
	"slices"
)

// Part returns the definitions and gradients of the named functions and of all functions that they
// use, sorted by name. Unknown names are ignored.
func (l *Library) Part(names []string) ([]FunctionDef, map[string]string) {
	used := l.Used(names)
	defs := make([]FunctionDef, 0, len(used.functions))
	for _, name := range slices.Sorted(maps.Keys(used.functions)) {
		defs = append(defs, used.functions[name].Def)
	}
	return defs, used.gradient
}

// Used returns a new library with the named functions and all functions that they use, directly or
// indirectly. Unknown names are ignored. The functions are shared with l.
func (l *Library) Used(names []string) *Library {
	out := newLibrary()
	l.mu.RLock()
	defer l.mu.RUnlock()
	// A recursion could be as deep as the library has functions.
	pending := slices.Clone(names)
	for len(pending) > 0 {
		name := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		f := l.functions[name]
		if f == nil || out.functions[name] != nil {
			continue
		}
		out.functions[name] = f
		for i := range f.Def.Nodes {
			pending = append(pending, f.Def.Nodes[i].Op)
			pending = slices.AppendSeq(pending, f.Def.Nodes[i].Attrs.Functions())
		}
		if own := l.gradient[name]; own != "" {
			out.gradient[name] = own
			pending = append(pending, own)
		}
	}
	return out
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
