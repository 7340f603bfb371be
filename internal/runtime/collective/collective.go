// Package collective implements operations that devices of several tasks execute together, such as
// an all-reduce. Every device of a group runs the same operation in a graph of its own, and all
// receive the result.
//
// The simple design sends all tensors to one task, which reduces them and sends the result back.
// The network of that task then carries the tensors of all members. In a ring every member sends
// and receives the same amount, so the devices exchange tensors directly.
//
// The protocol has three phases:
//
//   - Group: one task is the leader, whose name the configuration gives to all tasks. Every device
//     joins its group at the leader, which answers when all members are known
//     ([Manager.CompleteGroup]).
//   - Instance: every device passes the parameters of its operation to the leader, which compares
//     them and finds the source of a broadcast ([Manager.CompleteInstance]). An accepted instance
//     is cached.
//   - Exchange: tensors go from device to device without the leader. A device offers a tensor in
//     the [Buffers] of its step, under a key that both sides can compute, and the other device
//     requests it.
//
// Rings, trees and keys are those of TensorFlow, so a group may have members of both
// implementations.
//
// All tasks must run a collective operation in steps with the same number. [Sequences] makes the
// masters agree on these numbers.
package collective

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Device is a member of a group.
type Device struct {
	Name        string // full
	Type        string
	Incarnation uint64
	MemoryLimit int64
}

// task returns the name of the task that the device is on.
func (d *Device) task() string {
	task, _, _ := strings.Cut(d.Name, "/device:")
	return task
}

// Group is a complete group of devices.
type Group struct {
	Key     int32
	Type    string   // type of the devices
	Members []Device // by rank

	userRanks []int // ranks that the members requested, by rank; nil if none

	mu          sync.Mutex // held while description is made
	description any        // for members on other tasks; guarded by mu
}

// rank returns the rank of a device, or -1 if it is not a member.
func (g *Group) rank(name string) int {
	return slices.IndexFunc(g.Members, func(d Device) bool { return d.Name == name })
}

// Description returns what describe has returned. It calls describe once, because all members of a
// group ask for its description, usually at the same time.
func (g *Group) Description(describe func() (any, error)) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.description != nil {
		return g.description, nil
	}
	if !membudget.TakeRecord(g.memory()) {
		return nil, status.ResourceExhaustedf("There is not enough memory to describe the %d members of group %d (--memory-limit).",
			len(g.Members), g.Key)
	}
	made, err := describe()
	if err == nil {
		g.description = made
	}
	return made, err
}

// memory returns about the memory of a description of the group, in bytes.
func (g *Group) memory() int64 {
	n := int64(0)
	for i := range g.Members {
		n += memberMemory(&g.Members[i])
	}
	return n
}

// NumTasks returns the number of tasks that the members are on.
func (g *Group) NumTasks() int { return len(g.tasks()) }

// tasks returns the number of members of each task. Members of a task are consecutive.
func (g *Group) tasks() []int {
	var out []int
	for i := range g.Members {
		if i > 0 && g.Members[i].task() == g.Members[i-1].task() {
			out[len(out)-1]++
		} else {
			out = append(out, 1)
		}
	}
	return out
}

// sortDevices sorts devices by rank, as TensorFlow does: tasks by name, as text, and devices of a
// task by type and number.
func sortDevices(devices []Device) {
	slices.SortFunc(devices, func(a, b Device) int {
		if c := cmp.Compare(a.task(), b.task()); c != 0 {
			return c
		}
		x, errX := device.Parse(a.Name)
		y, errY := device.Parse(b.Name)
		if errX != nil || errY != nil {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.ID, y.ID))
	})
}

// Member is a request of a device to join a group.
type Member struct {
	Group  kernel.CollectiveGroup
	Device Device
}

// Instance holds the parameters that a device passes to an operation of its group.
type Instance struct {
	Group, Size, Key int32
	Name             string // of the node, for messages
	Kind             kernel.CollectiveKind
	DType            tensor.DType
	Shape            tensor.Shape
	Device           string
	Source           bool // the device has the value of a broadcast
	Offsets          []int64
	StepID           int64 // 0 if all steps share the instance
}

// Buffer is a request for a tensor that a device of another task offers in the buffers of its step.
type Buffer struct {
	StepID      int64
	Key         string
	From        Device // device that offers the tensor
	To          string // device that requests it
	Destination []byte // to be filled
}

// Peers calls the other tasks of a cluster. Tasks are named as in "/job:worker/replica:0/task:0".
type Peers interface {
	// CompleteGroup joins a group at its leader and waits until it is complete.
	CompleteGroup(ctx context.Context, leader string, m *Member) (*Group, error)
	// CompleteInstance sends the parameters of a device to the leader. It returns the rank of the
	// source of a broadcast.
	CompleteInstance(ctx context.Context, leader string, in *Instance) (source int, err error)
	// RecvBuf fills a buffer with the tensor that a task offers under its key.
	RecvBuf(ctx context.Context, task string, b *Buffer) error
}
