package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-ml/weft/status"
)

// root is the folder of the module.
const root = "../../.."

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// pages returns the pages of Markdown of the module, by their paths relative to root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path) // both are relative
		out[rel] = fenced.ReplaceAllString(string(text), "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// anchors returns the names that links may use for the headings of a page.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		name := strings.ToLower(strings.TrimSpace(link.ReplaceAllString(m[1], "]")))
		out[strings.ReplaceAll(dropped.ReplaceAllString(name, ""), " ", "-")] = true
	}
	return out
}

// TestLinks fails for relative links to files or headings that do not exist.
func TestLinks(t *testing.T) {
	all := pages(t)
	if len(all) < 30 {
		t.Fatalf("found %d pages", len(all))
	}
	for path, page := range all {
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			if why := broken(all, path, m[1]); why != "" {
				t.Errorf("%s: link to %s: %s", path, m[1], why)
			}
		}
	}
}

// broken says why a link leads nowhere; "" if it does not.
func broken(all map[string]string, from, to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(to, "#")
	target := from
	if file != "" {
		target = filepath.Join(filepath.Dir(from), file)
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		return "no such file"
	}
	if page, ok := all[target]; ok && anchor != "" && !anchors(page)[anchor] {
		return "no such heading"
	}
	return ""
}

// TestBroken checks that the test finds broken links.
func TestBroken(t *testing.T) {
	all := map[string]string{"README.md": "# A `b`: c\n\n## Run it\n"}
	for to, want := range map[string]string{
		"https://example.org/x": "", "go.mod": "", "#run-it": "", "#a-b-c": "", "README.md#run-it": "",
		"#walk": "no such heading", "missing.md": "no such file", "docs/missing.md#x": "no such file",
	} {
		if got := broken(all, "README.md", to); got != want {
			t.Errorf("%s: got %q, want %q", to, got, want)
		}
	}
}

// TestErrorCodes fails if the page of error codes lacks a code, or has a wrong number or name.
func TestErrorCodes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| ([A-Z_]+) \\| (\\d+) \\| `(\\w+)Error` \\|$")
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) != int(status.Unauthenticated) {
		t.Errorf("the page has %d codes", len(rows))
	}
	for i, m := range rows {
		code := status.Code(i + 1)
		camel := ""
		for word := range strings.SplitSeq(strings.ToLower(m[1]), "_") {
			camel += strings.ToUpper(word[:1]) + word[1:]
		}
		if code.String() != m[1] || camel != m[3] {
			t.Errorf("row %d is %v, want %v", i, m[1:], code)
		}
		if !strings.Contains(string(text), "\n## "+m[1]+"\n") {
			t.Errorf("%s has no section", m[1])
		}
	}
}
