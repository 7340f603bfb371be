package boosted

import "github.com/weft-ml/weft/internal/sys/membudget"

// change is the difference that the removal of a node makes: its logits become those of parent.
type change struct {
	parent int32 // the node itself if it stays
	logits []float32
}

// prune removes splits with negative gain whose children are leaves, from the bottom up. It records
// what became of each node, for examples whose last node is known.
func (t *tree) prune(logits int) {
	changes := membudget.Make[change](len(t.nodes))
	for i := range changes {
		changes[i].parent = int32(i)
	}
	// children have larger numbers than their parents
	removed := 0
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := &t.nodes[i]
		if n.kind == leafNode || n.gain >= 0 || t.nodes[n.left].kind != leafNode || t.nodes[n.right].kind != leafNode {
			continue
		}
		left, right := n.left, n.right
		*n = node{kind: leafNode, leaf: n.original}
		for _, child := range []int32{left, right} {
			changes[child] = change{int32(i), minus(padded(n.leaf.values(), logits), padded(t.nodes[child].leaf.values(), logits))}
			removed++
		}
	}
	if removed == 0 {
		return
	}
	moved := membudget.Make[int32](len(t.nodes)) // new numbers of nodes that stay
	kept := int32(0)
	for i := range t.nodes {
		if changes[i].parent == int32(i) {
			moved[i] = kept
			kept++
		}
	}
	nodes := membudget.MakeCap[node](kept)
	for i := range t.nodes {
		at, sum := int32(i), membudget.Make[float32](logits)
		for changes[at].parent != at {
			plus(sum, changes[at].logits)
			at = changes[at].parent
		}
		t.pruned = append(t.pruned, pruned{moved[at], sum})
		if at != int32(i) {
			continue
		}
		n := t.nodes[i]
		if n.kind != leafNode {
			n.left, n.right = moved[n.left], moved[n.right]
		}
		nodes = append(nodes, n)
	}
	t.nodes = nodes
}

// padded returns v with n elements.
func padded(v []float32, n int) []float32 {
	out := membudget.Make[float32](n)
	copy(out, v)
	return out
}
