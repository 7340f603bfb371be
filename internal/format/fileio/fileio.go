// Package fileio is the only access of operations and file formats to the file system. It has
// errors with TensorFlow's codes and texts, files that appear complete or not at all, and patterns
// of names.
//
// A [FS] is the file system of a task: the folders that its operations may use, and the number of
// file calls at a time. [Files] is what one user of it may do: read, or read and write, until a
// context ends. The zero Files is for programs that are not tasks: it may use all files.
//
// Only regular files are opened. To open a FIFO or a device could block a thread without end, and
// could have effects of its own. A task opens a file without blocking, looks at what it has opened,
// and refuses everything else.
package fileio

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/memlimit"
	"github.com/weft-ml/weft/status"
)

// Files is the access of one user to the file system. The zero value may use all files.
type Files struct {
	fs     *FS             // nil for all files
	ctx    context.Context // ends waits and transfers; nil for none
	deny   Rights          // rights that the user does not have
	holder string          // operation that the rights belong to, for errors
}

// Rights is a set of rights of a user.
type Rights uint8

// The rights.
const (
	Reading Rights = 1 << iota
	Writing
)

// For returns the access of an operation with some rights. A nil FS has all files.
func (s *FS) For(operation string, rights Rights) Files {
	return Files{fs: s, deny: (Reading | Writing) &^ rights, holder: operation}
}

// In returns the same access until ctx ends.
func (f Files) In(ctx context.Context) Files {
	f.ctx = ctx
	return f
}

// check returns an error unless the user has a right.
func (f Files) check(path string, right Rights) error {
	if f.deny&right != 0 {
		return status.Internalf("%s; the definition of %s does not say that it uses files in this way", path, f.holder)
	}
	return nil
}

// Ended returns the error of a context that has ended, and nil before.
func (f Files) Ended(path string) error {
	if f.ctx == nil || f.ctx.Err() == nil {
		return nil
	}
	return status.FromContext(f.ctx, "using file "+path)
}

// do makes one file call within the limit of calls at a time.
func (f Files) do(path string, call func() error) error {
	if err := f.Ended(path); err != nil {
		return err
	}
	if f.fs == nil {
		return call()
	}
	if err := f.fs.acquire(f.ctx, path); err != nil {
		return err
	}
	defer f.fs.release()
	return call()
}

// Read returns the contents of a file.
func (f Files) Read(path string) ([]byte, error) {
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	if left, known := memlimit.Left(); size >= minChecked && known && size > left {
		return nil, status.ResourceExhaustedf("%s; the file has %d bytes, and the task has memory for %d", path, size, left)
	}
	if size >= minCharged && !membudget.Take(size) {
		return nil, noMemory(path, size)
	}
	b := make([]byte, 0, size+1) // one more byte finds the end of a file without another allocation
	for {
		if len(b) == cap(b) {
			// the file has grown, or its size is not known, as in /proc
			more := max(2*int64(cap(b)), smallest)
			if more >= minCharged && !membudget.Take(more) {
				return nil, noMemory(path, more)
			}
			b = append(make([]byte, 0, more), b...)
		}
		n, err := file.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func noMemory(path string, size int64) error {
	return status.ResourceExhaustedf("%s; out of memory: there is none for the %d bytes of the file", path, size)
}

// minChecked is the size, in bytes, of the smallest file for which the memory left on the machine
// is looked at before the file is read. It is that of tensors.
const minChecked = 64 << 20

const (
	// minCharged is the size, in bytes, of the smallest file whose memory the process is asked for.
	minCharged = 16 << 10
	// smallest is the size, in bytes, of the smallest buffer for a file that has grown.
	smallest = 512
)

// Write replaces the contents of a file and waits until they are on disk. It creates the folders of
// the file. After an error an older file is unchanged.
func (f Files) Write(path string, contents []byte) error {
	if err := f.MakeDirs(Dir(path)); err != nil {
		return err
	}
	t, err := f.Create(path)
	if err != nil {
		return err
	}
	defer t.Abort()
	if _, err := t.Write(contents); err != nil {
		return err
	}
	return t.Commit()
}

// MakeDir creates a folder, whose parent must exist. It returns nil if the folder exists. Folders
// of stores exist as long as there are objects in them, so there is nothing to create.
func (f Files) MakeDir(path string) error {
	if IsRemote(path) {
		return f.remote(path, "fileio/mkdir", Writing, func(context.Context, objectstore.Name) error { return nil })
	}
	err := f.change(path, func(p place) error {
		if err := failpoint.Hit("fileio/mkdir"); err != nil {
			return err
		}
		return p.mkdir(f.fs.dirMode())
	})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return Error(path, err)
}

// MakeDirs creates a folder and its parents.
func (f Files) MakeDirs(path string) error {
	if IsRemote(path) {
		return f.MakeDir(path)
	}
	info, err := f.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return Error(path, syscall.ENOTDIR)
	case status.CodeOf(err) != status.NotFound:
		return err
	}
	if parent := filepath.Dir(path); parent != path {
		if err := f.MakeDirs(parent); err != nil {
			return err
		}
	}
	return f.MakeDir(path)
}

// Stat describes a file, or the file that a link leads to.
func (f Files) Stat(path string) (fs.FileInfo, error) {
	if IsRemote(path) {
		return f.statRemote(path)
	}
	var info fs.FileInfo
	err := f.look(path, func(p place) (err error) {
		if err := failpoint.Hit("fileio/stat"); err != nil {
			return err
		}
		info, err = p.stat()
		return err
	})
	return info, Error(path, err)
}

// Exists reports whether there is a file or folder that the user may look at.
func (f Files) Exists(path string) bool {
	_, err := f.Stat(path)
	return err == nil
}

// lstat describes a file or a link.
func (f Files) lstat(path string) (fs.FileInfo, error) {
	if IsRemote(path) {
		return f.statRemote(path)
	}
	var info fs.FileInfo
	err := f.look(path, func(p place) (err error) {
		info, err = p.lstat()
		return err
	})
	return info, Error(path, err)
}

// Remove removes a file, a link or an empty folder.
func (f Files) Remove(path string) error {
	if IsRemote(path) {
		return f.removeRemote(path)
	}
	return Error(path, f.change(path, func(p place) error {
		if err := failpoint.Hit("fileio/remove"); err != nil {
			return err
		}
		return p.remove()
	}))
}

// RemoveAll removes a folder with its contents. It follows no links. It returns nil if there is no
// such folder.
func (f Files) RemoveAll(path string) error {
	if IsRemote(path) {
		return f.removeAllRemote(path)
	}
	info, err := f.lstat(path)
	if status.CodeOf(err) == status.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		names, err := f.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range names {
			if err := f.RemoveAll(Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	return f.Remove(path)
}

// Rename renames a file or folder, and replaces a regular file or a link of the new name. A folder
// of a store is renamed object by object.
func (f Files) Rename(from, to string) error {
	if IsRemote(from) || IsRemote(to) {
		return f.renameRemote(from, to)
	}
	if err := failpoint.Hit("fileio/rename"); err != nil {
		return Error(to, err)
	}
	target, err := f.at(to, Writing)
	if err != nil {
		return err
	}
	return Error(from, f.change(from, func(p place) error {
		// a process with the right to do so would replace a device
		if info, err := target.lstat(); err == nil && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			if err := regular(to, info); err != nil {
				return err
			}
		}
		return p.rename(target)
	}))
}

// look makes a file call that only reads.
func (f Files) look(path string, call func(place) error) error { return f.call(path, Reading, call) }

// change makes a file call that writes.
func (f Files) change(path string, call func(place) error) error { return f.call(path, Writing, call) }

func (f Files) call(path string, right Rights, call func(place) error) error {
	p, err := f.at(path, right)
	if err != nil {
		return err
	}
	return f.do(path, func() error { return p.explain(call(p)) })
}

// ReadDir returns the entries of a folder, in order of their names. There may be as many as a
// pattern of names may look at.
func (f Files) ReadDir(path string) ([]fs.DirEntry, error) {
	if IsRemote(path) {
		return f.readDirRemote(path, "")
	}
	var all []fs.DirEntry
	p, err := f.at(path, Reading)
	if err != nil {
		return nil, err
	}
	var dir *os.File
	err = f.do(path, func() (err error) {
		dir, err = p.open(os.O_RDONLY|openDirectory, 0)
		return p.explain(err)
	})
	if err != nil {
		return nil, Error(path, err)
	}
	defer dir.Close()
	for {
		var some []fs.DirEntry
		err := f.do(path, func() (err error) {
			some, err = dir.ReadDir(dirPiece)
			return err
		})
		all = append(all, some...)
		switch {
		case errors.Is(err, io.EOF):
			sortEntries(all)
			return all, nil
		case err != nil:
			return nil, Error(path, err)
		}
		if err := f.fs.checkNames(path, len(all)); err != nil {
			return nil, err
		}
	}
}

// dirPiece is the number of names of a folder that are read between two looks at the context.
const dirPiece = 1024

// SyncDir waits until the entries of a folder are on disk. An object that is complete has been
// stored.
func (f Files) SyncDir(path string) error {
	if IsRemote(path) {
		return nil
	}
	return Error(path, f.look(path, func(p place) error {
		dir, err := p.open(os.O_RDONLY|openDirectory, 0)
		if err != nil {
			return err
		}
		defer dir.Close()
		return dir.Sync()
	}))
}
