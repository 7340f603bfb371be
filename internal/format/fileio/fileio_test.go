package fileio

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	var f Files
	for _, test := range []struct {
		err  error
		code status.Code
		text string
	}{
		{second(f.Read(dir + "/x")), status.NotFound, dir + "/x; No such file or directory"},
		{second(f.Read(dir)), status.FailedPrecondition, dir + "; Is a directory"},
		{f.MakeDir(dir + "/a/b"), status.NotFound, dir + "/a/b; No such file or directory"},
		{second(f.Create(dir + "/a/b")), status.NotFound, dir + "/a/b; No such file or directory"},
		{f.Write(dir, nil), status.FailedPrecondition, dir + "; Is a directory"},
		{Error("p", errors.New("odd")), status.Unknown, "p; Odd"},
	} {
		if status.CodeOf(test.err) != test.code || test.err.Error() != test.text {
			t.Errorf("got %v: %v, want %v: %v", status.CodeOf(test.err), test.err, test.code, test.text)
		}
	}
	if err := Error("p", nil); err != nil {
		t.Errorf("for nil got %v", err)
	}
	if err := f.MakeDir(dir); err != nil {
		t.Errorf("a folder that exists: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestFilesAppearWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := (Files{}).Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	f, err := Files{}.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if b, err := (Files{}).Read(path); err != nil || string(b) != "old" {
		t.Errorf("before Commit the file contains %q, %v", b, err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if b, err := (Files{}).Read(path); err != nil || string(b) != "new" {
		t.Errorf("the file contains %q, %v", b, err)
	}
	g, err := Files{}.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	g.Abort()
	if names := list(t, dir); !slices.Equal(names, []string{"f"}) {
		t.Errorf("the remaining files are %q", names)
	}
}

// TestSweep removes files that are not locked, and keeps one that is being written.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	live, err := Files{}.Create(filepath.Join(dir, "live"))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Abort()
	for _, name := range []string{"dead.weft-tmp-0123456789abcdef", "other.tempstate1", "x.weft-tmp-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Files{}.Sweep(dir)
	Files{}.Sweep(filepath.Join(dir, "none"))
	want := []string{filepath.Base(live.f.Name()), "other.tempstate1", "x.weft-tmp-1"}
	if names := list(t, dir); !slices.Equal(names, want) {
		t.Errorf("the remaining files are %q, want %q", names, want)
	}
}

// Paths that no system has are refused before they take memory, and the search for a pattern does
// not overflow the stack.
func TestLongPaths(t *testing.T) {
	if paths, err := (Files{}).Match(strings.Repeat("*/", 8<<20) + "*"); len(paths) > 0 || err != nil {
		t.Errorf("a long pattern matches %d paths, %v", len(paths), err)
	}
	if _, err := (Files{}).Read(strings.Repeat("/", 1<<20)); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a long path: %.100v", err)
	}
}

// A file whose size is not known asks for its memory while it is read.
func TestFileOfUnknownSize(t *testing.T) {
	const path = "/proc/kallsyms"
	if b, err := (Files{}).Read(path); err != nil || len(b) < 1<<20 {
		t.Skipf("%d bytes, %v", len(b), err)
	}
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1 << 20)
	if b, err := (Files{}).Read(path); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestMatch(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a1", "a2", "c/a3"} {
		if err := (Files{}).Write(filepath.Join(dir, name), nil); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"*": {"a1", "a2", "b", "c"}, "a?": {"a1", "a2"}, "a[!1]": {"a2"}, "a[^1]": {"a2"}, "*/*": {"c/a3"}, "x*": nil, "[": nil, "b": {"b"},
	} {
		var got []string
		paths, err := Files{}.Match(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s matches %q, want %q", pattern, got, want)
		}
	}
}
