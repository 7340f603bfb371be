package listops

import (
	"iter"

	"github.com/weft-ml/weft/tensor"
)

// vector is a sequence of tensors that never changes: what changes one makes another, which shares
// all but the path to the change. It is the tree of Bagwell and Rompf ("RRB-Trees", 2011) without
// concatenation: elements lie at the bottom of a tree whose nodes have 32 children, and what is nil
// in it, a node or an element, has not been set. The zero vector is empty.
type vector struct {
	root   *node
	height int // levels of nodes above those with elements
	n      int
}

const (
	bits  = 5
	width = 1 << bits
)

// node has children, or elements at the bottom.
type node struct {
	kids  *[width]*node
	elems *[width]*tensor.Tensor
}

// get returns element i, or nil if it has not been set.
func (v vector) get(i int) *tensor.Tensor {
	at := v.root
	for h := v.height; h > 0 && at != nil; h-- {
		at = at.kids[i>>(bits*h)%width]
	}
	if at == nil {
		return nil
	}
	return at.elems[i%width]
}

// set returns the vector with another element i.
func (v vector) set(i int, t *tensor.Tensor) vector {
	v.root = v.root.with(v.height, i, t)
	return v
}

// push returns the vector with one more element.
func (v vector) push(t *tensor.Tensor) vector { return v.resize(v.n+1).set(v.n, t) }

// resize returns the first n elements, with more that have not been set if there are fewer.
func (v vector) resize(n int) vector {
	if n < v.n {
		v.root = v.root.first(v.height, n)
	}
	for n > width<<(bits*v.height) {
		if v.root != nil {
			v.root = &node{kids: &[width]*node{v.root}}
		}
		v.height++
	}
	v.n = n
	return v
}

// all yields the elements that have been set, in order.
func (v vector) all() iter.Seq2[int, *tensor.Tensor] {
	return func(yield func(int, *tensor.Tensor) bool) { v.root.walk(v.height, 0, yield) }
}

// walk yields the elements of a tree whose first one has the given number, until yield wants no
// more.
func (n *node) walk(height, number int, yield func(int, *tensor.Tensor) bool) bool {
	switch {
	case n == nil:
		return true
	case height == 0:
		for i, t := range n.elems {
			if t != nil && !yield(number+i, t) {
				return false
			}
		}
	default:
		for i, kid := range n.kids {
			if !kid.walk(height-1, number+i<<(bits*height), yield) {
				return false
			}
		}
	}
	return true
}

// with returns the tree of the given height with another element.
func (n *node) with(height, i int, t *tensor.Tensor) *node {
	at := i >> (bits * height) % width
	if height == 0 {
		var elems [width]*tensor.Tensor
		if n != nil {
			elems = *n.elems
		}
		elems[at] = t
		return &node{elems: &elems}
	}
	var kids [width]*node
	if n != nil {
		kids = *n.kids
	}
	kids[at] = kids[at].with(height-1, i, t)
	return &node{kids: &kids}
}

// first returns the tree of the given height with no more than its first elements.
func (n *node) first(height, keep int) *node {
	if n == nil || keep <= 0 {
		return nil
	}
	if height == 0 {
		var elems [width]*tensor.Tensor
		copy(elems[:], n.elems[:min(keep, width)])
		return &node{elems: &elems}
	}
	var kids [width]*node
	size := 1 << (bits * height)
	for i := range kids {
		if (i+1)*size <= keep {
			kids[i] = n.kids[i]
		} else {
			kids[i] = n.kids[i].first(height-1, keep-i*size)
		}
	}
	return &node{kids: &kids}
}
