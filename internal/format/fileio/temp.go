package fileio

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
)

// Temp is a temporary file in the folder of its final path, which Commit renames. It is locked
// while it exists. [Sweep] removes the files that are not locked, since their process is dead.
type Temp struct {
	f    *os.File // nil after Commit, Rename or Abort
	path string   // final path
}

// tempName matches the names of temporary files.
var tempName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.weft-tmp-[0-9a-f]{16}$`) })

// Create creates a temporary file for a path, whose folder must exist. The caller must call Commit
// or Abort; Abort after Commit does nothing.
func Create(path string) (*Temp, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, Error(path, syscall.EISDIR)
	}
	for {
		name := fmt.Sprintf("%s.weft-tmp-%016x", path, rand.Uint64())
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, Error(path, err)
		}
		if lock(f) && exists(f) {
			return &Temp{f, path}, nil
		}
		f.Close() // Sweep has removed the file before it was locked
	}
}

// exists reports whether an open file still has its name.
func exists(f *os.File) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	want, err := os.Stat(f.Name())
	return err == nil && os.SameFile(have, want)
}

// Write appends to the file.
func (t *Temp) Write(b []byte) (int, error) {
	n, err := t.f.Write(b)
	return n, Error(t.path, err)
}

// Sync waits until the contents are on disk.
func (t *Temp) Sync() error { return Error(t.path, t.f.Sync()) }

// Commit renames the file to its final path, replacing an older file, and waits until it is on
// disk. After an error an older file is unchanged and the temporary file is removed.
func (t *Temp) Commit() error {
	if err := t.Sync(); err != nil {
		t.Abort()
		return err
	}
	if err := t.Rename(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(t.path))
}

// Rename is Commit without the wait for the disk. To commit several files, call Sync for all,
// Rename for all, and then [SyncDir].
func (t *Temp) Rename() error {
	if err := os.Rename(t.f.Name(), t.path); err != nil {
		t.Abort()
		return Error(t.path, err)
	}
	t.f.Close()
	t.f = nil
	return nil
}

// Move changes the final path, which must be in the same folder.
func (t *Temp) Move(path string) { t.path = path }

// Abort removes the temporary file.
func (t *Temp) Abort() {
	if t.f != nil {
		os.Remove(t.f.Name())
		t.f.Close()
		t.f = nil
	}
}

// SyncDir waits until the entries of a folder are on disk.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return Error(dir, err)
	}
	defer f.Close()
	return Error(dir, f.Sync())
}

// Sweep removes the temporary files of dead processes from a folder. It keeps those of live
// processes.
func Sweep(dir string) {
	files, err := os.ReadDir(dir)
	if err != nil || !canLock {
		return // no folder, or no locks that tell whether a process is alive
	}
	for _, file := range files {
		if tempName().MatchString(file.Name()) {
			sweep(filepath.Join(dir, file.Name()))
		}
	}
}

func sweep(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if lock(f) {
		os.Remove(path)
	}
}
