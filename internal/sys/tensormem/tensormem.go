// Package tensormem gives the runtime access to the memory management of package tensor, which is
// not part of that package's public API. Package tensor sets the variables when it is initialized.
// Nothing else may set them.
package tensormem

var (
	// SetLimit sets the maximum size of a tensor in bytes. Larger allocations are ResourceExhausted
	// errors, as are those beyond the available memory.
	SetLimit func(bytes int64)
	// DropFree drops the free large buffers, so that the garbage collector can return their memory.
	DropFree func()
	// FreeBytes returns the size of the free large buffers.
	FreeBytes func() int64
	// Held returns the number of counted buffers with references, for leak tests; 0 without -tags
	// invariants.
	Held func() int64
	// SetReclaimer registers a function that releases references to the memory of a tensor, a
	// *tensor.Tensor, that are held longer than needed. It is called before Exclusive looks for
	// other holders. A later call replaces it.
	SetReclaimer func(tensor any, reclaim *func())
	// NewDevice returns a counted buffer, a *tensor.Buffer, over addresses of a device's memory
	// that the CPU cannot access. owner has a method Clone(*tensor.Tensor) (tensor.Tensor, error).
	// free is called once, after the last reference is released.
	NewDevice func(mem []byte, owner any, free func()) (buffer any)
	// DeviceOf returns the owner of the memory of a tensor, a *tensor.Tensor, that is on a device;
	// nil for memory of the host.
	DeviceOf func(tensor any) (owner any)
)
