package fileio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openTree opens a folder as a tree. A kernel before 5.6, or one behind a filter of system calls,
// has no openat2; then the tree is that of the Go library, which does not stop mounts.
func openTree(dir string) (tree, error) {
	fd, err := retry(func() (int, error) { return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	t := kernelTree{os.NewFile(uintptr(fd), dir)}
	probe, err := t.open(".", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		probe.Close()
		return t, nil
	}
	t.close()
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return openLibraryTree(dir)
	}
	return nil, err
}

// kernelTree lets the kernel resolve the names below a folder.
type kernelTree struct{ dir *os.File }

func (t kernelTree) close() { t.dir.Close() }

// beneath keeps a name below the folder: no "..", no absolute link, no link of /proc to an open
// file and no mount leads out.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// retries is the number of times that a name with ".." is resolved again after a folder was renamed
// meanwhile, which the kernel reports as EAGAIN.
const retries = 64

func (t kernelTree) open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flag) | unix.O_CLOEXEC, Resolve: beneath} //nolint:gosec // flags are positive
	if flag&(os.O_CREATE) != 0 {
		how.Mode = uint64(perm.Perm())
	}
	for tries := retries; ; tries-- {
		fd, err := retry(func() (int, error) { return unix.Openat2(int(t.dir.Fd()), name, &how) })
		if err == nil {
			return os.NewFile(uintptr(fd), filepath.Join(t.dir.Name(), name)), nil //nolint:gosec // a descriptor
		}
		if !errors.Is(err, unix.EAGAIN) || tries == 0 {
			return nil, &fs.PathError{Op: "openat2", Path: name, Err: err}
		}
	}
}

// retry repeats a call that a signal has interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func (t kernelTree) stat(name string) (fs.FileInfo, error)  { return t.info(name, 0) }
func (t kernelTree) lstat(name string) (fs.FileInfo, error) { return t.info(name, unix.O_NOFOLLOW) }

// info describes a file without opening it for reading or writing.
func (t kernelTree) info(name string, flag int) (fs.FileInfo, error) {
	f, err := t.open(name, unix.O_PATH|flag, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// in opens the folder of a name, and calls f with it and with the last part of the name.
func (t kernelTree) in(name string, f func(dir int, base string) error) error {
	base := filepath.Base(name)
	if base == ".." || base == "." {
		return &fs.PathError{Op: "openat2", Path: name, Err: unix.EINVAL}
	}
	dir, err := t.open(filepath.Dir(name), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	_, err = retry(func() (int, error) { return 0, f(int(dir.Fd()), base) })
	if err != nil {
		return &fs.PathError{Op: "openat2", Path: name, Err: err}
	}
	return nil
}

func (t kernelTree) mkdir(name string, perm fs.FileMode) error {
	return t.in(name, func(dir int, base string) error { return unix.Mkdirat(dir, base, uint32(perm.Perm())) })
}

func (t kernelTree) remove(name string) error {
	return t.in(name, func(dir int, base string) error {
		err := unix.Unlinkat(dir, base, 0)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
		}
		return err
	})
}

func (t kernelTree) rename(name string, to tree, newName string) error {
	target, ok := to.(kernelTree)
	if !ok {
		return &fs.PathError{Op: "renameat", Path: name, Err: unix.EXDEV}
	}
	return t.in(name, func(dir int, base string) error {
		return target.in(newName, func(newDir int, newBase string) error { return unix.Renameat(dir, base, newDir, newBase) })
	})
}

// leaves implements tree. The kernel reports EXDEV for a name that leads out, and ELOOP for a link
// of /proc.
func (kernelTree) leaves(err error) bool {
	if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Op != "openat2" {
		return false
	}
	return errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP)
}
