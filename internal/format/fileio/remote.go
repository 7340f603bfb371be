package fileio

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/status"
)

// object is an open object of a store. One of its fields is set.
type object struct {
	r *objectstore.Reader
	w *objectstore.Writer
	a *objectstore.Appender
}

func (f Files) context() context.Context {
	if f.ctx == nil {
		return context.Background()
	}
	return f.ctx
}

// remote makes a call for an object within the rights of the user and the limit of calls.
func (f Files) remote(path, fault string, right Rights, call func(context.Context, objectstore.Name) error) error {
	if _, err := f.at(path, right); err != nil {
		return err
	}
	n, err := objectstore.Parse(path)
	if err != nil {
		return err
	}
	return Error(path, f.do(path, func() error {
		if err := failpoint.Hit(fault); err != nil {
			return err
		}
		return call(f.context(), n)
	}))
}

func (f Files) openRemote(path string) (*File, error) {
	var r *objectstore.Reader
	err := f.remote(path, "fileio/open", Reading, func(ctx context.Context, n objectstore.Name) (err error) {
		r, err = objectstore.Open(ctx, n)
		if status.CodeOf(err) == status.NotFound {
			if folder, _ := objectstore.IsFolder(ctx, n); folder {
				return syscall.EISDIR
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &File{object: &object{r: r}, files: f, path: path}, nil
}

// appendRemote opens an object for writing at its end.
func (f Files) appendRemote(path string, fresh, truncate bool) (*File, error) {
	var a *objectstore.Appender
	err := f.remote(path, "fileio/open", Writing, func(ctx context.Context, n objectstore.Name) (err error) {
		if fresh {
			if _, err := objectstore.Stat(ctx, n); status.CodeOf(err) != status.NotFound {
				if err == nil {
					err = syscall.EEXIST
				}
				return err
			}
		}
		a, err = objectstore.OpenAppender(ctx, n, truncate)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &File{object: &object{a: a}, files: f, path: path}, nil
}

// createRemote is Create for an object, which needs no temporary file: nothing of it is visible
// before it is complete.
func (f Files) createRemote(path string) (*Temp, error) {
	var w *objectstore.Writer
	err := f.remote(path, "fileio/open", Writing, func(_ context.Context, n objectstore.Name) (err error) {
		w, err = objectstore.Create(n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Temp{&File{object: &object{w: w}, files: f, path: path}, f, path}, nil
}

// wrongUse returns the error of an object that was not opened for a use.
func (f *File) wrongUse() error {
	return status.Errorf(status.FailedPrecondition, "%s; Bad file descriptor", f.path)
}

func (f *File) readObject(b []byte) (int, error) {
	if f.object.r == nil {
		return 0, f.wrongUse()
	}
	return f.object.r.Read(f.files.context(), b)
}

func (f *File) readObjectAt(b []byte, offset int64) (n int, err error) {
	if f.object.r == nil {
		return 0, f.wrongUse()
	}
	err = f.files.do(f.path, func() (err error) {
		if err = failpoint.Hit("fileio/read-at"); err == nil {
			n, err = f.object.r.ReadAt(f.files.context(), b, offset)
		}
		return err
	})
	return n, f.error(err)
}

func (f *File) writeObject(b []byte) (int, error) {
	switch o := f.object; {
	case o.w != nil:
		return o.w.Write(f.files.context(), b)
	case o.a != nil:
		return o.a.Write(f.files.context(), b)
	}
	return 0, f.wrongUse()
}

func (f *File) seekObject(offset int64, whence int) (int64, error) {
	if f.object.r == nil {
		return 0, f.wrongUse()
	}
	return f.object.r.Seek(offset, whence)
}

func (f *File) objectSize() (int64, error) {
	switch o := f.object; {
	case o.r != nil:
		return o.r.Size(), nil
	case o.a != nil:
		return o.a.Size(), nil
	}
	return 0, f.wrongUse()
}

// syncObject stores what was appended. A whole object is stored when it is renamed.
func (f *File) syncObject() error {
	if f.object.a != nil {
		return f.object.a.Sync(f.files.context())
	}
	return nil
}

func (f *File) closeObject() error {
	if f.object.a == nil {
		return nil
	}
	return f.Sync()
}

func (f Files) statRemote(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := f.remote(path, "fileio/stat", Reading, func(ctx context.Context, n objectstore.Name) error {
		if n.Key != "" {
			o, err := objectstore.Stat(ctx, n)
			if status.CodeOf(err) != status.NotFound {
				info = objectstore.FileInfo(Base(path), false, o)
				return err
			}
		}
		folder, err := objectstore.IsFolder(ctx, n)
		if err == nil && !folder {
			err = status.NotFoundf("%s", missing(n))
		}
		info = objectstore.FileInfo(Base(path), true, objectstore.Info{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// missing returns the text of TensorFlow for an object that does not exist.
func missing(n objectstore.Name) string {
	if n.Scheme == objectstore.S3 {
		return "Object " + n.String() + " does not exist"
	}
	return "The specified path " + n.String() + " was not found."
}

// readDirRemote returns the entries of a folder whose names begin with prefix. A folder without
// objects does not exist, except that of a bucket.
func (f Files) readDirRemote(path, prefix string) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	err := f.remote(path, "fileio/stat", Reading, func(ctx context.Context, n objectstore.Name) error {
		err := objectstore.List(ctx, n, prefix, func(e objectstore.Entry) error {
			all = append(all, objectstore.FileInfo(e.Name, e.Folder, e.Info))
			return f.fs.checkNames(path, len(all))
		})
		if err != nil || len(all) > 0 || prefix != "" || n.Key == "" {
			return err
		}
		folder, err := objectstore.IsFolder(ctx, n)
		switch {
		case err != nil || folder:
			return err
		}
		if _, err := objectstore.Stat(ctx, n); err == nil {
			return syscall.ENOTDIR
		}
		return status.NotFoundf("%s", missing(n))
	})
	if err != nil {
		return nil, err
	}
	sortEntries(all)
	// an object and a folder may have the same name
	return slices.CompactFunc(all, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() }), nil
}

// removeRemote removes an object, or the object that stands for an empty folder.
func (f Files) removeRemote(path string) error {
	return f.remote(path, "fileio/remove", Writing, func(ctx context.Context, n objectstore.Name) error {
		if _, err := objectstore.Stat(ctx, n); err == nil || status.CodeOf(err) != status.NotFound {
			if err != nil {
				return err
			}
			return objectstore.Remove(ctx, n)
		}
		folder, err := objectstore.IsFolder(ctx, n)
		if err != nil {
			return err
		}
		if !folder {
			return status.NotFoundf("%s", missing(n))
		}
		return objectstore.ListAll(ctx, n, func(objectstore.Entry) error { return syscall.ENOTEMPTY })
	})
}

func (f Files) removeAllRemote(path string) error {
	return f.remote(path, "fileio/remove", Writing, func(ctx context.Context, n objectstore.Name) error {
		if err := n.NotBucket(); err != nil {
			return err
		}
		if err := objectstore.RemoveFolder(ctx, n); err != nil {
			return err
		}
		return objectstore.Remove(ctx, n)
	})
}

// renameRemote copies an object, or those of a folder, and removes the originals. What makes the
// others usable comes last: the file of a SavedModel, and the index and the state of checkpoints.
func (f Files) renameRemote(from, to string) error {
	if IsRemote(from) != IsRemote(to) {
		return Error(from, syscall.EXDEV)
	}
	if _, err := f.at(to, Writing); err != nil {
		return err
	}
	target, err := objectstore.Parse(to)
	if err != nil {
		return err
	}
	return f.remote(from, "fileio/rename", Writing, func(ctx context.Context, n objectstore.Name) error {
		info, err := objectstore.Stat(ctx, n)
		if err == nil {
			return objectstore.Rename(ctx, n, target, info)
		}
		if status.CodeOf(err) != status.NotFound {
			return err
		}
		var all []objectstore.Entry
		notFound := err
		err = objectstore.ListAll(ctx, n, func(e objectstore.Entry) error {
			all = append(all, e)
			return f.fs.checkNames(from, len(all))
		})
		if err == nil && len(all) == 0 {
			err = notFound
		}
		if err != nil {
			return err
		}
		slices.SortStableFunc(all, func(a, b objectstore.Entry) int { return rank(a.Name) - rank(b.Name) })
		for _, e := range all {
			if err := objectstore.Rename(ctx, n.In(e.Name), target.In(e.Name), e.Info); err != nil {
				return err
			}
		}
		return nil
	})
}

// rank orders the files of a folder by when they may appear.
func rank(name string) int {
	switch base := Base(name); {
	case base == "checkpoint":
		return 3
	case strings.HasPrefix(base, "saved_model.pb"):
		return 2
	case strings.HasSuffix(base, ".index"):
		return 1
	}
	return 0
}
