package main

import (
	"bytes"
	"fmt"
	"html/template"
	"iter"
	"maps"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// ids makes the names of headings as GitHub does, because the links of the pages use them.
type ids struct{ seen map[string]bool }

var dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Generate implements parser.IDs.
func (i ids) Generate(value []byte, _ ast.NodeKind) []byte {
	base := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(string(value))), ""), " ", "-")
	name := base
	for n := 1; i.seen[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	i.seen[name] = true
	return []byte(name)
}

// Put implements parser.IDs.
func (i ids) Put(value []byte) { i.seen[string(value)] = true }

// addMarkdown adds a page of Markdown.
func (s *site) addMarkdown(source string, b []byte) ([]string, error) {
	p := &page{source: source, title: source, ids: map[string]bool{}}
	doc := markdown.Parser().Parse(text.NewReader(b), parser.WithContext(parser.NewContext(parser.WithIDs(ids{p.ids}))))
	current := &section{Title: source, URL: url(source)}
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			title := plain(n, b)
			if n.Level == 1 {
				p.title = title
				current.Title = title
				break
			}
			p.texts = append(p.texts, *current)
			id, _ := n.AttributeString("id")
			name, _ := id.([]byte)
			current = &section{Title: p.title + " · " + title, URL: url(source) + "#" + string(name)}
		case *ast.Link:
			n.Destination = []byte(p.follow(string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(p.follow(string(n.Destination)))
		case *ast.Text:
			current.Text += string(n.Segment.Value(b)) + " "
		case *ast.FencedCodeBlock:
			current.Text += string(n.Lines().Value(b)) + " "
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	p.texts = append(p.texts, *current)
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, b, doc); err != nil {
		return nil, err
	}
	// wide tables scroll within the page
	html := strings.NewReplacer("<table>", `<div class="wide"><table>`, "</table>", "</table></div>").Replace(body.String())
	p.body = template.HTML(html)
	s.pages[source] = p
	var linked []string
	for _, l := range p.links {
		to, _, _ := strings.Cut(l, "#")
		linked = append(linked, to)
	}
	return linked, nil
}

// follow records a link of the page and returns that of the site.
func (p *page) follow(to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return to
	}
	file, heading, _ := strings.Cut(to, "#")
	target := p.source
	if file != "" {
		target = path.Join(path.Dir(p.source), file)
	}
	if heading != "" {
		target += "#" + heading
	}
	p.links = append(p.links, target)
	return relative(p.source, target)
}

// plain returns the text of a node.
func plain(n ast.Node, b []byte) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			out.Write(t.Segment.Value(b))
		} else {
			out.WriteString(plain(c, b))
		}
	}
	return out.String()
}

// menu returns the lists of the page with all pages, with links from another page.
func (s *site) menu(from *page) template.HTML {
	m := s.pages[menu]
	if m == nil {
		return ""
	}
	base := path.Dir(url(menu))
	return template.HTML(href.ReplaceAllStringFunc(string(m.body), func(link string) string {
		to := href.FindStringSubmatch(link)[1]
		if strings.Contains(to, "://") {
			return link
		}
		rel := relativeURL(path.Dir(url(from.source)), path.Join(base, to))
		if path.Join(base, to) == url(from.source) {
			return fmt.Sprintf(`href="%s" aria-current="page"`, rel)
		}
		return fmt.Sprintf("href=%q", rel)
	}))
}

var href = regexp.MustCompile(`href="([^"]*)"`)

// relativeURL returns the link from a folder to a page of the site.
func relativeURL(folder, to string) string {
	if folder == "." {
		return to
	}
	return strings.Repeat("../", strings.Count(folder, "/")+1) + to
}

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
