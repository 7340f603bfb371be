package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// copying are functions of the standard library that return as much as they get, and what asks for
// the memory.
var copying = map[string]string{
	"slices.Clone": "membudget.AppendAll", "slices.Concat": "membudget.AppendAll", "bytes.Clone": "membudget.AppendAll",
	"bytes.Join": "a Meter, before the call", "strings.Join": "Meter.Join",
}

// copies calls report for the copies of lists and text in a file whose size is not bounded. See the
// comment of the package.
func copies(pass *analysis.Pass, file *ast.File, report func(token.Pos, string)) {
	g := growth{pass.TypesInfo, pass.TypesSizes}
	for at := range inspector.New([]*ast.File{file}).Root().Preorder((*ast.CallExpr)(nil)) {
		call := at.Node().(*ast.CallExpr)
		name := calledName(g.info, call.Fun)
		with, ok := copying[name]
		if !ok || g.isCopyCounted(at) {
			continue
		}
		args := call.Args
		if name == "strings.Join" || name == "bytes.Join" {
			args = args[:1] // the separator
		}
		if !slices.ContainsFunc(args, func(e ast.Expr) bool { return !g.isFewOf(e) }) {
			continue
		}
		report(call.Pos(), fmt.Sprintf("%s of a list that no constant bounds: use %s", name, with))
	}
}

// isCopyCounted reports whether a copy belongs to a graph or to the start of the program, or a
// block that it is in asks package membudget for memory.
func (g *growth) isCopyCounted(at inspector.Cursor) bool {
	inFunction := false
	for c := range at.Enclosing((*ast.FuncDecl)(nil), (*ast.BlockStmt)(nil), (*ast.CompositeLit)(nil)) {
		switch n := c.Node().(type) {
		case *ast.CompositeLit:
			if nameOf(g.info.TypeOf(n)) == "Def" {
				return true // of an operation
			}
		case *ast.FuncDecl:
			inFunction = true
			if g.isForGraphs(n) {
				return true
			}
		case *ast.BlockStmt:
			if g.isCounted(n) {
				return true
			}
		}
	}
	return !inFunction
}

// isFewOf reports whether a list is small: its type is that of a few elements, or it is written
// out, a part or a copy of such lists, or made of the sizes of a shape.
func (g *growth) isFewOf(e ast.Expr) bool {
	e = ast.Unparen(e)
	if g.isFew(e) || isFewType(g.info.TypeOf(e)) {
		return true
	}
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return nameOf(g.info.TypeOf(e.X)) == "View" // its lists have an element for each dimension
	case *ast.CompositeLit:
		return true
	case *ast.SliceExpr:
		return g.isFewOf(e.X)
	case *ast.CallExpr:
		if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok && sel.Sel.Name == "Dims" && len(e.Args) == 0 {
			return true
		}
		_, copied := copying[calledName(g.info, e.Fun)]
		if copied || isBuiltin(g.info, e.Fun, "append") {
			return !slices.ContainsFunc(e.Args, func(a ast.Expr) bool { return !g.isFewOf(a) })
		}
	case *ast.Ident:
		v, ok := g.info.Uses[e].(*types.Var)
		return ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
	}
	return false
}

// isFewType reports whether a type is that of an element of a dataset, whose components are listed
// in an attribute, of arguments of any type, which belong to a text, or of a few such lists.
func isFewType(t types.Type) bool {
	list, ok := t.Underlying().(*types.Slice)
	if !ok {
		return false
	}
	elem := list.Elem()
	i, isInterface := types.Unalias(elem).(*types.Interface)
	return nameOf(t) == "element" || nameOf(elem) == "element" || isInterface && i.Empty() || isListOfTypes(elem)
}

func isListOfTypes(t types.Type) bool {
	list, ok := t.Underlying().(*types.Slice)
	return ok && nameOf(list.Elem()) == "DType"
}
