package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
)

// source has the comment "bad" on each line that must be reported.
const source = `package p

import "strings"

const width = 64

func f(n int, s []string) {
	_ = make([]int, n)           // bad
	_ = make([]int, 0, len(s))   // bad
	_ = make([]int, (n + 1) * 2) // bad
	_ = make(map[string]int, n)  // bad
	_ = make(chan int, n)        // bad
	_ = strings.Repeat("x", n)   // bad
	_ = make([]int, width)
	_ = make([]int, 0, 2*width)
	_ = make([]int, min(n, width))
	_ = make(map[string]int)
	_ = strings.Repeat("x", width)
	_ = make([]int, n) //sizedmake:ok n is the rank of a shape
	//sizedmake:ok n is the rank of a shape
	_ = make([]int, n)
	_ = make([]int, n) // bad: sizedmake:ok
	_ = g(make([]int, n)) // bad
	make := func(n int) int { return n }
	_ = make(n)
}

func g(x []int) []int { return x }
`

// onlyStrings imports package strings, with the one function that source calls.
type onlyStrings struct{}

func (onlyStrings) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, path)
	param := func(t types.BasicKind) *types.Var { return types.NewVar(token.NoPos, pkg, "", types.Typ[t]) }
	sig := types.NewSignatureType(nil, nil, nil, types.NewTuple(param(types.String), param(types.Int)), types.NewTuple(param(types.String)), false)
	pkg.Scope().Insert(types.NewFunc(token.NoPos, pkg, "Repeat", sig))
	pkg.MarkComplete()
	return pkg, nil
}

func TestAnalyzer(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: onlyStrings{}}
	if _, err := config.Check("p", fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	var got, want []int
	pass := &analysis.Pass{
		Fset: fset, Files: []*ast.File{file}, TypesInfo: info,
		Report: func(d analysis.Diagnostic) { got = append(got, fset.Position(d.Pos).Line) },
	}
	if _, err := run(pass); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(source, "\n") {
		if strings.Contains(line, "// bad") {
			want = append(want, i+1)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines %v are reported, want %v", got, want)
	}
}
