package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// site is the documentation.
type site struct {
	root  string
	pages map[string]*page  // by the path of the source, such as "docs/tutorial.md"
	files map[string][]byte // images, by their path
}

// page is a page of the site.
type page struct {
	source string // path of the file or the folder in the repository
	title  string
	body   template.HTML
	ids    map[string]bool // of headings
	links  []string        // paths of pages and files, with "#" and the heading
	texts  []section
}

// section is a part of a page for the search.
type section struct {
	Title string `json:"t"` // of the page, and of the section
	URL   string `json:"u"`
	Text  string `json:"x"`
}

// start is the first page, and menu the page whose lists are the menu of all pages.
const start, menu = "README.md", "docs/README.md"

// build reads the pages that are written for the site, and then all that they link to.
func build(root string) (*site, error) {
	s := &site{root: root, pages: map[string]*page{}, files: map[string][]byte{}}
	sources, err := fs.Glob(os.DirFS(root), "*.md")
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(name) == ".md" {
			rel, _ := filepath.Rel(root, name) // both have the same beginning
			sources = append(sources, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for len(sources) > 0 {
		source := sources[0]
		sources = sources[1:]
		if s.pages[source] != nil || s.files[source] != nil {
			continue
		}
		linked, err := s.add(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		sources = append(sources, linked...)
	}
	return s, nil
}

// add adds a page, a file of the repository, or a folder. It returns what it links to.
func (s *site) add(source string) ([]string, error) {
	name := filepath.Join(s.root, filepath.FromSlash(source))
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return s.addFolder(source, name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	switch path.Ext(source) {
	case ".png", ".svg":
		s.files[source] = b
		return nil, nil
	case ".md":
		return s.addMarkdown(source, b)
	}
	var body bytes.Buffer
	body.WriteString("<h1>" + template.HTMLEscapeString(source) + "</h1>\n<pre><code>")
	template.HTMLEscape(&body, b)
	body.WriteString("</code></pre>\n")
	s.pages[source] = &page{source: source, title: source, body: template.HTML(body.String())}
	return nil, nil
}

// addFolder adds the documentation of a Go package, or a list of the files of a folder.
func (s *site) addFolder(source, name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	p := &page{source: source, title: source}
	var body strings.Builder
	pkg, err := readPackage(source, name)
	if err != nil {
		return nil, err
	}
	if pkg != nil {
		pkg.write()
		s.pages[source] = &page{
			source: source, title: "package " + pkg.pkg.Name, body: template.HTML(pkg.body.String()),
			ids: pkg.ids, links: pkg.links, texts: pkg.texts,
		}
		return nil, nil // the list of packages links to all
	}
	fmt.Fprintf(&body, "<h1>%s</h1>\n<ul>\n", template.HTMLEscapeString(source))
	for _, e := range entries {
		member := path.Join(source, e.Name())
		if strings.HasPrefix(e.Name(), ".") || e.IsDir() && (e.Name() == "testdata" || e.Name() == "__pycache__") || !e.IsDir() && !shown(e.Name()) {
			continue
		}
		p.links = append(p.links, member)
		fmt.Fprintf(&body, "<li><a href=\"%s\">%s</a></li>\n", relative(source, member), template.HTMLEscapeString(e.Name()))
	}
	body.WriteString("</ul>\n")
	p.body = template.HTML(body.String())
	s.pages[source] = p
	return p.links, nil
}

// shown reports whether a file of a folder is text for readers.
func shown(name string) bool {
	return slices.Contains([]string{".go", ".md", ".py", ".sh", ".yaml", ".yml", ".toml", ".json", ".service", ".conf"}, path.Ext(name)) ||
		name == "Makefile" || name == "Dockerfile"
}

// url returns the path of a page or file within the site.
func url(source string) string {
	switch {
	case source == start:
		return "index.html"
	case source == ".":
		return "weft.html"
	case path.Ext(source) == ".md":
		return strings.TrimSuffix(source, ".md") + ".html"
	case path.Ext(source) == ".png" || path.Ext(source) == ".svg":
		return source
	}
	return source + ".html"
}

// relative returns the link from one page to another, which may have a heading.
func relative(from, to string) string {
	to, heading, _ := strings.Cut(to, "#")
	rel, err := filepath.Rel(path.Dir(url(from)), url(to))
	if err != nil {
		rel = url(to)
	}
	if heading != "" {
		rel += "#" + heading
	}
	return filepath.ToSlash(rel)
}

// check fails if a link leads nowhere, or a page cannot be reached from the first page.
func (s *site) check() error {
	var faults []string
	for _, p := range s.pages {
		for _, l := range p.links {
			to, heading, _ := strings.Cut(l, "#")
			target := s.pages[to]
			if target == nil && s.files[to] == nil || target != nil && heading != "" && !target.ids[heading] {
				faults = append(faults, fmt.Sprintf("%s: the link to %s leads nowhere", p.source, l))
			}
		}
	}
	reached, next := map[string]bool{}, []string{start, menu}
	for len(next) > 0 {
		p := s.pages[next[0]]
		next = next[1:]
		if p == nil || reached[p.source] {
			continue
		}
		reached[p.source] = true
		for _, l := range p.links {
			to, _, _ := strings.Cut(l, "#")
			next = append(next, to)
		}
	}
	for source := range s.pages {
		if !reached[source] {
			faults = append(faults, fmt.Sprintf("%s: no page links to it", source))
		}
	}
	if len(faults) > 0 {
		slices.Sort(faults)
		return fmt.Errorf("%s", strings.Join(faults, "\n"))
	}
	return nil
}

// write writes the site to a folder.
func (s *site) write(out string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	for _, name := range []string{"style.css", "search.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		if err := save(out, name, b); err != nil {
			return err
		}
	}
	for name, b := range s.files {
		if err := save(out, name, b); err != nil {
			return err
		}
	}
	var index []section
	for _, source := range slices.Sorted(keys(s.pages)) {
		p := s.pages[source]
		index = append(index, p.texts...)
		var b bytes.Buffer
		err := layout.Execute(&b, map[string]any{
			"Title": p.title, "Body": p.body, "Menu": s.menu(p), "Root": strings.Repeat("../", strings.Count(url(source), "/")),
		})
		if err != nil {
			return err
		}
		if err := save(out, url(source), b.Bytes()); err != nil {
			return err
		}
	}
	b, err := json.Marshal(index)
	if err != nil {
		return err
	}
	// a script, because pages that are files may not read others
	return save(out, "index.js", append(append([]byte("const pages = "), b...), ";\n"...))
}

func save(out, name string, b []byte) error {
	to := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}
