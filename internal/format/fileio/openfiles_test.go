//go:build unix

package fileio_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/status"
)

// The files of a task leave file descriptors to connections.
func TestFilesLeaveDescriptors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	const most = 400
	low := before
	low.Cur = most
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	fs, err := fileio.New(fileio.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	files := fs.For("ReadFile", fileio.Reading)
	opened := 0
	for ; err == nil && opened <= most; opened++ {
		var f *fileio.File
		if f, err = files.Open(path); err == nil {
			defer f.Close()
		}
	}
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("the error after %d files is %v", opened, err)
	}
	for i := range most / 10 {
		f, err := os.Open(path)
		if err != nil {
			t.Fatalf("%d descriptors are left: %v", i, err)
		}
		defer f.Close()
	}
}
