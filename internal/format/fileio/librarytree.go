package fileio

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// openLibraryTree opens a folder as a tree of package os, which exists on all systems.
func openLibraryTree(dir string) (tree, error) {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return libraryTree{r}, nil
}

// libraryTree lets package os resolve the names below a folder. Mounts lead out.
type libraryTree struct{ *os.Root }

func (t libraryTree) close() { t.Root.Close() }

// open follows a link at the last name even if it is asked not to, so it looks at the name before
// and afterwards.
func (t libraryTree) open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&openNoFollow == 0 {
		return t.OpenFile(name, flag, perm)
	}
	if info, err := t.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, regular(name, info)
	}
	f, err := t.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		var named fs.FileInfo
		if named, err = t.Lstat(name); err == nil && !os.SameFile(opened, named) {
			err = regular(name, named)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (t libraryTree) stat(name string) (fs.FileInfo, error)     { return t.Stat(name) }
func (t libraryTree) lstat(name string) (fs.FileInfo, error)    { return t.Lstat(name) }
func (t libraryTree) mkdir(name string, perm fs.FileMode) error { return t.Mkdir(name, perm) }
func (t libraryTree) remove(name string) error                  { return t.Remove(name) }

func (t libraryTree) rename(name string, to tree, newName string) error {
	if to != tree(t) {
		return &fs.PathError{Op: "rename", Path: name, Err: syscall.EXDEV}
	}
	return t.Rename(name, newName)
}

// leaves implements tree. Package os has no name for the error.
func (libraryTree) leaves(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "path escapes from parent")
}
