// Package device makes a GPU of a driver usable by kernels: memory for tensors, streams with copies
// between host and device, and compiled kernels.
//
// # Memory
//
// A tensor on a device is a [tensor.Tensor] whose element bytes are addresses of the device's
// shadow (package shadow). Its buffer is counted, and the last release returns the memory to the
// pool at once, although queued work may still use it: the next holder's work is queued later.
//
// # Order
//
// All kernels of a device run on its compute stream, in the order in which they are queued. Small
// copies run there too. A large copy runs on the stream of its direction. It waits for the work
// that the compute stream has, and the compute stream waits for copies to the device. So everything
// that is queued after a call of this package sees the result of that call, and a holder that
// releases a tensor after it has queued its last use need not wait.
//
// The host sees results only through [Device.ToHost], whose callback runs when the copy is done.
//
// # Times
//
// [Device.Stats] has the time of all kernels. It is estimated from about one kernel of 32, because
// the two events that take a time cost about as much as a launch. A [Trace] takes the times of all
// work of the device while it runs.
//
// # Goroutines
//
// Each stream has a goroutine while callbacks are due. It waits for the events of the stream,
// oldest first, and calls the callbacks, which must not block. [Device.Close] waits for these
// goroutines.
//
// # Locks
//
// The lock of a stream is held while work is queued. Where two are needed, that of the copy stream
// is taken first, and that of the compute stream second. The lock of the pool may be taken while
// that of a stream is held, but not the other way round. The locks of modules, staging memory
// and traces are leaves.
package device
