package kernel

import (
	"time"

	"github.com/weft-ml/weft/tensor"
)

// CollectiveKind is the kind of a collective operation. The values are those of the wire.
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

// CollectiveGroup is a group of devices that take part in collective operations together.
type CollectiveGroup struct {
	Key  int32 // identifier of the group
	Size int32 // number of devices
	Rank int32 // requested rank of the kernel's device; -1 for any
}

// Collective is one device's part in an operation of all devices of a group. Each device runs it in
// its own graph.
type Collective struct {
	Name     string // name of the node and of the operation, for messages
	Kind     CollectiveKind
	Group    CollectiveGroup
	Joined   bool  // the group was joined before and must be known
	Instance int32 // distinguishes the operations of a group
	Source   bool  // this device has the broadcast value
	DType    tensor.DType
	Shape    tensor.Shape // shape of the result, which must be the same on all devices
	// Offsets are the start positions of the rings in each task, one per ring. If there are none,
	// the size determines the number of rings, at most MaxRings; a negative MaxRings means one
	// ring.
	Offsets  []int64
	MaxRings int
	Timeout  time.Duration // limit for joining and for the exchange; 0 for none
	// Merge sets acc to acc op x. Finish ends a reduction over n devices and may be nil.
	Merge  func(acc, x *tensor.Tensor)
	Finish func(acc *tensor.Tensor, n int)
}

// Collectives connects the kernels of a step with those on other devices. Both methods may block,
// at most until the step ends.
type Collectives interface {
	// Join waits until all devices of a group have joined it.
	Join(ctx *Context, group CollectiveGroup, timeout time.Duration) error
	// Run performs the device's part of an operation. The input in is borrowed, and is not
	// initialized if the device has none. The caller owns the result.
	Run(ctx *Context, op *Collective, in *tensor.Tensor) (tensor.Tensor, error)
}
