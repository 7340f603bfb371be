package boosted

import (
	"context"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// change is the difference that the removal of a node makes: its logits become those of parent.
type change struct {
	parent int32 // the node itself if it stays
	logits []float32
}

// prune removes splits with negative gain whose children are leaves, from the bottom up. It records
// what became of each node, for examples whose last node is known. If ctx ends before, the tree is
// unchanged.
func (t *tree) prune(ctx context.Context, logits int) error {
	// Each node has at most three lists of logits, two of them of a change that removes it. A
	// client's tree has any number of nodes, whatever their logits are.
	membudget.MustTake(3 * 4 * int64(logits) * int64(len(t.nodes)))
	all := membudget.AppendAll(nil, t.nodes...)
	changes := membudget.Make[change](len(all))
	for i := range changes {
		changes[i].parent = int32(i)
	}
	// children have larger numbers than their parents
	removed := 0
	for i := len(all) - 1; i >= 0; i-- {
		n := &all[i]
		if n.kind == leafNode || n.gain >= 0 || all[n.left].kind != leafNode || all[n.right].kind != leafNode {
			continue
		}
		left, right := n.left, n.right
		*n = node{kind: leafNode, leaf: n.original}
		for _, child := range []int32{left, right} {
			changes[child] = change{int32(i), minus(padded(n.leaf.values(), logits), padded(all[child].leaf.values(), logits))}
			removed++
		}
	}
	if removed == 0 {
		return nil
	}
	moved := membudget.Make[int32](len(all)) // new numbers of nodes that stay
	kept := int32(0)
	for i := range all {
		if changes[i].parent == int32(i) {
			moved[i] = kept
			kept++
		}
	}
	nodes, was := membudget.MakeCap[node](kept), membudget.MakeCap[pruned](len(all))
	steps := 0
	for i := range all {
		at, sum := int32(i), membudget.Make[float32](logits)
		for changes[at].parent != at {
			// a chain of nodes takes the square of its length
			if steps++; steps%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			plus(sum, changes[at].logits)
			at = changes[at].parent
		}
		was = append(was, pruned{moved[at], sum})
		if at != int32(i) {
			continue
		}
		n := all[i]
		if n.kind != leafNode {
			n.left, n.right = moved[n.left], moved[n.right]
		}
		nodes = append(nodes, n)
	}
	t.nodes, t.pruned = nodes, was
	return nil
}

// padded returns v with n elements.
func padded(v []float32, n int) []float32 {
	out := membudget.Make[float32](n)
	copy(out, v)
	return out
}
