package importpolicy

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
	root   = "../../.."
)

// A source is what the tests need to know of one package: its files that are no tests, and their
// import blocks.
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

func TestPackageNames(t *testing.T) {
	for _, src := range parse(t) {
		if slices.Contains(drawers, path.Base(src.pkg)) || slices.Contains(drawers, src.name) {
			t.Errorf("%s: name the package after what it holds", src.pkg)
		}
		if slices.Contains(standard, src.name) && !slices.Contains(shadowing, src.pkg) {
			t.Errorf("%s: the standard library has a package of this name", src.pkg)
		}
	}
}

// shadowing are the packages that may have the name of a package of the standard library.
var shadowing = []string{
	"internal/transport/rpc", // net/rpc is frozen and not used here
}

func TestPlantedViolationsAreFound(t *testing.T) {
	for _, tt := range []struct{ pkg, imports, want string }{
		{"internal/runtime/executor", module + "/internal/kernels/mathops", "may not import internal/kernels/mathops"},
		{"internal/runtime/executor", module + "/internal/role/worker", "may not import internal/role/worker"},
		{"internal/role/master", module + "/internal/role/worker", "may not import internal/role/worker"},
		{"internal/kernels/mathops", module + "/graph", "may not import graph"},
		{"internal/kernels/mathops", module + "/internal/kernels/array", "may not import internal/kernels/array"},
		{"internal/numeric/simd", module + "/kernel", "may not import kernel"},
		{"graph", module + "/kernel", "may not import kernel"},
		{"tensor", module + "/opdef", "may not import opdef"},
		{".", module + "/server", "may not import server"},
		{"internal/role/worker", "google.golang.org/grpc/codes", "may not use gRPC"},
		{"internal/pass/place", "time", "must stay pure"},
		{"internal/pass/place", "net/http", "must stay pure"},
		{"internal/somethingnew", "fmt", "in no group"},
	} {
		got := check(source{pkg: tt.pkg, using: map[string][]string{tt.imports: {"x.go"}}})
		if len(got) != 1 || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s imports %s: got %q, want one fault with %q", tt.pkg, tt.imports, got, tt.want)
		}
	}
}

// TestEveryPatternMatches finds groups and exceptions of packages that are gone.
func TestEveryPatternMatches(t *testing.T) {
	sources := parse(t)
	patterns := slices.Concat(groups...)
	for _, e := range exceptions {
		patterns = append(patterns, e.pkg)
	}
	for _, p := range slices.Concat(patterns, pure) {
		if !slices.ContainsFunc(sources, func(src source) bool { return match(p, src.pkg) }) {
			t.Errorf("%s: there is no such package", p)
		}
	}
}

// check returns what is wrong with the imports of one package, in the order of the import paths.
func check(src source) []string {
	if groupOf(src.pkg) < 0 {
		return []string{src.pkg + ": in no group of policy_test.go: decide where the package belongs"}
	}
	var faults []string
	for imported, files := range src.using {
		at := src.pkg + "/" + files[0]
		own, ours := strings.CutPrefix(imported, module)
		own = cmp.Or(strings.TrimPrefix(own, "/"), ".")
		switch {
		case ours && !allowed(src.pkg, own):
			faults = append(faults, fmt.Sprintf("%s: may not import %s", at, own))
		case imported == "google.golang.org/grpc" || strings.HasPrefix(imported, "google.golang.org/grpc/"):
			// only tests compare with it
			faults = append(faults, fmt.Sprintf("%s: may not use gRPC (%s)", at, imported))
		case matchAny(pure, src.pkg) && matchAny(impure, imported):
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

// isProgram reports whether a file is a generator that go run starts and the package beside it does
// not contain.
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
