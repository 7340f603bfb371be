package listops

import (
	"iter"

	"github.com/weft-ml/weft/tensor"
)

// vector is a persistent sequence of tensors. A change returns a new vector, which shares all nodes
// except those on the path to the change. It is the tree of Bagwell and Rompf ("RRB-Trees", 2011)
// without concatenation: nodes have 32 children, and the lowest nodes hold the elements. A nil node
// or element is unset. The zero vector is empty.
type vector struct {
	root   *node
	height int // number of levels above the nodes with elements
	n      int
}

const (
	bits  = 5
	width = 1 << bits
)

// node has child nodes, or elements if it is at the lowest level.
type node struct {
	kids  *[width]*node
	elems *[width]*tensor.Tensor
}

// get returns element i, or nil if it is unset.
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

// set returns the vector with element i set.
func (v vector) set(i int, t *tensor.Tensor) vector {
	v.root = v.root.with(v.height, i, t)
	return v
}

// push returns the vector with one more element.
func (v vector) push(t *tensor.Tensor) vector { return v.resize(v.n+1).set(v.n, t) }

// vectorOf returns a vector of n elements, which at returns in order. It is faster than pushing
// them: a push copies the nodes on its path, which are 1.4 KiB in a vector of a million elements.
func vectorOf(n int, at func(i int) (*tensor.Tensor, error)) (vector, error) {
	v := vector{n: n}
	for n > width<<(bits*v.height) {
		v.height++
	}
	var err error
	v.root, err = build(v.height, 0, n, at)
	return v, err
}

// build returns the subtree of the given height that begins with element from of n; nil if it is
// empty.
func build(height, from, n int, at func(i int) (*tensor.Tensor, error)) (*node, error) {
	if from >= n {
		return nil, nil //nolint:nilnil // a nil node is an empty subtree
	}
	var err error
	if height == 0 {
		elems := new([width]*tensor.Tensor)
		for i := range min(width, n-from) {
			if elems[i], err = at(from + i); err != nil {
				return nil, err
			}
		}
		return &node{elems: elems}, nil
	}
	kids := new([width]*node)
	for i := range kids {
		if kids[i], err = build(height-1, from+i<<(bits*height), n, at); err != nil {
			return nil, err
		}
	}
	return &node{kids: kids}, nil
}

// resize returns a vector of n elements. Additional elements are unset.
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

// all yields the set elements in order.
func (v vector) all() iter.Seq2[int, *tensor.Tensor] {
	return func(yield func(int, *tensor.Tensor) bool) { v.root.walk(v.height, 0, yield) }
}

// walk yields the elements of a subtree until yield returns false. number is the index of its first
// element.
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

// with returns the subtree of the given height with element i set.
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

// first returns the subtree of the given height truncated to its first elements.
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
