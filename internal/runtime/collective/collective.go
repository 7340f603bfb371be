// Package collective lets devices of several tasks compute together: every device of a group calls
// the same operation, as an all-reduce, in a graph of its own, and all get the result.
//
// Before they exchange anything, the devices find each other. One task, the leader, which all are
// told of, gathers who joins a group and, where that matters, what each brings to an instance of an
// operation ([Manager.CompleteGroup], [Manager.CompleteInstance]). Then the tensors go from device
// to device without the leader: a device puts what it has for another into the buffers of its step,
// under a key that both can tell, and the other asks for it. The rings and trees and the keys are
// those of TensorFlow, so that a group may have members of both kinds.
//
// All tasks must run a collective operation in steps of the same number. [Sequences] makes the
// masters agree on them.
package collective

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/kernel"
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
	Type    string   // of the devices
	Members []Device // by rank

	places []int // that the members asked for, by rank; nil if they did not
}

// rank returns the position of a device, -1 if it is no member.
func (g *Group) rank(name string) int {
	return slices.IndexFunc(g.Members, func(d Device) bool { return d.Name == name })
}

// NumTasks returns on how many tasks the members are.
func (g *Group) NumTasks() int { return len(g.tasks()) }

// tasks returns how many members each task has; those of a task follow each other.
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

// order ranks devices as TensorFlow does: tasks by name, as text, and in a task devices by type and
// number.
func order(devices []Device) {
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

// Member is a device that joins a group.
type Member struct {
	Group  kernel.CollectiveGroup
	Device Device
}

// Instance is what a device brings to an operation of its group.
type Instance struct {
	Group, Size, Key int32
	Name             string // of the node, for messages
	Kind             kernel.CollectiveKind
	DType            tensor.DType
	Shape            tensor.Shape
	Device           string
	Source           bool // the device has what is broadcast
	Offsets          []int64
	StepID           int64 // 0 where all steps share the instance
}

// Buffer is a request for what another device has put into the buffers of its step.
type Buffer struct {
	StepID      int64
	Key         string
	From        Device // that has it
	To          string // device that asks
	Destination []byte // to be filled
}

// Peers reaches the other tasks of a cluster, which are named as in "/job:worker/replica:0/task:0".
type Peers interface {
	// CompleteGroup joins a group at its leader.
	CompleteGroup(ctx context.Context, leader string, m *Member) (*Group, error)
	// CompleteInstance tells a leader what a device brings, and returns the rank of the source of a
	// broadcast.
	CompleteInstance(ctx context.Context, leader string, in *Instance) (source int, err error)
	// RecvBuf fills a buffer with what a task has under its key.
	RecvBuf(ctx context.Context, task string, b *Buffer) error
}
