package fileio

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/status"
)

// Temp is a temporary file in the folder of its final path, which Commit renames. It is locked
// while it exists. [Sweep] removes the files that are not locked, since their process is dead. An
// object of a store has no temporary file: it is invisible until it is complete.
type Temp struct {
	*File        // the temporary file; nil after Commit, Rename or Abort
	files Files  // of the writer
	final string // final path
}

// tempName matches the names of temporary files.
var tempName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.weft-tmp-[0-9a-f]{16}$`) })

// Create creates a temporary file for a path, whose folder must exist. The caller must call Commit
// or Abort; Abort after Commit does nothing.
func (f Files) Create(path string) (*Temp, error) {
	if IsRemote(path) {
		return f.createRemote(path)
	}
	if info, err := f.Stat(path); err == nil && info.IsDir() {
		return nil, Error(path, syscall.EISDIR)
	}
	if info, err := f.lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		if err := regular(path, info); err != nil { // Rename would fail, after all has been written
			return nil, Error(path, err)
		}
	}
	for {
		file, err := f.CreateNew(fmt.Sprintf("%s.weft-tmp-%016x", path, rand.Uint64()))
		if err != nil {
			return nil, renamed(err, path)
		}
		if lock(file.f) && f.exists(file) {
			return &Temp{file, f, path}, nil
		}
		file.Close() // Sweep has removed the file before it was locked
	}
}

// renamed replaces the name of a temporary file in an error by the final path.
func renamed(err error, path string) error {
	_, text, found := strings.Cut(err.Error(), "; ")
	if !found {
		return err
	}
	return status.Errorf(status.CodeOf(err), "%s; %s", path, text)
}

// exists reports whether an open file still has its name.
func (f Files) exists(file *File) bool {
	have, err := file.f.Stat()
	if err != nil {
		return false
	}
	want, err := f.lstat(file.path)
	return err == nil && os.SameFile(have, want)
}

// Write appends to the file.
func (t *Temp) Write(b []byte) (int, error) {
	n, err := t.File.Write(b)
	if err != nil {
		err = renamed(err, t.final)
	}
	return n, err
}

// Commit renames the file to its final path, replacing an older file, and waits until it is on
// disk. After an error an older file is unchanged and the temporary file is removed.
func (t *Temp) Commit() error {
	if err := t.Sync(); err != nil {
		t.Abort()
		return renamed(err, t.final)
	}
	if err := t.Rename(); err != nil {
		return err
	}
	return t.files.SyncDir(Dir(t.final))
}

// Rename is Commit without the wait for the disk. To commit several files, call Sync for all,
// Rename for all, and then [Files.SyncDir]. It replaces a link at the final path, and does not
// follow it.
func (t *Temp) Rename() error {
	if t.object != nil {
		return t.complete()
	}
	if err := t.files.Rename(t.path, t.final); err != nil {
		t.Abort()
		return renamed(err, t.final)
	}
	t.File.Close()
	t.File = nil
	return nil
}

// Move changes the final path, which must be in the same folder. An object cannot be moved after a
// part of it was sent: Rename returns the error.
func (t *Temp) Move(path string) { t.final = path }

// complete makes an object visible.
func (t *Temp) complete() error {
	defer t.Abort()
	if t.final != t.path && !t.object.w.Rename(t.final) {
		return status.Errorf(status.Aborted, "%s; it was written as %s, which exists", t.final, t.path)
	}
	return t.files.remote(t.final, "fileio/rename", Writing, func(ctx context.Context, _ objectstore.Name) error { return t.object.w.Commit(ctx) })
}

// Abort removes the temporary file, also after the end of the step.
func (t *Temp) Abort() {
	if t.File != nil && t.object != nil {
		t.object.w.Abort(context.Background())
		t.File = nil
	}
	if t.File != nil {
		_ = t.files.In(context.Background()).Remove(t.path) // what remains is swept
		t.File.Close()
		t.File = nil
	}
}

// Sweep removes the temporary files of dead processes from a folder. It keeps those of live
// processes.
func (f Files) Sweep(dir string) {
	if !canLock || IsRemote(dir) {
		return // no locks that tell whether a process is alive
	}
	entries, err := f.ReadDir(dir)
	if err != nil {
		return // no folder
	}
	for _, e := range entries {
		if tempName().MatchString(e.Name()) {
			f.sweep(Join(dir, e.Name()))
		}
	}
}

func (f Files) sweep(path string) {
	file, err := f.open(path, Reading, os.O_RDONLY|openNoFollow)
	if err != nil {
		return
	}
	defer file.Close()
	if lock(file.f) {
		_ = f.Remove(path) // another process may have removed it
	}
}
