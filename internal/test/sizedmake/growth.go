package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// entrySize is about the memory of an entry of a map, in bytes, as in package membudget.
const entrySize = 96

const (
	appendFault = "append in a loop that no constant bounds: use membudget.Append or a Meter"
	entryFault  = "entry of a map in a loop that no constant bounds: use Meter.MustTakeEntry"
)

// uncounted are packages whose lists and maps are not checked yet.
var uncounted = []string{"internal/kernels/gpu", "internal/kernels/listops"}

// growth finds lists and maps that grow in loops. See the comment of the package.
type growth struct {
	info  *types.Info
	sizes types.Sizes
}

// growths calls report for what grows in the loops of a file.
func growths(pass *analysis.Pass, file *ast.File, report func(token.Pos, string)) {
	if pass.Pkg != nil && slices.ContainsFunc(uncounted, func(path string) bool { return strings.HasSuffix(pass.Pkg.Path(), path) }) {
		return
	}
	g := growth{pass.TypesInfo, pass.TypesSizes}
	nodes := []ast.Node{(*ast.CallExpr)(nil), (*ast.AssignStmt)(nil), (*ast.IncDecStmt)(nil)}
	for at := range inspector.New([]*ast.File{file}).Root().Preorder(nodes...) {
		switch n := at.Node().(type) {
		case *ast.CallExpr:
			if g.appends(at, n) {
				report(n.Pos(), appendFault)
			}
		case *ast.AssignStmt:
			if slices.ContainsFunc(n.Lhs, func(to ast.Expr) bool { return g.stores(at, to) }) {
				report(n.Pos(), entryFault)
			}
		case *ast.IncDecStmt:
			if g.stores(at, n.X) {
				report(n.Pos(), entryFault)
			}
		}
	}
}

// appends reports whether a call is one of append that grows without a bound.
func (g *growth) appends(at inspector.Cursor, call *ast.CallExpr) bool {
	if !isBuiltin(g.info, call.Fun, "append") || len(call.Args) < 2 {
		return false
	}
	list := call.Args[0]
	element, ok := g.info.TypeOf(list).Underlying().(*types.Slice)
	if !ok || g.isFew(list) || g.hasRoom(at, list) {
		return false
	}
	size := g.sizeof(element.Elem()) * int64(len(call.Args)-1)
	if call.Ellipsis.IsValid() {
		size = unknownSize
	}
	return g.grows(at, list, size)
}

// stores reports whether an assignment to an expression makes entries of a map without a bound. The
// types of elements are few, so a map by them is too.
func (g *growth) stores(at inspector.Cursor, to ast.Expr) bool {
	index, ok := ast.Unparen(to).(*ast.IndexExpr)
	if !ok {
		return false
	}
	m, ok := g.info.TypeOf(index.X).Underlying().(*types.Map)
	return ok && nameOf(m.Key()) != "DType" && g.grows(at, index.X, entrySize)
}

// unknownSize is larger than any element.
const unknownSize = 1 << 40

// grows reports whether a list or map grows in a loop that is not bounded. An iteration adds size
// bytes to it. Loops that the variable is declared in do not count.
func (g *growth) grows(at inspector.Cursor, grown ast.Expr, size int64) bool {
	for f := range at.Enclosing((*ast.FuncDecl)(nil)) {
		if decl, ok := f.Node().(*ast.FuncDecl); ok && g.isForGraphs(decl) {
			return false
		}
	}
	root := g.root(grown)
	found := false
	var ranged *ast.RangeStmt // the loop next to at that ranges over a list that is counted
	for c := range at.Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil)) {
		n := c.Node()
		if root != nil && n.Pos() <= root.Pos() && root.Pos() < n.End() {
			break
		}
		var body *ast.BlockStmt
		switch n := n.(type) {
		case *ast.ForStmt:
			if g.isBoundedFor(n) {
				continue
			}
			body = n.Body
		case *ast.RangeStmt:
			if g.isFew(n.X) || g.isSmall(n.X) {
				continue
			}
			if list, ok := g.info.TypeOf(n.X).Underlying().(*types.Slice); ok && ranged == nil && size <= g.sizeof(list.Elem()) {
				ranged = n
				continue
			}
			body = n.Body
		}
		if g.isCounted(body) {
			return false
		}
		// the lists of an outer loop's iterations may be parts of one that is counted
		if ranged != nil && g.dependsOn(ranged.X, n) {
			continue
		}
		found = true
	}
	return found
}

// dependsOn reports whether an expression uses a variable that is declared in a loop.
func (g *growth) dependsOn(e ast.Expr, loop ast.Node) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v := g.info.ObjectOf(id); v != nil && loop.Pos() <= v.Pos() && v.Pos() < loop.End() {
				found = true
			}
		}
		return !found
	})
	return found
}

// isForGraphs reports whether a function belongs to the start of the program or to the construction
// of graphs and kernels, whose attributes are counted with the graph.
func (g *growth) isForGraphs(f *ast.FuncDecl) bool {
	return f.Name.Name == "init" || slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		name := nameOf(g.info.TypeOf(p.Type))
		return name == "ShapeContext" || name == "Construction"
	})
}

// isCounted reports whether a block asks package membudget for memory.
func (g *growth) isCounted(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			f, ok := g.info.Uses[sel.Sel].(*types.Func)
			found = found || ok && f.Pkg() != nil && f.Pkg().Name() == "membudget" && strings.Contains(f.Name(), "Take")
		}
		return !found
	})
	return found
}

// root returns the variable that holds a list or map, or nil if it is behind a pointer.
func (g *growth) root(e ast.Expr) types.Object {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return g.info.ObjectOf(x)
		case *ast.SelectorExpr:
			if _, ok := g.info.TypeOf(x.X).Underlying().(*types.Pointer); ok {
				return nil
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// hasRoom reports whether a list was made with a capacity, which the other check has seen.
func (g *growth) hasRoom(at inspector.Cursor, list ast.Expr) bool {
	id, ok := ast.Unparen(list).(*ast.Ident)
	if !ok {
		return g.isRoom(list)
	}
	v, room := g.info.ObjectOf(id), false
	check := func(to *ast.Ident, value ast.Expr) { room = room || g.info.ObjectOf(to) == v && g.isRoom(value) }
	for f := range at.Enclosing((*ast.FuncDecl)(nil)) {
		ast.Inspect(f.Node(), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if to, ok := to.(*ast.Ident); ok && len(n.Rhs) == len(n.Lhs) {
						check(to, n.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i, to := range n.Names {
					if len(n.Values) == len(n.Names) {
						check(to, n.Values[i])
					}
				}
			}
			return !room
		})
	}
	return room
}

// isRoom reports whether an expression makes a list with a capacity.
func (g *growth) isRoom(e ast.Expr) bool {
	if s, ok := ast.Unparen(e).(*ast.SliceExpr); ok {
		e = s.X
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	if g.info.Types[call.Fun].IsType() && len(call.Args) == 1 {
		return g.isRoom(call.Args[0])
	}
	name := calledName(g.info, call.Fun)
	return name == "membudget.MakeCap" || name == "membudget.Make" || isBuiltin(g.info, call.Fun, "make") && len(call.Args) == 3
}

// isBoundedFor reports whether the condition of a loop compares with a small number.
func (g *growth) isBoundedFor(n *ast.ForStmt) bool {
	conditions := []ast.Expr{n.Cond}
	for len(conditions) > 0 {
		b, ok := ast.Unparen(conditions[0]).(*ast.BinaryExpr)
		conditions = conditions[1:]
		switch {
		case !ok:
		case b.Op == token.LAND:
			conditions = append(conditions, b.X, b.Y)
		case (b.Op == token.LSS || b.Op == token.LEQ) && g.isSmall(b.Y):
			return true
		}
	}
	return false
}

// isSmall reports whether a number is a constant, a rank, or the number of inputs or outputs of a
// node.
func (g *growth) isSmall(e ast.Expr) bool {
	if allConstant(g.info, []ast.Expr{e}) {
		_, isNumber := g.info.TypeOf(e).Underlying().(*types.Basic)
		return isNumber
	}
	name := ""
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.CallExpr:
		if isBuiltin(g.info, e.Fun, "len") {
			return g.isFew(e.Args[0])
		}
		if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok {
			name = sel.Sel.Name
		}
	}
	return slices.Contains([]string{"rank", "Rank", "NumInputs", "NumOutputs"}, name)
}

// isFew reports whether an expression is a shape, whose length is at most 254, a list of types,
// which is an attribute, or an array.
func (g *growth) isFew(e ast.Expr) bool {
	t := g.info.TypeOf(e)
	if name := nameOf(t); name == "Shape" || name == "PartialShape" {
		return true
	}
	switch t := t.Underlying().(type) {
	case *types.Slice:
		return nameOf(t.Elem()) == "DType"
	case *types.Pointer:
		_, ok := t.Elem().Underlying().(*types.Array)
		return ok
	case *types.Array:
		return true
	}
	return false
}

// nameOf returns the name of a type or of what a pointer of the type points to.
func nameOf(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}

// sizeof returns the size of a type. A type parameter counts as a word.
func (g *growth) sizeof(t types.Type) int64 {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return 8
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		n := int64(0)
		for f := range u.Fields() {
			n += (g.sizeof(f.Type()) + 7) &^ 7
		}
		return n
	case *types.Array:
		return u.Len() * g.sizeof(u.Elem())
	}
	return g.sizes.Sizeof(t)
}
