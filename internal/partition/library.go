package partition

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
)

// pruneLibrary leaves a part the functions that its nodes can come to call.
func pruneLibrary(part *graph.Graph) error {
	whole := part.Library
	if len(whole.Names()) == 0 {
		return nil
	}
	f := &functionFinder{whole: whole, found: map[string]bool{}, gradient: map[string]string{}}
	for n := range part.Nodes() {
		f.visit(n.Op.Name)
		f.visitAttrs(n.Attrs)
	}
	for len(f.todo) > 0 {
		def := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		f.defs = append(f.defs, *def)
		for i := range def.Nodes {
			f.visit(def.Nodes[i].Op)
			f.visitAttrs(def.Nodes[i].Attrs)
		}
	}
	part.Library = graph.New(part.Ops()).Library
	return part.Library.Add(f.defs, f.gradient, part.Ops())
}

// functionFinder collects the functions that can be reached.
type functionFinder struct {
	whole    *graph.Library
	found    map[string]bool
	todo     []*graph.FunctionDef
	defs     []graph.FunctionDef
	gradient map[string]string
}

// visit notes the function of the given name, if it is one, and its gradient.
func (f *functionFinder) visit(name string) {
	fn, ok := f.whole.Lookup(name)
	if !ok || f.found[name] {
		return
	}
	f.found[name] = true
	f.todo = append(f.todo, &fn.Def)
	if gradient := f.whole.Gradient(name); gradient != "" {
		f.gradient[name] = gradient
		f.visit(gradient)
	}
}

func (f *functionFinder) visitAttrs(attrs opdef.Attrs) {
	for _, v := range attrs {
		switch v := v.(type) {
		case opdef.Func:
			f.visitFunc(v)
		case []opdef.Func:
			for _, fn := range v {
				f.visitFunc(fn)
			}
		}
	}
}

func (f *functionFinder) visitFunc(fn opdef.Func) {
	f.visit(fn.Name)
	f.visitAttrs(fn.Attrs)
}
