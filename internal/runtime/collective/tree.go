package collective

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/tensor"
)

// tree is a broadcast among some devices, from the one at position source.
type tree struct {
	index  int   // part of the keys
	ranks  []int // of the devices
	at     int   // position of this device
	source int
}

// trees returns the trees that this device takes part in, in the order in which they run. With
// several tasks the value first goes from the source to one device of each task, and from there to
// the other devices of the task.
func (x *execution) trees() []tree {
	tasks := x.group.tasks()
	var out []tree
	between := tree{at: -1}
	first := 0
	for i, n := range tasks {
		entry := 0 // the device of the task that receives the value first
		if x.source >= first && x.source < first+n {
			entry = x.source - first
			between.source = i
		}
		if first+entry == x.rank {
			between.at = i
		}
		between.ranks = append(between.ranks, first+entry)
		within := tree{index: i, at: -1, source: entry}
		if len(tasks) > 1 {
			within.index++
		}
		for d := range n {
			if first+d == x.rank {
				within.at = d
			}
			within.ranks = append(within.ranks, first+d)
		}
		if within.at >= 0 {
			out = append(out, within)
		}
		first += n
	}
	if len(tasks) > 1 && between.at >= 0 {
		out = append([]tree{between}, out...)
	}
	return out
}

// parent returns the position that the device receives from. The tree is a binary heap of
// positions. A source that is not at position 0 is the parent of the heap.
func (t *tree) parent() int {
	if t.source == 0 {
		return (t.at - 1) / 2
	}
	if p := t.at/2 - 1; p >= 0 {
		return p
	}
	return t.source
}

// children returns the positions that the device sends to.
func (t *tree) children() []int {
	var out []int
	child := 2*t.at + 1
	if t.source != 0 {
		child = 2 * (t.at + 1)
		if t.at == t.source {
			out = append(out, 0)
			if len(t.ranks) > 2 && t.source != 1 {
				out = append(out, 1)
			}
		}
	}
	for c := child; c < child+2; c++ {
		if c < len(t.ranks) && c != t.source {
			out = append(out, c)
		}
	}
	return out
}

// broadcast sends the tensor of the source to all devices.
func (x *execution) broadcast(ctx context.Context) (tensor.Tensor, error) {
	var value tensor.Tensor
	if x.rank == x.source {
		value = x.in.Retain()
	}
	for _, t := range x.trees() {
		key := func(from, to int) string { return fmt.Sprintf("%s:%d:%d:%d", x.key, t.index, from, to) }
		if t.at != t.source {
			from := t.parent()
			var err error
			if value, err = x.receive(ctx, t.ranks[from], key(from, t.at), int(x.op.Shape.NumElements())); err != nil {
				return tensor.Tensor{}, err
			}
		}
		children := t.children()
		err := each(ctx, len(children), func(ctx context.Context, i int) error {
			return x.send(ctx, key(t.at, children[i]), value.Retain())
		})
		if err != nil {
			value.Release()
			return tensor.Tensor{}, err
		}
	}
	out, err := value.WithShape(x.op.Shape)
	if err != nil {
		value.Release()
	}
	return out, err
}
