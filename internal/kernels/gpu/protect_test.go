package gpu

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/weft-ml/weft/kernel"
)

// protect runs a kernel. A panic, also of an access to memory of the device, becomes an error.
func protect(k kernel.Kernel, ctx *kernel.Context) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			at := strings.Split(string(debug.Stack()), "\n")
			var where []string
			for _, l := range at {
				if strings.Contains(l, "internal/kernels/") && !strings.Contains(l, "kernels/gpu") && strings.HasPrefix(l, "\t") {
					where = append(where, strings.TrimSpace(l))
				}
			}
			err = fmt.Errorf("panic: %v at %v", p, where)
		}
	}()
	if a, ok := k.(kernel.Async); ok {
		done := make(chan error, 1)
		a.ComputeAsync(ctx, func(err error) { done <- err })
		return <-done
	}
	return k.Compute(ctx)
}
