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

// Temp is a file that is being written beside the place it will have. Nothing is seen of it there
// before Commit. It stays locked as long as it exists, so that what a dead process has left can be
// told from what a living one is writing.
type Temp struct {
	f    *os.File // nil once it is over
	path string   // where it will be
}

// tempName is how the files under construction are called.
var tempName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.weft-tmp-[0-9a-f]{16}$`) })

// Create begins a file. The folder must exist. Abort or Commit must follow; Abort after Commit does
// nothing.
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
		f.Close() // Sweep came between the creation and the lock
	}
}

// exists reports whether the name of an open file still leads to it.
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

// Sync waits until what was written is on disk.
func (t *Temp) Sync() error { return Error(t.path, t.f.Sync()) }

// Commit puts the file where it belongs, in place of any that is there, and waits until it is on
// disk. After an error nothing has changed and nothing is left.
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

// Rename is Commit without waiting for the disk, for those who put several files in place: Sync
// all, Rename all, SyncDir.
func (t *Temp) Rename() error {
	if err := os.Rename(t.f.Name(), t.path); err != nil {
		t.Abort()
		return Error(t.path, err)
	}
	t.f.Close()
	t.f = nil
	return nil
}

// Move changes the place, within the same folder, that the file will have.
func (t *Temp) Move(path string) { t.path = path }

// Abort removes the file.
func (t *Temp) Abort() {
	if t.f != nil {
		os.Remove(t.f.Name())
		t.f.Close()
		t.f = nil
	}
}

// SyncDir waits until the names of the files in a folder are on disk.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return Error(dir, err)
	}
	defer f.Close()
	return Error(dir, f.Sync())
}

// Sweep removes the files in a folder that processes which no longer live had begun. Those of
// living ones stay.
func Sweep(dir string) {
	files, err := os.ReadDir(dir)
	if err != nil || !canLock {
		return // there is nothing that could be swept
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
