package op

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Err returns the mistakes made so far in building the graph; nil for none.
func (s *Scope) Err() error { return errors.Join(*s.b.errs...) }

// Fail records a mistake, for functions that are built on this package. Its place is that of the
// innermost caller outside of the packages that build graphs.
func (s *Scope) Fail(err error) {
	*s.b.errs = append(*s.b.errs, fmt.Errorf("%s%w", callSite(), err))
}

// builders are the packages whose functions call each other on behalf of a caller.
var builders = []string{"op.", "gradients.", "train.", "savedmodel."}

const module = "github.com/weft-ml/weft/"

// callSite returns "file:line: " of the innermost caller that is not one of the builders, "" if
// there is none.
func callSite() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !isBuilder(f.Function) {
			return fmt.Sprintf("%s:%d: ", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

func isBuilder(function string) bool {
	rest, ok := strings.CutPrefix(function, module)
	if !ok {
		return false
	}
	for _, pkg := range builders {
		if strings.HasPrefix(rest, pkg) {
			return true
		}
	}
	return false
}
