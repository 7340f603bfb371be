package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// listPackage returns the exported identifiers of the package in a folder, sorted: functions and
// methods with their signatures, types, fields of structs and methods of interfaces, constants and
// variables. Files for other systems are included, and what they repeat is listed once.
func listPackage(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	l := &lister{fset: token.NewFileSet()}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(l.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			l.decl(decl)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines), nil
}

type lister struct {
	fset  *token.FileSet
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *lister) decl(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		l.function(d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				l.typeSpec(s)
			case *ast.ValueSpec:
				l.values(d.Tok, s)
			}
		}
	}
}

func (l *lister) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	if d.Recv == nil {
		l.add("func %s%s%s", d.Name.Name, l.typeParams(d.Type.TypeParams), l.signature(d.Type))
		return
	}
	receiver := l.print(d.Recv.List[0].Type)
	if ast.IsExported(strings.TrimLeft(receiver, "*")) {
		l.add("method (%s) %s%s", receiver, d.Name.Name, l.signature(d.Type))
	}
}

func (l *lister) typeSpec(s *ast.TypeSpec) {
	if !s.Name.IsExported() {
		return
	}
	name := s.Name.Name + l.typeParams(s.TypeParams)
	if s.Assign.IsValid() {
		name += " ="
	}
	switch t := s.Type.(type) {
	case *ast.StructType:
		l.add("type %s struct", name)
		l.fields(s.Name.Name, t.Fields)
	case *ast.InterfaceType:
		l.add("type %s interface", name)
		l.fields(s.Name.Name, t.Methods)
	default:
		l.add("type %s %s", name, l.print(t))
	}
}

// fields adds the exported fields of a struct, or the exported methods and the embedded types of an
// interface.
func (l *lister) fields(name string, fields *ast.FieldList) {
	for _, f := range fields.List {
		text := l.print(f.Type)
		if len(f.Names) == 0 {
			if embedded := text[strings.LastIndexAny(text, "*.")+1:]; ast.IsExported(embedded) || strings.ContainsAny(text, "|~") {
				l.add("type %s, embeds %s", name, text)
			}
		}
		for _, n := range f.Names {
			if !n.IsExported() {
				continue
			}
			if method, ok := f.Type.(*ast.FuncType); ok {
				text = "func" + l.signature(method)
			}
			l.add("type %s, %s %s", name, n.Name, text)
		}
	}
}

func (l *lister) values(tok token.Token, s *ast.ValueSpec) {
	for _, n := range s.Names {
		if !n.IsExported() {
			continue
		}
		line := tok.String() + " " + n.Name
		if s.Type != nil {
			line += " " + l.print(s.Type)
		}
		l.add("%s", line)
	}
}

// signature returns the parameters and results of a function, without the names of parameters.
func (l *lister) signature(t *ast.FuncType) string {
	params, results := l.types(t.Params), l.types(t.Results)
	switch {
	case t.Results == nil:
		return params
	case t.Results.NumFields() == 1:
		return params + " " + results[1:len(results)-1]
	}
	return params + " " + results
}

// types returns the types of a list of parameters or results, in parentheses.
func (l *lister) types(list *ast.FieldList) string {
	var parts []string
	if list != nil {
		for _, f := range list.List {
			for range max(1, len(f.Names)) {
				parts = append(parts, l.print(f.Type))
			}
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// typeParams returns a list of type parameters in brackets, "" for none.
func (l *lister) typeParams(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var parts []string
	for _, f := range list.List {
		for _, n := range f.Names {
			parts = append(parts, n.Name+" "+l.print(f.Type))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// print returns a type on one line.
func (l *lister) print(n ast.Node) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.fset, n); err != nil {
		panic(err) // a type that was parsed can be printed
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
