package kernel

import (
	"time"

	"github.com/weft-ml/weft/tensor"
)

// CollectiveKind says what a collective operation does. The numbers are those of the wire.
type CollectiveKind int32

// The kinds of collective operations.
const (
	Reduction CollectiveKind = iota
	Broadcast
	Gather
	Permutation
	AllToAll
	ReduceScatter
)

// CollectiveGroup names the devices that work together.
type CollectiveGroup struct {
	Key  int32
	Size int32
	Rank int32 // the place in the group that the kernel's device asks for; -1 to be given one
}

// Collective is one device's part in an operation that all devices of a group make together, each
// in its own graph.
type Collective struct {
	Name     string // of the node and what it does, for messages
	Kind     CollectiveKind
	Group    CollectiveGroup
	Joined   bool  // the group has been joined before and must be known
	Instance int32 // tells the operations of a group apart
	Source   bool  // this device has what is broadcast
	DType    tensor.DType
	Shape    tensor.Shape // that all devices must agree on: of the result
	// Offsets say from where in each task the rings start, one ring for each; none for at most
	// MaxRings rings, as many as the size asks for. A MaxRings below 0 is one ring.
	Offsets  []int64
	MaxRings int
	Timeout  time.Duration // of finding each other, and of the exchange; 0 for none
	// Merge sets acc to acc op x, and Finish ends a reduction over n devices; Finish may be nil.
	Merge  func(acc, x *tensor.Tensor)
	Finish func(acc *tensor.Tensor, n int)
}

// Collectives lets the kernels of a step work together with those on other devices. Both methods
// wait, no longer than the step lives.
type Collectives interface {
	// Join waits until all devices of a group have joined it.
	Join(ctx *Context, group CollectiveGroup, timeout time.Duration) error
	// Run makes the device's part in an operation with its input, borrowed and not initialized
	// where it has none, and returns the result, whose reference is the caller's.
	Run(ctx *Context, op *Collective, in *tensor.Tensor) (tensor.Tensor, error)
}
