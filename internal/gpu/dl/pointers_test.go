//go:build gpu

package dl

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestPointersAreConvertedInCalls checks the rule of the package comment in all packages that pass
// pointers to C.
func TestPointersAreConvertedInCalls(t *testing.T) {
	conversions := 0
	for _, pkg := range []string{".", "../cuda", "../opencl", "../nvrtc"} {
		files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %d files", pkg, err, len(files))
		}
		fset := token.NewFileSet()
		var parsed []*ast.File
		for _, path := range files {
			f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		escaping := escapingFunctions(parsed)
		for _, f := range parsed {
			n, faults := checkPointers(fset, f, escaping)
			conversions += n
			for _, fault := range faults {
				t.Error(fault)
			}
		}
	}
	if conversions < 50 {
		t.Errorf("found %d conversions", conversions)
	}
}

func TestPlantedPointersAreFound(t *testing.T) {
	const head = "package x\n\n//go:uintptrescapes\nfunc call(args ...uintptr) {}\n\nfunc other(args ...uintptr) {}\n\n"
	for code, want := range map[string]int{
		"func f() { x := 1; call(uintptr(unsafe.Pointer(&x))) }":                               0,
		"func f() { x := 1; dl.Call(0, uintptr(unsafe.Pointer(&x))) }":                         0,
		"func f() { x := 1; other(uintptr(unsafe.Pointer(&x))) }":                              1,
		"func f(x *int) uintptr { return uintptr(unsafe.Pointer(x)) }":                         1,
		"func f() { x := 1; y := uintptr(unsafe.Pointer(&x)); call(y) }":                       1,
		"func f() { x := 1; y := unsafe.Pointer(&x); call(uintptr(y)) }":                       0,
		"func f() { x := 1; y := unsafe.Pointer(&x); other(uintptr(y)) }":                      1,
		"func f() { x := 1; call(1 + uintptr(unsafe.Pointer(&x))) }":                           1,
		"func f(o *obj) { o.at = uintptr(unsafe.Pointer(&o.x)) // on the heap: a part of o\n}": 0,
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", head+code, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if _, faults := checkPointers(fset, f, escapingFunctions([]*ast.File{f})); len(faults) != want {
			t.Errorf("%s: %v, want %d", code, faults, want)
		}
	}
}

// escapingFunctions returns the names of functions that are marked go:uintptrescapes.
func escapingFunctions(files []*ast.File) map[string]bool {
	names := map[string]bool{"dl.Call": true, "purego.SyscallN": true}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Doc == nil {
				continue
			}
			for _, c := range fn.Doc.List {
				if c.Text == "//go:uintptrescapes" {
					names[fn.Name.Name] = true
				}
			}
		}
	}
	return names
}

// checkPointers returns the number of pointers that a file converts to numbers, and those that are
// converted elsewhere than in a call of an escaping function.
func checkPointers(fset *token.FileSet, f *ast.File, escaping map[string]bool) (count int, faults []string) {
	pointers := map[string]bool{} // variables of type unsafe.Pointer
	allowed := map[*ast.CallExpr]bool{}
	heap := map[int]bool{} // lines with the comment
	for _, group := range f.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "// on the heap: ") {
				heap[fset.Position(c.Pos()).Line] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, rhs := range n.Rhs {
				if call, ok := rhs.(*ast.CallExpr); ok && name(call.Fun) == "unsafe.Pointer" && i < len(n.Lhs) {
					pointers[name(n.Lhs[i])] = true
				}
			}
		case *ast.CallExpr:
			if !escaping[name(n.Fun)] {
				break
			}
			for _, a := range n.Args {
				if call, ok := a.(*ast.CallExpr); ok {
					allowed[call] = true
				}
			}
		}
		return true
	})
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || name(call.Fun) != "uintptr" || len(call.Args) != 1 {
			return true
		}
		inner, isCall := call.Args[0].(*ast.CallExpr)
		if isCall && name(inner.Fun) == "unsafe.Pointer" || pointers[name(call.Args[0])] {
			count++
			if at := fset.Position(call.Pos()); !allowed[call] && !heap[at.Line] {
				faults = append(faults, at.String()+": a pointer becomes a number outside the arguments of a call that lets it escape")
			}
		}
		return true
	})
	return count, faults
}

// name returns the text of a name, as dl.Call, or "".
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}
