package fileio

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/weft-ml/weft/status"
)

// Error converts an error of the operating system about a file, for instance to the text "PATH; No
// such file or directory" with the code NotFound. It returns an error with a code, and nil,
// unchanged.
func Error(path string, err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	if _, ours := errors.AsType[*status.Error](err); ours || err == nil {
		return err
	}
	switch {
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
