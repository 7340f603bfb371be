package importpolicy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mention is something that a row of the table of component tests says: a package, a test in it, or
// a case of its scripts.
var mention = regexp.MustCompile("`([a-z0-9/.]+)`|\\b((?:Test|Benchmark)[A-Z]\\w*)|\"([^\"]+)\"|\\b(test_\\w+)")

// TestComponentTestsExist looks for every test that docs/internals/component-tests.md names.
func TestComponentTestsExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/internals/component-tests.md"))
	if err != nil {
		t.Fatal(err)
	}
	heading := "" // the package that the heading of a table names
	found := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 || strings.HasPrefix(strings.TrimSpace(cells[1]), "none") {
			continue
		}
		pkg := heading
		for _, m := range mention.FindAllStringSubmatch(cells[1], -1) {
			switch {
			case m[1] != "" && !strings.HasPrefix(m[1], "testdata/"):
				pkg = m[1]
				if strings.HasPrefix(strings.TrimSpace(cells[0]), "case") {
					heading = pkg
				}
			case m[1] != "":
				if _, err := os.Stat(filepath.Join(root, pkg, m[1])); err != nil && !strings.Contains(m[1], "*") {
					t.Errorf("%s: %v", strings.TrimSpace(cells[0]), err)
				}
			default:
				found++
				if !mentioned(t, pkg, m[2], m[3], m[4]) {
					t.Errorf("%s: there is no %s%s%s in %s", strings.TrimSpace(cells[0]), m[2], m[3], m[4], pkg)
				}
			}
		}
		if strings.HasPrefix(strings.TrimSpace(cells[0]), "case") && !strings.Contains(cells[1], "`") {
			heading = ""
		}
	}
	if found < 100 {
		t.Errorf("the table names %d tests", found)
	}
}

// mentioned reports whether a package has a test, a case of a script, or a test of Python.
func mentioned(t *testing.T, pkg, test, title, python string) bool {
	t.Helper()
	glob, want := "*_test.go", "func "+test+"("
	switch {
	case title != "":
		glob, want = "testdata/*.txt", "# "+title+"\n"
	case python != "":
		glob, want = "test_*.py", "def "+python+"("
	}
	files, err := filepath.Glob(filepath.Join(root, pkg, glob))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), want) {
			return true
		}
	}
	return false
}
