// Package callsite finds the line of the program that called into the library, for error messages.
package callsite

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

const module = "github.com/weft-ml/weft"

// library lists the packages, as paths within the module, whose functions call each other on behalf
// of a program.
var library = []string{".", "op", "gradients", "train", "savedmodel", "savedmodel/serve", "nn", "metrics", "data", "internal/sys/callsite"}

// maxFrames bounds the frames that are examined. Builders call each other less than ten deep.
const maxFrames = 64

// Find returns "file:line: " of the innermost caller that is not part of the library, with the base
// name of the file; "" if there is none.
func Find() string { return text(caller()) }

// caller returns the frame of the innermost caller that is not part of the library.
func caller() (f runtime.Frame, ok bool) {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !inLibrary(f) {
			return f, true
		}
		if !more {
			return f, false
		}
	}
}

func text(f runtime.Frame, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", filepath.Base(f.File), f.Line)
}

type known struct{}

// Begin returns what Find does, and a context in which FindIn returns "": the caller adds the line
// to errors itself.
func Begin(ctx context.Context) (context.Context, string) {
	return context.WithValue(ctx, known{}, true), Find()
}

// FindIn is Find for errors of steps. It returns "" if a caller adds the line, and for servers of
// this module, whose clients have the errors.
func FindIn(ctx context.Context) string {
	if ctx.Value(known{}) != nil {
		return ""
	}
	f, ok := caller()
	if ok && isServer(f) {
		return ""
	}
	return text(f, ok)
}

// isServer reports whether a frame belongs to a package of this module that programs cannot import.
func isServer(f runtime.Frame) bool {
	rest, ok := strings.CutPrefix(f.Function, module)
	return ok && !strings.HasSuffix(f.File, "_test.go") && (strings.HasPrefix(rest, "/internal/") || strings.HasPrefix(rest, "/cmd/"))
}

// inLibrary reports whether a frame belongs to the library. Its tests count as programs.
func inLibrary(f runtime.Frame) bool {
	rest, ok := strings.CutPrefix(f.Function, module)
	if !ok || strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	for _, pkg := range library {
		prefix := "/" + pkg + "."
		if pkg == "." {
			prefix = "."
		}
		if strings.HasPrefix(rest, prefix) {
			return true
		}
	}
	return false
}
