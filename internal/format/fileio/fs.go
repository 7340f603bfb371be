package fileio

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/openfiles"
	"github.com/weft-ml/weft/status"
)

// FS is the file system of a task. It may be used concurrently. A nil FS has all files and no
// limits.
type FS struct {
	roots  []root // longest folder first; nil for all files
	closed string // see Config
	dir    string // working directory, for relative paths; set if there are roots
	slots  chan struct{}
	names  int // number of names that a pattern may look at; 0 for any

	waited  atomic.Uint64 // file calls that have waited for a slot
	refused atomic.Uint64 // patterns that have looked at too many names
}

// Root is a folder that the operations of a task may use.
type Root struct {
	Name     string // for errors
	Dir      string // a folder, or the path of a folder or bucket of a store
	ReadOnly bool
}

// Config holds the parameters of an FS.
type Config struct {
	Roots []Root // nil for all files
	// Closed is why there are no files without roots, for errors; "" if there are all files.
	Closed string
	// Calls is the number of file calls at a time; 64 if 0. A call of a file system that does not
	// answer blocks a thread, and the Go runtime ends the process at 10,000 threads.
	Calls int
	// Names is the number of names that a pattern may look at. Negative means any; 100,000 if 0.
	Names int
}

const (
	defaultCalls = 64
	defaultNames = 100_000
)

// New returns the file system of a task. It opens the folders of the roots, which must exist. The
// caller must call Close.
func New(cfg Config) (*FS, error) {
	s := &FS{slots: make(chan struct{}, cmp.Or(max(cfg.Calls, 0), defaultCalls)), names: max(cmp.Or(cfg.Names, defaultNames), 0)}
	if s.closed = cfg.Closed; len(cfg.Roots) == 0 {
		return s, nil
	}
	var err error
	if s.dir, err = os.Getwd(); err != nil {
		return nil, Error(".", err)
	}
	for _, r := range cfg.Roots {
		if err := s.add(r); err != nil {
			s.Close()
			return nil, err
		}
	}
	slices.SortStableFunc(s.roots, func(a, b root) int { return cmp.Compare(len(b.dir), len(a.dir)) })
	return s, nil
}

// add opens a root. Paths may name it as given, or as it is without links.
func (s *FS) add(r Root) error {
	if IsRemote(r.Dir) {
		n, err := objectstore.Parse(r.Dir)
		if err != nil {
			return status.Errorf(status.CodeOf(err), "--file-root %s: %w", r.Name, err)
		}
		s.roots = append(s.roots, root{Root: r, dir: n.String()})
		return nil
	}
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return Error(r.Dir, err)
	}
	tree, err := openTree(dir)
	if err != nil {
		return status.Errorf(codeOf(err), "--file-root %s: %w", r.Name, Error(dir, err))
	}
	s.roots = append(s.roots, root{Root: r, dir: dir, tree: tree})
	if resolved, err := filepath.EvalSymlinks(dir); err == nil && resolved != dir {
		s.roots = append(s.roots, root{Root: r, dir: resolved, tree: tree})
	}
	return nil
}

// Close closes the folders of the roots.
func (s *FS) Close() {
	for _, r := range s.roots {
		if r.tree != nil {
			r.tree.close()
		}
	}
}

// Roots returns the folders that operations may use; nil for all.
func (s *FS) Roots() []Root {
	var out []Root
	for _, r := range s.roots {
		out = append(out, Root{r.Name, r.dir, r.ReadOnly})
	}
	return out
}

// Modes of the files and folders that a task creates for its clients. The umask may remove more.
const (
	taskFileMode, taskDirMode = 0o640, 0o750
	fileMode, dirMode         = 0o644, 0o755 // of other programs
)

func (s *FS) fileMode() fs.FileMode {
	if s == nil {
		return fileMode
	}
	return taskFileMode
}

func (s *FS) dirMode() fs.FileMode {
	if s == nil {
		return dirMode
	}
	return taskDirMode
}

// acquire waits for the right to make a file call, until ctx ends. A nil ctx does not end.
func (s *FS) acquire(ctx context.Context, path string) error {
	if err := failpoint.Hit("fileio/acquire"); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
		s.waited.Add(1)
	}
	if ctx == nil {
		s.slots <- struct{}{}
		return nil
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return status.FromContext(ctx, "using file "+path)
	}
}

func (s *FS) release() { <-s.slots }

// Limited returns how often each limit has been reached, by its name.
func (s *FS) Limited() map[string]uint64 {
	return map[string]uint64{"file_calls": s.waited.Load(), "file_names": s.refused.Load()}
}

// checkNames returns an error if a pattern has looked at too many names.
func (s *FS) checkNames(path string, n int) error {
	if s == nil || s.names == 0 || n <= s.names {
		return nil
	}
	s.refused.Add(1)
	return status.ResourceExhaustedf("%s; there are more than the %d names that --max-file-names allows to look at", path, s.names)
}

// connectionShare is the divisor of the part of the process's file descriptors that files leave to
// connections: the files of one client must not keep the others from connecting. Connections of
// clients leave a quarter, so half of that is for files however many clients there are.
const connectionShare = 8

// checkDescriptors returns an error if only the descriptors for connections are left.
func (s *FS) checkDescriptors() error {
	if s == nil {
		return nil
	}
	if limit := openfiles.Limit(); limit > 0 && openfiles.Full(limit-limit/connectionShare) {
		return syscall.EMFILE
	}
	return nil
}

// root is an open root.
type root struct {
	Root
	dir  string // clean and absolute
	tree tree   // nil for a folder of a store
}

// tree is a folder below which names are resolved: ".." and links do not lead out.
type tree interface {
	open(name string, flag int, perm fs.FileMode) (*os.File, error)
	stat(name string) (fs.FileInfo, error)
	lstat(name string) (fs.FileInfo, error)
	mkdir(name string, perm fs.FileMode) error
	remove(name string) error
	rename(name string, to tree, newName string) error
	// leaves reports whether an error means that a name leads out of the tree.
	leaves(err error) bool
	close()
}

// place is where a path leads.
type place struct {
	path string
	root *root  // nil for the file system of the machine
	name string // path relative to the root
}

// maxPath bounds paths and patterns, in bytes. No system has longer ones. The list of the parts of
// a path takes 16 times its size, and the search for a pattern calls itself for each folder in it.
const maxPath = 64 << 10

// at finds the place of a path and checks the rights of the user.
func (f Files) at(path string, right Rights) (place, error) {
	if err := f.check(path, right); err != nil {
		return place{}, err
	}
	if len(path) > maxPath {
		return place{}, Error(path, syscall.ENAMETOOLONG)
	}
	if strings.IndexByte(path, 0) >= 0 {
		return place{}, status.InvalidArgumentf("%q; a path cannot contain a byte of value 0", path)
	}
	switch objectstore.Scheme(path) {
	case "", "file", objectstore.S3, objectstore.GCS:
	default:
		return place{}, status.Errorf(status.Unimplemented, "File system scheme '%s' not implemented (file: '%s')", objectstore.Scheme(path), path)
	}
	local := localPath(path)
	if f.fs == nil || len(f.fs.roots) == 0 {
		if f.fs != nil && f.fs.closed != "" {
			return place{}, status.Errorf(status.PermissionDenied, "%s; Permission denied: %s", path, f.fs.closed)
		}
		return place{path: local}, nil
	}
	r, name := f.fs.find(local)
	switch {
	case r == nil:
		return place{}, status.Errorf(status.PermissionDenied, "%s; Permission denied: the path is not below a folder that this task was given with --file-root", path)
	case right == Writing && r.ReadOnly:
		return place{}, status.Errorf(status.PermissionDenied, "%s; Permission denied: the root %s was given as read-only with --file-root", path, r.Name)
	}
	return place{path, r, name}, nil
}

// find returns the root of a path, and the path relative to it. ".." stays in the name: only the
// file system knows where it leads to behind a link.
func (s *FS) find(path string) (*root, string) {
	if path == "" {
		return nil, ""
	}
	if !IsAbs(path) {
		path = s.dir + string(filepath.Separator) + path
	}
	parts := components(path)
	for i := range s.roots {
		if IsRemote(path) != IsRemote(s.roots[i].dir) {
			continue
		}
		dir := components(s.roots[i].dir)
		if len(parts) >= len(dir) && slices.Equal(parts[:len(dir)], dir) {
			return &s.roots[i], strings.Join(append([]string{"."}, parts[len(dir):]...), string(filepath.Separator))
		}
	}
	return nil, ""
}

// components splits a path and drops what does not change its meaning.
func components(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(part string) bool { return part == "" || part == "." })
}

// explain converts the error of a name that leads out of its root.
func (p place) explain(err error) error {
	if err == nil || p.root == nil || !p.root.tree.leaves(err) {
		return err
	}
	return status.Errorf(status.PermissionDenied, "%s; Permission denied: a link, a mount or \"..\" leads out of the root %s of --file-root, or is absolute",
		p.path, p.root.Name)
}

func (p place) open(flag int, perm fs.FileMode) (*os.File, error) {
	if p.root == nil {
		return os.OpenFile(p.path, flag, perm)
	}
	return p.root.tree.open(p.name, flag, perm)
}

func (p place) stat() (fs.FileInfo, error) {
	if p.root == nil {
		return os.Stat(p.path)
	}
	return p.root.tree.stat(p.name)
}

func (p place) lstat() (fs.FileInfo, error) {
	if p.root == nil {
		return os.Lstat(p.path)
	}
	return p.root.tree.lstat(p.name)
}

func (p place) mkdir(perm fs.FileMode) error {
	if p.root == nil {
		return os.Mkdir(p.path, perm)
	}
	return p.root.tree.mkdir(p.name, perm)
}

func (p place) remove() error {
	if p.root == nil {
		return os.Remove(p.path)
	}
	return p.root.tree.remove(p.name)
}

func (p place) rename(to place) error {
	if p.root == nil {
		return os.Rename(p.path, to.path)
	}
	return p.root.tree.rename(p.name, to.root.tree, to.name)
}
