package layers

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/weft-ml/weft"
	root   = "../.."
)

// A source is what the tests need to know of one package: its files that are no tests, and their import blocks.
type source struct {
	pkg   string // path below the module root
	name  string
	docs  []string            // files with a package comment
	using map[string][]string // import path → files
}

func TestImportsFollowThePolicy(t *testing.T) {
	for _, src := range parse(t) {
		for _, fault := range check(src) {
			t.Error(fault)
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	for _, src := range parse(t) {
		switch len(src.docs) {
		case 0:
			t.Errorf("%s: no package comment", src.pkg)
		case 1:
		default:
			t.Errorf("%s: package comments in %s: keep one", src.pkg, strings.Join(src.docs, ", "))
		}
	}
}

func TestNamesSayWhatIsInside(t *testing.T) {
	for _, src := range parse(t) {
		if slices.Contains(drawers, path.Base(src.pkg)) || slices.Contains(drawers, src.name) {
			t.Errorf("%s: name the package after what it holds", src.pkg)
		}
	}
}

func TestPlantedViolationsAreFound(t *testing.T) {
	for _, tt := range []struct{ pkg, imports, want string }{
		{"internal/executor", module + "/kernels/math", "may not import kernels/math"},
		{"internal/executor", module + "/internal/worker", "may not import internal/worker"},
		{"internal/master", module + "/internal/worker", "may not import internal/worker"},
		{"kernels/math", module + "/graph", "may not import graph"},
		{"kernels/math", module + "/kernels/array", "may not import kernels/array"},
		{"graph", module + "/kernel", "may not import kernel"},
		{".", module + "/server", "may not import server"},
		{"internal/worker", "google.golang.org/grpc/codes", "may not use gRPC"},
		{"internal/place", "time", "must stay pure"},
		{"internal/place", "net/http", "must stay pure"},
		{"internal/somethingnew", "fmt", "no row"},
	} {
		got := check(source{pkg: tt.pkg, using: map[string][]string{tt.imports: {"x.go"}}})
		if len(got) != 1 || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s imports %s: got %q, want one fault with %q", tt.pkg, tt.imports, got, tt.want)
		}
	}
}

// TestEveryRowHasAPackage finds rows of packages that are gone.
func TestEveryRowHasAPackage(t *testing.T) {
	sources := parse(t)
	for _, r := range policy {
		if !slices.ContainsFunc(sources, func(src source) bool { return match(r.pkg, src.pkg) }) {
			t.Errorf("%s: there is no such package", r.pkg)
		}
	}
}

// check returns what is wrong with the imports of one package, in the order of the import paths.
func check(src source) []string {
	r, ok := lookup(src.pkg)
	if !ok {
		return []string{src.pkg + ": no row in the policy table: decide where the package belongs"}
	}
	var faults []string
	for imported, files := range src.using {
		at := src.pkg + "/" + files[0]
		own, ours := strings.CutPrefix(imported, module)
		own = cmp.Or(strings.TrimPrefix(own, "/"), ".")
		allowed := func(pattern string) bool { return match(pattern, own) }
		switch {
		case ours && !slices.ContainsFunc(r.may, allowed):
			faults = append(faults, fmt.Sprintf("%s: may not import %s", at, own))
		case imported == "google.golang.org/grpc" || strings.HasPrefix(imported, "google.golang.org/grpc/"):
			faults = append(faults, fmt.Sprintf("%s: may not use gRPC (%s)", at, imported)) // only tests compare with it
		case r.pure && slices.ContainsFunc(impure, func(p string) bool { return match(p, imported) }):
			faults = append(faults, fmt.Sprintf("%s: must stay pure, but imports %s", at, imported))
		}
	}
	slices.Sort(faults)
	return faults
}

// parse reads the import blocks of every package in the module, in the order of their paths.
func parse(t *testing.T) []source {
	t.Helper()
	var sources []source
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name := entry.Name()
		if dir != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || isModule(dir)) {
			return filepath.SkipDir
		}
		src, err := parseDir(dir)
		if err == nil && src.name != "" {
			sources = append(sources, src)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 2 {
		t.Fatalf("found %d packages below %s", len(sources), root)
	}
	return sources
}

// isModule reports whether a folder is a module of its own, which this policy says nothing about.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func parseDir(dir string) (source, error) {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return source{}, err
	}
	src := source{pkg: filepath.ToSlash(rel), using: map[string][]string{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return source{}, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return source{}, err
		}
		if isProgram(parsed) {
			continue
		}
		if err := src.add(filepath.Base(file), parsed); err != nil {
			return source{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	return src, nil
}

// isProgram reports whether a file is a generator that go run starts and the package beside it does not contain.
func isProgram(file *ast.File) bool {
	return slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		return c.Pos() < file.Package && strings.HasPrefix(c.List[0].Text, "//go:build ignore")
	})
}

func (s *source) add(file string, parsed *ast.File) error {
	s.name = parsed.Name.Name
	if parsed.Doc != nil {
		s.docs = append(s.docs, file)
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		s.using[imported] = append(s.using[imported], file)
	}
	return nil
}
