// Package heapprofile turns the sampling of allocations off until it is wanted.
//
// The Go runtime samples allocations as soon as a program links a reader of heap profiles, such as
// net/http/pprof. Each sample reads the tables of the call stack, which adds 2 MiB of the program's
// file to the memory of an idle task. A program imports this package to start without samples.
package heapprofile

import "runtime"

// usualRate is the runtime's default: one sample for this number of allocated bytes.
const usualRate = 512 << 10

//nolint:gochecknoinits // the runtime reads the rate when it starts
func init() { runtime.MemProfileRate = 0 }

// Start starts sampling. It must be called before the program allocates much, and before it starts
// goroutines that do.
func Start() { runtime.MemProfileRate = usualRate }
