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
func Find() string {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !inLibrary(f) {
			return fmt.Sprintf("%s:%d: ", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

type known struct{}

// Begin returns what Find does, and a context in which FindIn returns "": the caller adds the line
// to errors itself.
func Begin(ctx context.Context) (context.Context, string) {
	return context.WithValue(ctx, known{}, true), Find()
}

// FindIn is Find, unless a caller adds the line.
func FindIn(ctx context.Context) string {
	if ctx.Value(known{}) != nil {
		return ""
	}
	return Find()
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
