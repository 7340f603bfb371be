// Package guard converts panics of kernels' own goroutines to errors. The executor does that for
// the goroutines that it calls kernels on.
package guard

import (
	"errors"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Call calls f and returns its error, or its panic as an error: RESOURCE_EXHAUSTED if memory was
// refused. what names the work in errors.
func Call(what string, f func() error) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if e, ok := p.(error); ok {
			// also within the panic of a loop of package parallel
			if over, ok := errors.AsType[*membudget.Exceeded](e); ok {
				err = status.ResourceExhaustedf("OOM when allocating %d bytes for %s", over.Bytes, what)
				return
			}
		}
		err = status.Internalf("panic in %s: %v", what, p)
	}()
	return f()
}
