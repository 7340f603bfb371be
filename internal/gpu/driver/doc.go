// Package driver is the interface between Weft and the libraries that make GPUs compute. A driver
// finds devices; a device has memory, kernels and streams; a stream is a queue of work.
//
// Three packages implement it: internal/gpu/cuda and internal/gpu/opencl (build tag gpu) open the
// vendor's library when the program asks for devices, and internal/gpu/hostgpu computes on the CPU
// for tests.
//
// # Rules
//
// Memory on a device is named by a [Mem], which cannot be dereferenced. Work on a stream is
// asynchronous: a call returns when the work is queued. Pieces of work on one stream run one after
// the other. Work on two streams is ordered by [Stream.Record] and [Stream.Wait] only.
//
// Memory of the host that takes part in a copy stays unchanged, and reachable for the garbage
// collector, until the stream has passed the copy: the caller holds it until an [Event] after the
// copy is done. Memory on the device may be given to other work on the same stream at once, since
// that work runs later.
//
// A [Device], [Module] and [Kernel] may be used by several goroutines at once. A [Stream] is used
// by one goroutine at a time. An [Event] is used by one goroutine at a time, except that several
// streams may wait for it.
//
// An error of a kernel appears at a later call on the same device, and stays: the device cannot be
// used any more by this process. An error that wraps [ErrOutOfMemory] does not stay.
package driver
