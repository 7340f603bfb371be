package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentation builds the site of the repository: all links lead somewhere, and all pages can
// be reached.
func TestDocumentation(t *testing.T) {
	s, err := build("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := s.write(out); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"index.html":                    `<link rel="stylesheet" href="style.css">`,
		"docs/tutorial.html":            `<a href="guides/serving.html">`,
		"docs/guides/serving.html":      `aria-current="page"`,
		"docs/reference/errors.html":    `<h2 id="invalid_argument">`,
		"docs/dashboard-hang.png":       "PNG",
		"examples/tutorial.html":        `<a href="tutorial/tutorial_test.go.html">`,
		"examples/tutorial/doc.go.html": "package tutorial",
		"nn.html":                       `<h3 id="Model.Predict">func Model.Predict</h3>`,
		"train.html":                    `href="op.html`,
		"index.js":                      `"t":"Tutorial: from a constant to a served model"`,
	} {
		b, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(file)))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s lacks %q; %v", file, want, err)
		}
	}
}

// TestCheck checks that broken links and lost pages are found.
func TestCheck(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"README.md":         "# Start\n\n[docs](docs/README.md#more), [code](main.go)\n",
		"main.go":           "package main\n",
		"docs/README.md":    "# Docs\n\n## Less\n\n[x](x.md#a-b-115)\n",
		"docs/x.md":         "# X\n\n## A `b` 1.15\n",
		"docs/forgotten.md": "# Forgotten\n",
	} {
		if err := save(root, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := build(root)
	if err != nil {
		t.Fatal(err)
	}
	want := "README.md: the link to docs/README.md#more leads nowhere\ndocs/forgotten.md: no page links to it"
	if err := s.check(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := save(root, "docs/x.md", []byte("[y](y.md)\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := build(root); err == nil || !strings.Contains(err.Error(), "docs/y.md") {
		t.Errorf("got %v, want the name of the file that does not exist", err)
	}
}
