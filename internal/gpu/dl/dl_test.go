//go:build gpu

package dl

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

func TestOpenAndCall(t *testing.T) {
	if _, err := Open("", "libthere-is-none.so.1"); err == nil {
		t.Error("a library that is not there was opened")
	}
	if _, err := Open(""); err == nil {
		t.Error("no library was opened")
	}
	l, err := Open("", "libthere-is-none.so.1", "libc.so.6")
	if err != nil {
		t.Skip(err)
	}
	var missing struct{ Gone uintptr }
	if err := l.Bind("strange", &missing); err == nil || err.Error() != "libc.so.6: no function strangeGone" {
		t.Errorf("a function that is not there: %v", err)
	}
	var optional struct {
		Gone uintptr `dl:"optional"`
	}
	if err := l.Bind("strange", &optional); err != nil || optional.Gone != 0 {
		t.Errorf("%v, %v", optional, err)
	}
	strlen, err := purego.Dlsym(l.handle, "strlen")
	if err != nil {
		t.Fatal(err)
	}
	b := CString("seven..")
	if n := Call(strlen, uintptr(unsafe.Pointer(&b[0]))); n != 7 {
		t.Errorf("strlen is %d", n)
	}
	if s := Cut(append(b, "rest"...)); s != "seven.." {
		t.Errorf("cut to %q", s)
	}
}

func TestPythonLibraries(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "nvidia/cudnn/lib/libcudnn.so.9")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEFT_CUDA_LIBRARIES", "/nowhere:"+dir)
	if got := PythonLibraries("libcudnn.so.9"); !slices.Contains(got, path) {
		t.Errorf("found %v", got)
	}
}
