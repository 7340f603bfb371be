package fileio

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/status"
)

// File is an open regular file. Its methods may be called concurrently where those of [os.File]
// may. Errors have codes and name the file, except [io.EOF].
type File struct {
	f      *os.File // nil for an object
	object *object  // nil for a file of the machine
	files  Files
	path   string
	// the runtime can wait for the file, as for files of FUSE and some of /proc
	waits bool
}

// piece is the largest number of bytes that one call transfers. Between pieces the context may end
// the transfer.
const piece = 4 << 20

// Open opens a file for reading.
func (f Files) Open(path string) (*File, error) {
	if IsRemote(path) {
		return f.openRemote(path)
	}
	return f.open(path, Reading, os.O_RDONLY)
}

// Append opens a file for writing at its end, and creates it if it does not exist. What is written
// to an object is visible after [File.Sync] and [File.Close].
func (f Files) Append(path string) (*File, error) {
	if IsRemote(path) {
		return f.appendRemote(path, false, false)
	}
	return f.open(path, Writing, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
}

// CreateNew creates a file that must not exist (AlreadyExists).
func (f Files) CreateNew(path string) (*File, error) {
	if IsRemote(path) {
		return f.appendRemote(path, true, true)
	}
	return f.open(path, Writing, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Truncate creates a file, or removes the contents of an existing one. Unlike those of
// [Files.Create], its contents are visible while they are written.
func (f Files) Truncate(path string) (*File, error) {
	if IsRemote(path) {
		return f.appendRemote(path, false, true)
	}
	return f.open(path, Writing, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
}

// open opens a regular file. A file that is opened for writing must not be a link.
func (f Files) open(path string, right Rights, flag int) (*File, error) {
	p, err := f.at(path, right)
	if err != nil {
		return nil, err
	}
	var file *os.File
	err = f.do(path, func() (err error) {
		if err = failpoint.Hit("fileio/open"); err == nil {
			err = f.fs.checkDescriptors()
		}
		if err == nil {
			file, err = p.openRegular(flag, f.fs.fileMode())
		}
		return p.explain(err)
	})
	if err != nil {
		return nil, Error(path, err)
	}
	return &File{f: file, files: f, path: path, waits: canWait(file)}, nil
}

// openRegular opens a file and refuses everything but a regular file. The first look finds what
// cannot be opened without an effect. The second look finds what has replaced the file since.
func (p place) openRegular(flag int, perm fs.FileMode) (*os.File, error) {
	look := p.stat
	if flag != os.O_RDONLY {
		flag |= openNoFollow
		look = p.lstat
	}
	info, err := look()
	switch {
	case err == nil && flag&os.O_EXCL != 0:
		return nil, syscall.EEXIST
	case err == nil:
		if err := regular(p.path, info); err != nil {
			return nil, err
		}
	case flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := p.open(flag|openNonblock, perm)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(p.path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// regular returns an error that names the kind of what is not a regular file.
func regular(path string, info fs.FileInfo) error {
	mode := info.Mode()
	kind := ""
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return syscall.EISDIR
	case mode&fs.ModeSymlink != 0:
		return status.Errorf(status.PermissionDenied, "%s; Is a symbolic link, through which no file is written", path)
	case mode&fs.ModeNamedPipe != 0:
		kind = "a FIFO"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	default:
		kind = "of the kind " + mode.Type().String()
	}
	return status.InvalidArgumentf("%s; Not a regular file: it is %s", path, kind)
}

// Name returns the path of the file.
func (f *File) Name() string { return f.path }

// Use makes the file end its transfers with another context, for a file that stays open from one
// step to another. It must not be called during another call.
func (f *File) Use(ctx context.Context) { f.files = f.files.In(ctx) }

// Read implements [io.Reader].
func (f *File) Read(b []byte) (n int, err error) {
	err = f.files.do(f.path, func() (err error) {
		n, err = f.read(b[:min(len(b), piece)])
		return err
	})
	return n, f.error(err)
}

func (f *File) read(b []byte) (int, error) {
	if err := failpoint.Hit("fileio/read"); err != nil {
		return 0, err
	}
	if f.object != nil {
		return f.readObject(b)
	}
	if f.waits {
		return readNow(f.f, b)
	}
	return f.f.Read(b)
}

// ReadAt implements [io.ReaderAt].
func (f *File) ReadAt(b []byte, offset int64) (n int, err error) {
	if f.object != nil {
		return f.readObjectAt(b, offset)
	}
	for {
		more := 0
		err = f.files.do(f.path, func() (err error) {
			if err = failpoint.Hit("fileio/read-at"); err == nil {
				more, err = f.f.ReadAt(b[n:min(len(b), n+piece)], offset+int64(n))
			}
			return err
		})
		if n += more; err != nil || n == len(b) {
			return n, f.error(err)
		}
	}
}

// Write implements [io.Writer].
func (f *File) Write(b []byte) (n int, err error) {
	for {
		more := 0
		err = f.files.do(f.path, func() (err error) {
			if err = failpoint.Hit("fileio/write"); err == nil {
				more, err = f.write(b[n:min(len(b), n+piece)])
			}
			return err
		})
		if n += more; err != nil || n == len(b) {
			return n, f.error(err)
		}
	}
}

func (f *File) write(b []byte) (int, error) {
	if f.object != nil {
		return f.writeObject(b)
	}
	return f.f.Write(b)
}

// Seek implements [io.Seeker].
func (f *File) Seek(offset int64, whence int) (int64, error) {
	if f.object != nil {
		return f.seekObject(offset, whence)
	}
	at, err := f.f.Seek(offset, whence)
	return at, f.error(err)
}

// Size returns the length of the file in bytes.
func (f *File) Size() (int64, error) {
	if f.object != nil {
		return f.objectSize()
	}
	info, err := f.f.Stat()
	if err != nil {
		return 0, f.error(err)
	}
	return info.Size(), nil
}

// Sync waits until the contents are on disk.
func (f *File) Sync() error {
	return f.error(f.files.do(f.path, func() error {
		if err := failpoint.Hit("fileio/sync"); err != nil {
			return err
		}
		if f.object != nil {
			return f.syncObject()
		}
		return f.f.Sync()
	}))
}

// Close closes the file.
func (f *File) Close() error {
	if f.object != nil {
		return f.closeObject()
	}
	return f.error(f.f.Close())
}

// error adds the path to an error of the operating system.
func (f *File) error(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // os.File returns io.EOF itself
		return err
	}
	return Error(f.path, err)
}
