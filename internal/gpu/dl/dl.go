//go:build gpu

package dl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/weft-ml/weft/internal/sys/onefile"
)

// Library is an open library. It stays open until the process ends.
type Library struct {
	Name   string // what it was opened by
	handle uintptr
}

// Open opens the first of the named libraries that is there. Names with a slash are paths; others
// are looked for as the system's loader does. Environment variable variable names the only library
// to try if it is set.
func Open(variable string, names ...string) (*Library, error) {
	if onefile.Alone() {
		return nil, errors.New("the program runs without the system's loader")
	}
	if name := os.Getenv(variable); name != "" {
		names = []string{name}
	}
	var first error
	for _, name := range names {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err == nil {
			return &Library{name, handle}, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = errors.New("no library to open")
	}
	return nil, first
}

// Bind sets each field of a struct of uintptr to the address of the function that has the name of
// the field after prefix. Fields with the tag dl:"optional" stay 0 if there is no such function.
func (l *Library) Bind(prefix string, to any) error {
	v := reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		at, err := purego.Dlsym(l.handle, prefix+field.Name)
		if err != nil && field.Tag.Get("dl") != "optional" {
			return fmt.Errorf("%s: no function %s%s", l.Name, prefix, field.Name)
		}
		if err == nil {
			v.Field(i).SetUint(uint64(at))
		}
	}
	return nil
}

// Func sets *to, a variable of a function type, to a C function. Unlike [Call], it can pass floats.
func (l *Library) Func(to any, name string) error {
	at, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return fmt.Errorf("%s: no function %s", l.Name, name)
	}
	purego.RegisterFunc(to, at)
	return nil
}

// Call calls a C function whose arguments are integers and pointers, at most 32.
//
//go:uintptrescapes
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// maxText is the length in bytes at which a text of C is cut.
const maxText = 4096

// Text returns the C string at an address.
func Text(at uintptr) string {
	if at == 0 {
		return ""
	}
	s := *(**[maxText]byte)(unsafe.Pointer(&at))
	n := 0
	for n < maxText && s[n] != 0 {
		n++
	}
	return string(s[:n])
}

// CString returns s with the byte 0 after it, on the heap.
//
//go:noinline
func CString(s string) []byte { return append([]byte(s), 0) }

// Cut returns the C string at the start of b.
func Cut(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.TrimSpace(s)
}

// PythonLibraries returns the paths of a library in the folders where Python packages of NVIDIA put
// them: site-packages/nvidia/*/lib of the interpreter in $VIRTUAL_ENV, of the system and of the
// user's home. Folders of the environment variable WEFT_CUDA_LIBRARIES, separated by colons, come
// first.
func PythonLibraries(name string) []string {
	var patterns []string
	for _, dir := range filepath.SplitList(os.Getenv("WEFT_CUDA_LIBRARIES")) {
		patterns = append(patterns, filepath.Join(dir, name), filepath.Join(dir, "nvidia/*/lib", name))
	}
	roots := []string{"/usr/local", "/usr", "/opt/*"}
	if dir := os.Getenv("VIRTUAL_ENV"); dir != "" {
		roots = append([]string{dir}, roots...)
	}
	if dir, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(dir, ".local"))
	}
	for _, root := range roots {
		for _, packages := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages", "lib/python3/dist-packages"} {
			patterns = append(patterns, filepath.Join(root, packages, "nvidia/*/lib", name))
		}
	}
	patterns = append(patterns, filepath.Join("/usr/local/cuda*/lib64", name))
	var found []string
	for _, p := range patterns {
		paths, err := filepath.Glob(p)
		if err == nil {
			found = append(found, paths...)
		}
	}
	return found
}
