package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// module is the import path of the folder at the root of the site.
const module = "github.com/weft-ml/weft"

// packagePage is the documentation of a Go package as HTML.
type packagePage struct {
	source string // path of the folder
	pkg    *doc.Package
	fset   *token.FileSet
	print  *comment.Printer
	parse  *comment.Parser
	body   strings.Builder
	ids    map[string]bool
	links  []string // to other packages and their symbols
	texts  []section
}

// readPackage returns the documentation of the Go package in a folder, nil if it has none for other
// modules.
func readPackage(source, folder string) (*packagePage, error) {
	for _, folder := range strings.Split(source, "/") {
		if folder == "internal" || folder == "examples" {
			return nil, nil //nolint:nilnil // readers want the files
		}
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(fset, filepath.Base(name), text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if f.Name.Name == "main" {
			return nil, nil //nolint:nilnil // a program
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, nil //nolint:nilnil // no Go here
	}
	pkg, err := doc.NewFromFiles(fset, files, path.Join(module, source))
	if err != nil || pkg.Doc == "" {
		return nil, err
	}
	p := &packagePage{source: source, pkg: pkg, fset: fset, print: pkg.Printer(), parse: pkg.Parser(), ids: map[string]bool{}}
	p.print.HeadingLevel = 3
	p.print.DocLinkURL = p.linkURL
	return p, nil
}

// linkURL returns where the documentation of a symbol is: on this page, on that of another package
// of the module, or with the documentation of Go.
func (p *packagePage) linkURL(l *comment.DocLink) string {
	id := l.Name
	if l.Recv != "" {
		id = l.Recv + "." + l.Name
	}
	switch rest, ours := strings.CutPrefix(l.ImportPath, module); {
	case l.ImportPath == "":
		return "#" + id
	case ours && !strings.Contains(rest, "/internal/"):
		to := strings.Trim(rest, "/")
		if to == "" {
			to = "."
		}
		if id != "" {
			to += "#" + id
		}
		p.links = append(p.links, to)
		return relative(p.source, to)
	}
	return l.DefaultURL("https://pkg.go.dev")
}

// write writes the package: its text, then constants, variables, functions and types in the order
// of their names.
func (p *packagePage) write() {
	fmt.Fprintf(&p.body, "<h1>package %s</h1>\n<pre><code>import \"%s\"</code></pre>\n", p.pkg.Name, p.pkg.ImportPath)
	p.texts = append(p.texts, section{Title: "package " + p.pkg.Name, URL: url(p.source), Text: p.pkg.Synopsis(p.pkg.Doc)})
	p.comment(p.pkg.Doc)
	p.examples(p.pkg.Examples)
	p.values("Constants", p.pkg.Consts)
	p.values("Variables", p.pkg.Vars)
	if len(p.pkg.Funcs) > 0 {
		p.body.WriteString("<h2>Functions</h2>\n")
		p.functions(p.pkg.Funcs, "")
	}
	if len(p.pkg.Types) > 0 {
		p.body.WriteString("<h2>Types</h2>\n")
	}
	for _, t := range p.pkg.Types {
		p.heading(t.Name, t.Name, t.Doc)
		p.declaration(t.Decl)
		p.comment(t.Doc)
		p.examples(t.Examples)
		p.values("", t.Consts)
		p.values("", t.Vars)
		p.functions(t.Funcs, "")
		p.functions(t.Methods, t.Name+".")
	}
}

func (p *packagePage) functions(funcs []*doc.Func, receiver string) {
	for _, f := range funcs {
		p.heading(receiver+f.Name, "func "+receiver+f.Name, f.Doc)
		f.Decl.Body = nil
		p.declaration(f.Decl)
		p.comment(f.Doc)
		p.examples(f.Examples)
	}
}

func (p *packagePage) values(title string, values []*doc.Value) {
	if title != "" && len(values) > 0 {
		fmt.Fprintf(&p.body, "<h2>%s</h2>\n", title)
	}
	for _, v := range values {
		for _, name := range v.Names {
			fmt.Fprintf(&p.body, "<span id=\"%s\"></span>", name)
			p.ids[name] = true
		}
		p.declaration(v.Decl)
		p.comment(v.Doc)
	}
}

// heading writes the heading of a symbol, which the search finds.
func (p *packagePage) heading(id, title, text string) {
	fmt.Fprintf(&p.body, "<h3 id=\"%s\">%s</h3>\n", id, template.HTMLEscapeString(title))
	p.ids[id] = true
	p.texts = append(p.texts, section{Title: p.pkg.Name + "." + id, URL: url(p.source) + "#" + id, Text: p.pkg.Synopsis(text)})
}

func (p *packagePage) declaration(decl ast.Decl) {
	var text bytes.Buffer
	switch d := decl.(type) {
	case *ast.FuncDecl:
		d.Doc = nil
	case *ast.GenDecl:
		d.Doc = nil
	}
	if err := format.Node(&text, p.fset, decl); err != nil {
		fmt.Fprintf(&text, "%v", err)
	}
	p.code(text.String())
}

func (p *packagePage) code(text string) {
	fmt.Fprintf(&p.body, "<pre><code>%s</code></pre>\n", template.HTMLEscapeString(strings.TrimSpace(text)))
}

func (p *packagePage) comment(text string) { p.body.Write(p.print.HTML(p.parse.Parse(text))) }

func (p *packagePage) examples(examples []*doc.Example) {
	for _, e := range examples {
		var text bytes.Buffer
		if err := format.Node(&text, p.fset, e.Code); err != nil {
			fmt.Fprintf(&text, "%v", err)
		}
		body := strings.TrimSpace(text.String())
		if inner, ok := strings.CutPrefix(body, "{"); ok { // the block of the function
			body = strings.ReplaceAll(strings.TrimSuffix(inner, "}"), "\n\t", "\n")
		}
		p.body.WriteString("<details><summary>Example</summary>\n")
		p.comment(e.Doc)
		p.code(body)
		if e.Output != "" {
			p.body.WriteString("<p>It prints</p>\n")
			p.code(e.Output)
		}
		p.body.WriteString("</details>\n")
	}
}
