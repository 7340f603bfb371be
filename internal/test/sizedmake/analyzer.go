package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

var analyzer = &analysis.Analyzer{
	Name: "sizedmake",
	Doc:  "reports allocations of unbounded size that package membudget does not count",
	Run:  run,
}

// accepted is the comment for allocations that are bounded by something else.
const accepted = "//sizedmake:ok "

// repeating are functions of the standard library that return as much as an argument says.
var repeating = map[string]string{
	"strings.Repeat": "a Meter, before the call", "bytes.Repeat": "a Meter, before the call",
	"slices.Repeat": "membudget.Make", "slices.Grow": "membudget.Make",
}

func run(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		if strings.HasSuffix(pass.Fset.Position(file.Pos()).Filename, "_test.go") {
			continue
		}
		ok := acceptedLines(pass.Fset, file)
		ast.Inspect(file, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			if !isCall {
				return true
			}
			what := fault(pass.TypesInfo, call)
			if line := pass.Fset.Position(call.Pos()).Line; what != "" && !ok[line] && !ok[line-1] {
				pass.Reportf(call.Pos(), "%s", what)
			}
			return true
		})
		report := func(pos token.Pos, what string) {
			if line := pass.Fset.Position(pos).Line; !ok[line] && !ok[line-1] {
				pass.Reportf(pos, "%s", what)
			}
		}
		growths(pass, file, report)
		copies(pass, file, report)
	}
	return nil, nil //nolint:nilnil // there is no result
}

// acceptedLines returns the lines with the comment for accepted allocations. The comment needs a
// reason.
func acceptedLines(fset *token.FileSet, file *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if reason, ok := strings.CutPrefix(c.Text, accepted); ok && strings.TrimSpace(reason) != "" {
				lines[fset.Position(c.Pos()).Line] = true
			}
		}
	}
	return lines
}

// fault returns what is wrong with a call, or "".
func fault(info *types.Info, call *ast.CallExpr) string {
	if isBuiltin(info, call.Fun, "make") {
		if len(call.Args) < 2 || allConstant(info, call.Args[1:]) {
			return ""
		}
		made := info.TypeOf(call.Args[0])
		if named, ok := made.(*types.Named); ok && named.Obj().Name() == "Shape" {
			return "" // its length is a rank, which is at most 254
		}
		switch made.Underlying().(type) {
		case *types.Slice:
			return "make with a size that is no constant: use membudget.Make"
		case *types.Map, *types.Chan:
			return "make with a size that is no constant: leave the size out, or bound it with min and a constant"
		}
		return ""
	}
	name := calledName(info, call.Fun)
	if with, ok := repeating[name]; ok && !allConstant(info, call.Args[1:]) {
		return fmt.Sprintf("%s with a size that is no constant: use %s", name, with)
	}
	return ""
}

// allConstant reports whether all sizes are constants, or the smaller one of a constant and another
// number.
func allConstant(info *types.Info, sizes []ast.Expr) bool {
	for _, size := range sizes {
		if info.Types[size].Value == nil && !isBounded(info, size) {
			return false
		}
	}
	return true
}

// isBounded reports whether an expression is a call of min with a constant.
func isBounded(info *types.Info, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !isBuiltin(info, call.Fun, "min") {
		return false
	}
	for _, arg := range call.Args {
		if info.Types[arg].Value != nil {
			return true
		}
	}
	return false
}

func isBuiltin(info *types.Info, fun ast.Expr, name string) bool {
	id, ok := ast.Unparen(fun).(*ast.Ident)
	if !ok || id.Name != name {
		return false
	}
	_, ok = info.Uses[id].(*types.Builtin)
	return ok
}

// calledName returns the name of a function of a package, such as "strings.Repeat".
func calledName(info *types.Info, fun ast.Expr) string {
	fun = ast.Unparen(fun)
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f, ok := info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Pkg() == nil {
		return ""
	}
	return f.Pkg().Name() + "." + f.Name()
}
