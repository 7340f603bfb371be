//go:build gpu

package nvrtc

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
)

// nv are the functions of NVRTC.
var nv struct {
	CreateProgram, CompileProgram, DestroyProgram, GetPTXSize, GetPTX, GetProgramLogSize, GetProgramLog, Version uintptr
}

var openLibrary = sync.OnceValue(func() error {
	names := []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}
	for _, n := range names[:len(names):len(names)] {
		names = append(names, dl.PythonLibraries(n)...)
	}
	l, err := dl.Open("WEFT_NVRTC", names...)
	if err != nil {
		return err
	}
	return l.Bind("nvrtc", &nv)
})

// Version returns the version of the library.
func Version() (major, minor int, err error) {
	if err := openLibrary(); err != nil {
		return 0, 0, err
	}
	var a, b int32
	if r := dl.Call(nv.Version, uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&b))); r != 0 {
		return 0, 0, fmt.Errorf("nvrtcVersion: status %d", r)
	}
	return int(a), int(b), nil
}

// Compile returns PTX of a program for an architecture, as compute_52. Products are fused with sums
// only where the program says so, and division and square root are exact. The error contains what
// the compiler said.
func Compile(name, source, arch string, defines ...string) (string, error) {
	if err := openLibrary(); err != nil {
		return "", err
	}
	text, cname := dl.CString(source), dl.CString(name)
	var program uintptr
	if r := dl.Call(nv.CreateProgram, uintptr(unsafe.Pointer(&program)), uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&cname[0])), 0, 0, 0); r != 0 {
		return "", fmt.Errorf("nvrtcCreateProgram: status %d", uint32(r))
	}
	defer dl.Call(nv.DestroyProgram, uintptr(unsafe.Pointer(&program)))
	list := []string{"--gpu-architecture=" + arch, "--std=c++17", "--prec-div=true", "--prec-sqrt=true", "--ftz=false", "--fmad=false"}
	for _, d := range defines {
		list = append(list, "-D"+d)
	}
	options := make([][]byte, len(list))
	at := make([]uintptr, len(list))
	for i, text := range list {
		options[i] = dl.CString(text)
		at[i] = uintptr(unsafe.Pointer(&options[i][0])) // on the heap: CString allocates there
	}
	r := dl.Call(nv.CompileProgram, program, uintptr(len(at)), uintptr(unsafe.Pointer(&at[0])))
	runtime.KeepAlive(options)
	if r != 0 {
		return "", fmt.Errorf("NVRTC: %s: status %d: %s", name, uint32(r), output(program, nv.GetProgramLogSize, nv.GetProgramLog))
	}
	return output(program, nv.GetPTXSize, nv.GetPTX) + "\n", nil
}

// output returns a text that belongs to a program.
func output(program, sizeOf, of uintptr) string {
	var n uint64
	dl.Call(sizeOf, program, uintptr(unsafe.Pointer(&n)))
	b := make([]byte, n+1)
	dl.Call(of, program, uintptr(unsafe.Pointer(&b[0])))
	return strings.TrimRight(string(b), "\x00\n")
}
