// Package fileio accesses the file system for operations and file formats. It has errors with
// TensorFlow's codes and texts, files that appear complete or not at all, and patterns of names.
package fileio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/weft-ml/weft/status"
)

// Error converts an error of the operating system about a file, for instance to the text "PATH; No
// such file or directory" with the code NotFound. It returns nil for nil.
func Error(path string, err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pathErr):
		err = pathErr.Err
	case errors.As(err, &linkErr):
		err = linkErr.Err
	}
	text := err.Error()
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return status.Errorf(codeOf(err), "%s; %s", path, text)
}

// codes maps error numbers to TensorFlow's codes. All others are Unknown.
var codes = map[syscall.Errno]status.Code{
	syscall.EINVAL: status.InvalidArgument, syscall.ENAMETOOLONG: status.InvalidArgument, syscall.ESPIPE: status.InvalidArgument,
	syscall.ENOTTY: status.InvalidArgument, syscall.E2BIG: status.InvalidArgument,
	syscall.ENOENT: status.NotFound, syscall.ENODEV: status.NotFound, syscall.ENXIO: status.NotFound,
	syscall.EEXIST: status.AlreadyExists,
	syscall.EPERM:  status.PermissionDenied, syscall.EACCES: status.PermissionDenied, syscall.EROFS: status.PermissionDenied,
	syscall.ENOTEMPTY: status.FailedPrecondition, syscall.EISDIR: status.FailedPrecondition, syscall.ENOTDIR: status.FailedPrecondition, syscall.EBADF: status.FailedPrecondition,
	syscall.EBUSY: status.FailedPrecondition, syscall.EPIPE: status.FailedPrecondition, syscall.ETXTBSY: status.FailedPrecondition,
	syscall.ENOSPC: status.ResourceExhausted, syscall.EMFILE: status.ResourceExhausted, syscall.ENFILE: status.ResourceExhausted,
	syscall.EMLINK: status.ResourceExhausted, syscall.ENOMEM: status.ResourceExhausted, syscall.EDQUOT: status.ResourceExhausted,
	syscall.EFBIG: status.OutOfRange, syscall.EOVERFLOW: status.OutOfRange, syscall.ERANGE: status.OutOfRange,
	syscall.ENOSYS: status.Unimplemented, syscall.ENOTSUP: status.Unimplemented, syscall.EXDEV: status.Unimplemented,
	syscall.EAGAIN: status.Unavailable, syscall.EINTR: status.Unavailable, syscall.ENOLCK: status.Unavailable,
	syscall.EDEADLK: status.Aborted, syscall.ESTALE: status.Aborted,
}

func codeOf(err error) status.Code {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		if code, ok := codes[errno]; ok {
			return code
		}
	}
	return status.Unknown
}

// Read returns the contents of a file.
func Read(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	return b, Error(path, err)
}

// Write replaces the contents of a file and waits until they are on disk. It creates the folders of
// the file. After an error an older file is unchanged.
func Write(path string, contents []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return Error(filepath.Dir(path), err)
	}
	t, err := Create(path)
	if err != nil {
		return err
	}
	defer t.Abort()
	if _, err := t.Write(contents); err != nil {
		return err
	}
	return t.Commit()
}

// MakeDir creates a folder, whose parent must exist. It returns nil if the folder exists.
func MakeDir(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return Error(path, err)
	}
	return nil
}

// Match returns the paths that match a pattern, in order. "*" and "?" do not match a slash, and
// "[!a]" matches any character except a. A malformed pattern matches nothing.
func Match(pattern string) []string {
	paths, err := filepath.Glob(strings.ReplaceAll(pattern, "[!", "[^"))
	if err != nil {
		return nil
	}
	return paths
}
