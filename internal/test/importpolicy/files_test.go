package importpolicy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// throughFileio are the packages that use files only through internal/format/fileio, which checks
// the rights of operations, the roots of the task and the kind of each file.
var throughFileio = []string{"internal/kernels/*", "checkpoint", "savedmodel", "savedmodel/serve", "summary", "tfrecord"}

// harmless are the names of package os that use no files.
var harmless = []string{"Getpid", "Hostname"}

// fileCalls are the names of other packages that use files, by package.
var fileCalls = map[string][]string{
	"filepath": {"Glob", "Walk", "WalkDir", "EvalSymlinks", "Abs"},
	"fileio":   {"New", "Files{}"},
	"ioutil":   nil, "syscall": nil, "unix": nil, "exec": nil, // all names
}

// abs may be used by the package: it reads the working directory only.
var abs = []string{"checkpoint", "savedmodel", "savedmodel/serve"}

func TestFilesAreUsedThroughFileio(t *testing.T) {
	found := 0
	for _, src := range parse(t) {
		if !matchAny(throughFileio, src.pkg) {
			continue
		}
		found++
		paths, err := filepath.Glob(filepath.Join(root, src.pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range fileUses(src.pkg, file) {
				t.Errorf("%s: %s: use the files of kernel.Construction, or internal/format/fileio", path, fault)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d packages", found)
	}
}

// fileUses returns the uses of files in a source file that do not go through fileio.
func fileUses(pkg string, file *ast.File) []string {
	kernels := strings.HasPrefix(pkg, "internal/kernels/")
	var faults []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if sel, ok := n.Type.(*ast.SelectorExpr); ok && kernels && fmt.Sprint(sel.X, sel.Sel) == "fileio Files" {
				faults = append(faults, "fileio.Files{}")
			}
		case *ast.SelectorExpr:
			from, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			name := n.Sel.Name
			calls, known := fileCalls[from.Name]
			switch {
			case from.Name == "os" && slices.Contains(harmless, name):
			case from.Name == "filepath" && name == "Abs" && slices.Contains(abs, pkg):
			case from.Name == "fileio" && !kernels:
			case from.Name == "os", known && (calls == nil || slices.Contains(calls, name)):
				faults = append(faults, from.Name+"."+name)
			}
		}
		return true
	})
	return faults
}

func TestPlantedFileUsesAreFound(t *testing.T) {
	for _, tt := range []struct{ pkg, code, want string }{
		{"internal/kernels/data", "os.Open(p)", "[os.Open]"},
		{"internal/kernels/data", "fmt.Fprint(os.Stderr)", "[os.Stderr]"},
		{"internal/kernels/data", "fileio.Files{}.Read(p)", "[fileio.Files{}]"},
		{"internal/kernels/data", "filepath.Glob(p)", "[filepath.Glob]"},
		{"internal/kernels/data", "filepath.Join(p)", "[]"},
		{"summary", "fileio.Files{}.Read(p)", "[]"},
		{"summary", "os.Getpid()", "[]"},
		{"checkpoint", "os.Remove(p)", "[os.Remove]"},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() { "+tt.code+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(fileUses(tt.pkg, file)); got != tt.want {
			t.Errorf("%s: %s: got %s, want %s", tt.pkg, tt.code, got, tt.want)
		}
	}
}
