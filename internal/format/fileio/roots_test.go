//go:build unix

package fileio

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-ml/weft/status"
)

// confined returns two roots, one to write and one to read, and a file outside of them.
func confined(t *testing.T) (f Files, dir, readOnly, outside string) {
	t.Helper()
	all, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, readOnly, outside = all+"/data", all+"/models", all+"/secret"
	for _, d := range []string{dir + "/sub", readOnly} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{dir + "/in", readOnly + "/in", outside} {
		if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	system, err := New(Config{Roots: []Root{{Name: "data", Dir: dir}, {Name: "models", Dir: readOnly, ReadOnly: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(system.Close)
	return system.For("Op", Reading|Writing), dir, readOnly, outside
}

// uses are the ways to use a path.
var uses = map[string]func(f Files, path string) error{
	"read":     func(f Files, path string) error { return second(f.Read(path)) },
	"list":     func(f Files, path string) error { return second(f.ReadDir(path)) },
	"match":    func(f Files, path string) error { return second(f.Match(path + "/*")) },
	"write":    func(f Files, path string) error { return f.Write(path, nil) },
	"append":   func(f Files, path string) error { return second(f.Append(path)) },
	"truncate": func(f Files, path string) error { return second(f.Truncate(path)) },
	"new":      func(f Files, path string) error { return second(f.CreateNew(path)) },
	"mkdir":    func(f Files, path string) error { return f.MakeDir(path) },
	"mkdirs":   func(f Files, path string) error { return f.MakeDirs(path + "/a/b") },
	"remove":   func(f Files, path string) error { return f.Remove(path) },
	"rename":   func(f Files, path string) error { return f.Rename(path, path+"2") },
}

func TestNoPathLeadsOut(t *testing.T) {
	f, dir, readOnly, outside := confined(t)
	for link, to := range map[string]string{"up": "../", "abs": filepath.Dir(outside), "secret": "../secret"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, use := range uses {
		for _, path := range []string{
			outside, dir + "/../secret", dir + "/sub/../../secret", dir + "/up/secret", dir + "/abs/secret", "/etc/passwd", "/proc/self/root/etc/passwd",
			"relative", "", dir + "2",
		} {
			if err := use(f, path); status.CodeOf(err) != status.PermissionDenied || !strings.Contains(err.Error(), "--file-root") {
				// a pattern finds nothing behind a link
				if name != "match" || err != nil {
					t.Errorf("%s %q: %v: %v", name, path, status.CodeOf(err), err)
				}
			}
		}
		if err := use(f, dir+"/in\x00"); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%s of a name with a zero byte: %v", name, err)
		}
	}
	for _, name := range []string{"write", "append", "truncate", "new", "mkdir", "mkdirs", "remove", "rename"} {
		if err := uses[name](f, readOnly+"/x"); status.CodeOf(err) != status.PermissionDenied || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%s in a read-only root: %v", name, err)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "text" {
		t.Errorf("the file outside of the roots: %q, %v", b, err)
	}
	for _, path := range []string{dir + "/in", dir + "/sub/../in", readOnly + "/in", dir + "//./in"} {
		if b, err := f.Read(path); err != nil || string(b) != "text" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

func TestLinksWithinARoot(t *testing.T) {
	f, dir, _, _ := confined(t)
	if err := os.Symlink("../in", dir+"/sub/link"); err != nil {
		t.Fatal(err)
	}
	if b, err := f.Read(dir + "/sub/link"); err != nil || string(b) != "text" {
		t.Errorf("reading through a link: %q, %v", b, err)
	}
	for _, files := range []Files{f, {}} {
		for name, open := range map[string]func(string) (*File, error){"append": files.Append, "truncate": files.Truncate} {
			if _, err := open(dir + "/sub/link"); status.CodeOf(err) != status.PermissionDenied || !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("%s through a link: %v", name, err)
			}
		}
	}
	if err := f.Write(dir+"/sub/link", []byte("new")); err != nil { // replaces the link
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dir + "/in"); err != nil || string(b) != "text" {
		t.Errorf("the target of the link: %q, %v", b, err)
	}
}

// TestOnlyRegularFiles opens what could block or have effects, with and without roots.
func TestOnlyRegularFiles(t *testing.T) {
	f, dir, _, _ := confined(t)
	if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("fifo", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct{ path, kind string }{{dir + "/fifo", "a FIFO"}, {dir + "/link", "a FIFO"}, {dir + "/s", "a socket"}, {"/dev/zero", "a device"}} {
		for _, files := range []Files{f, {}} {
			if files == f && c.kind == "a device" {
				continue // outside of the roots
			}
			if !strings.HasSuffix(c.path, "link") { // a link is replaced
				temp, err := files.Create(c.path)
				if err == nil {
					err = temp.Commit()
				}
				if info, gone := os.Lstat(c.path); gone != nil || info.Mode().IsRegular() {
					t.Errorf("%s was replaced", c.path)
				}
				if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), c.kind) {
					t.Errorf("create %s: %v", c.path, err)
				}
			}
			for _, use := range []string{"read", "append", "truncate"} {
				want, kind := status.InvalidArgument, c.kind
				if strings.HasSuffix(c.path, "link") && use != "read" {
					want, kind = status.PermissionDenied, "symbolic link"
				}
				if err := uses[use](files, c.path); status.CodeOf(err) != want || !strings.Contains(err.Error(), kind) {
					t.Errorf("%s %s: %v: %v", use, c.path, status.CodeOf(err), err)
				}
			}
		}
	}
	for _, files := range []Files{f, {}} {
		if _, err := files.Open(dir); status.CodeOf(err) != status.FailedPrecondition {
			t.Errorf("a folder: %v", err)
		}
	}
}

// TestSwappedLink replaces a folder by a link that leads out while its files are opened. Whatever
// is read is the file within the root.
func TestSwappedLink(t *testing.T) {
	f, dir, _, outside := confined(t)
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/sub/secret", []byte("inside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		swapped := make(chan struct{})
		go func() {
			defer close(swapped)
			_ = os.Rename(dir+"/sub", dir+"/was")
			_ = os.Symlink("..", dir+"/sub")
		}()
		for running := true; running; {
			select {
			case <-swapped:
				running = false
			default:
			}
			if b, err := f.Read(dir + "/sub/secret"); err == nil && string(b) != "inside" {
				t.Fatalf("round %d: read %q", i, b)
			}
		}
		if err := os.Remove(dir + "/sub"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+"/was", dir+"/sub"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	system, err := New(Config{Calls: 1, Names: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer system.Close()
	f := system.For("Op", Reading)
	if _, err := f.Match(dir + "/*"); status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "--max-file-names") {
		t.Errorf("a pattern for many names: %v", err)
	}
	if err := f.Write(dir+"/a", nil); status.CodeOf(err) != status.Internal {
		t.Errorf("writing without the right: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	file, err := f.In(ctx).Open(dir + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	system.slots <- struct{}{} // another call that does not end
	ended := make(chan error)
	go func() { ended <- second(file.Read(make([]byte, 1))) }()
	for system.waited.Load() == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; status.CodeOf(err) != status.Cancelled {
		t.Errorf("waiting for another call: %v", err)
	}
	<-system.slots
	if _, err := f.In(ctx).Read(dir + "/a"); status.CodeOf(err) != status.Cancelled {
		t.Errorf("reading after the end of the step: %v", err)
	}
	if hits := system.Limited(); hits["file_names"] != 1 || hits["file_calls"] != 1 {
		t.Errorf("counted: %v", hits)
	}
}

func TestModes(t *testing.T) {
	f, dir, _, _ := confined(t)
	old := unix.Umask(0o022)
	defer unix.Umask(old)
	if err := f.Write(dir+"/new/file", nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{dir + "/new": 0o750, dir + "/new/file": 0o640} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestKernelFiles reads a file for which the runtime can wait.
func TestKernelFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	if b, err := (Files{}).Read("/proc/self/mounts"); err != nil || len(b) == 0 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestLibraryTree is the tree of systems without openat2.
func TestLibraryTree(t *testing.T) {
	dir := t.TempDir()
	tree, err := openLibraryTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	system := &FS{roots: []root{{Root: Root{Name: "data"}, dir: dir, tree: tree}}, dir: "/", slots: make(chan struct{}, 1)}
	defer system.Close()
	f := system.For("Op", Reading|Writing)
	if err := f.Write(dir+"/a/b", []byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../..", dir+"/a/up"); err != nil {
		t.Fatal(err)
	}
	for name, use := range uses {
		for _, path := range []string{dir + "/a/up/x", dir + "/../x", "/etc/passwd"} {
			if err := use(f, path); status.CodeOf(err) != status.PermissionDenied && (name != "match" || err != nil) {
				t.Errorf("%s %s: %v", name, path, err)
			}
		}
	}
	if err := f.Rename(dir+"/a/b", dir+"/c"); err != nil {
		t.Error(err)
	}
	if _, err := f.Append(dir + "/a/up"); status.CodeOf(err) != status.PermissionDenied {
		t.Errorf("a link: %v", err)
	}
	if err := f.RemoveAll(dir + "/a"); err != nil || f.Exists(dir+"/a") {
		t.Errorf("removing: %v", err)
	}
}
