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

import (
	"slices"
	"strings"
)

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

type Shape []int64

type list struct{ all []int }

func h(n int, text string, numbers []int64, lists [][]int64, shape Shape, l *list) {
	var out []int
	var words []string
	counts := map[int64]int{}
	for i := range n {
		out = append(out, i)  // bad
		l.all = append(l.all, i) // bad
		counts[int64(i)]++    // bad
		counts[int64(i)] = 1  // bad
		out = append(out, i) //sizedmake:ok i is below 8
		var own []int
		own = append(own, i)
	}
	for i := range text {
		words = append(words, text[i:i+1]) // bad
	}
	for i := range numbers {
		out = append(out, i)
		words = append(words, text) // bad: larger than a number
		for range numbers {
			out = append(out, i) // bad: as many as squares of numbers
		}
	}
	for _, numbers := range lists {
		for range numbers {
			out = append(out, 1)
		}
	}
	for i := 0; i < 10 && i < n; i++ {
		out = append(out, i)
	}
	for range shape {
		out = append(out, 1)
		counts[1]++
	}
	room := make([]int, 0, n) //sizedmake:ok n is small
	for i := range n {
		room = append(room, i)
	}
	for n > 0 {
		n--
		out = append(out, n) // bad
	}
}

type Def struct{ attrs []string }

type View struct{ Dims []int }

var names = []string{"a", "b"}

var more = slices.Concat(names, nil)

func copied(n []int, s []string, shape Shape, v View) {
	_ = slices.Clone(n)        // bad
	_ = slices.Concat(n, n)    // bad
	_ = strings.Join(s, ",")   // bad
	_ = slices.Concat(names, s) // bad
	_ = slices.Clone(shape)
	_ = slices.Concat(shape[1:], Shape{1})
	_ = slices.Clone(v.Dims)
	_ = strings.Join(names, ",")
	_ = Def{attrs: slices.Concat(names, s)}
	_ = slices.Clone(n) //sizedmake:ok n is small
}

type ShapeContext struct{ n int }

func shapes(c *ShapeContext) (out []int) {
	for i := range c.n {
		out = append(out, i)
	}
	return out
}
`

// library imports packages of the standard library, with the functions that source calls.
type library struct{}

const (
	stringsSource = "package strings\nfunc Repeat(s string, n int) string\nfunc Join(s []string, separator string) string"
	slicesSource  = "package slices\nfunc Clone[S ~[]E, E any](s S) S { return s }\nfunc Concat[S ~[]E, E any](s ...S) S { return s[0] }"
)

func (library) Import(path string) (*types.Package, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, map[string]string{"strings": stringsSource, "slices": slicesSource}[path], 0)
	if err != nil {
		return nil, err
	}
	config := types.Config{IgnoreFuncBodies: true}
	return config.Check(path, fset, []*ast.File{file}, nil)
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
	config := types.Config{Importer: library{}}
	if _, err := config.Check("p", fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	var got, want []int
	pass := &analysis.Pass{
		Fset: fset, Files: []*ast.File{file}, TypesInfo: info, TypesSizes: types.SizesFor("gc", "amd64"),
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
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("lines %v are reported, want %v", got, want)
	}
}
