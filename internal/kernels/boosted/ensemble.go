package boosted

import (
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// ensemble is a sequence of trees whose logits are added. The last tree grows.
type ensemble struct {
	mu      sync.RWMutex
	stamp   int64 // guarded by mu, like all fields below: increases with each change
	trees   []*tree
	growing growing
}

// TypeName names the resource as TensorFlow does.
func (*ensemble) TypeName() string { return "N10tensorflow28BoostedTreesEnsembleResourceE" }

// growing is the state of the growth of an ensemble.
type growing struct {
	known                bool // some field was set
	trees, layers        int64
	layerStart, layerEnd int32 // nodes of the last layer
}

// tree is a decision tree. Its first node is the root.
type tree struct {
	nodes     []node
	weight    float32
	layers    int32
	finalized bool
	pruned    []pruned // for each node before the tree was pruned; nil if it was not
}

// pruned says what became of a node that was pruned away, or was moved.
type pruned struct {
	node    int32
	changes []float32 // of the logits
}

// nodeKind is the kind of a node.
type nodeKind uint8

const (
	noKind nodeKind = iota
	leafNode
	thresholdNode // values up to a threshold go left
	valueNode     // one value goes left
)

// node is a node of a tree.
type node struct {
	kind        nodeKind
	leaf        leaf
	feature     int32
	dimension   int32
	bucket      int32 // threshold or value
	left, right int32
	missingLeft bool // see defaultLeft; only of thresholds

	meta     bool // it has metadata: the fields below
	gain     float32
	hadLeaf  bool
	original leaf // logits before the node was split, if hadLeaf is set
}

// leaf holds the logits of a node. A leaf with one logit is a scalar.
type leaf struct {
	scalar float32
	vector []float32
	many   bool // vector is used
}

// values returns the logits.
func (l *leaf) values() []float32 {
	if l.many {
		return l.vector
	}
	return []float32{l.scalar}
}

// zero reports whether a new tree has this leaf as its root.
func (l *leaf) zero() bool { return !l.many && l.scalar == 0 }

// leafOf returns a leaf with the given logits.
func leafOf(values []float32) leaf {
	if len(values) == 1 {
		return leaf{scalar: values[0]}
	}
	return leaf{vector: values, many: true}
}

// plus returns the leaf with logits added. A leaf without a vector counts as zeros.
func (l *leaf) plus(more []float32) leaf {
	if len(more) == 1 && !l.many {
		return leaf{scalar: l.scalar + more[0]}
	}
	sum := append([]float32(nil), more...) //sizedmake:ok a row of a tensor
	for i := range min(len(sum), len(l.vector)) {
		sum[i] += l.vector[i]
	}
	return leafOf(sum)
}

// logits returns the logits of a node. It is nil for the root of a tree without logits before it
// was split.
func (n *node) logits() []float32 {
	switch {
	case n.kind == leafNode:
		return n.leaf.values()
	case n.meta && n.hadLeaf:
		return n.original.values()
	}
	return nil
}

// addTree adds a tree whose root has the given logits.
func (e *ensemble) addTree(logits leaf) {
	e.trees = append(e.trees, &tree{nodes: []node{{kind: leafNode, leaf: logits}}, weight: 1})
}

// split turns a leaf into a node with two leaves.
func (t *tree) split(s split) error {
	if s.node < 0 || int(s.node) >= len(t.nodes) || t.nodes[s.node].kind != leafNode {
		return status.InvalidArgumentf("node %d of the growing tree is not a leaf", s.node)
	}
	n := &t.nodes[s.node]
	previous := n.leaf
	n.leaf = leaf{}
	n.meta, n.gain = true, s.gain
	if s.node != 0 || !previous.zero() {
		n.hadLeaf, n.original = true, previous
	}
	n.kind, n.missingLeft = thresholdNode, s.kind != defaultRight
	if s.kind == equality {
		n.kind, n.missingLeft = valueNode, false
	}
	n.feature, n.dimension, n.bucket = s.feature, s.dimension, s.bucket
	n.left, n.right = int32(len(t.nodes)), int32(len(t.nodes))+1
	t.nodes = membudget.AppendAll(t.nodes, node{kind: leafNode, leaf: previous.plus(s.left)}, node{kind: leafNode, leaf: previous.plus(s.right)})
	return nil
}

// next returns the child of a node that an example belongs to.
func (n *node) next(features []feature, example int) (int32, error) {
	if n.feature < 0 || int(n.feature) >= len(features) {
		return 0, status.InvalidArgumentf("a tree uses feature %d, but there are %d features", n.feature, len(features))
	}
	v, err := features[n.feature].at(example, n.dimension)
	if err != nil {
		return 0, err
	}
	if n.kind == thresholdNode && v <= n.bucket || n.kind == valueNode && v == n.bucket {
		return n.left, nil
	}
	return n.right, nil
}

// check checks that an ensemble that was read from bytes is one: the root of each tree exists, and
// children come after their parents.
func (e *ensemble) check() error {
	for i, t := range e.trees {
		if len(t.nodes) == 0 {
			return status.InvalidArgumentf("tree %d has no nodes", i)
		}
		for j := range t.nodes {
			n := &t.nodes[j]
			last := int32(len(t.nodes)) - 1
			switch {
			case n.kind == noKind:
				return status.InvalidArgumentf("node %d of tree %d has no kind", j, i)
			case n.kind != leafNode && (n.left <= int32(j) || n.right <= int32(j) || n.left > last || n.right > last):
				return status.InvalidArgumentf("the children of node %d of tree %d are not nodes after it", j, i)
			}
		}
		for j, p := range t.pruned {
			if p.node < 0 || int(p.node) >= len(t.nodes) {
				return status.InvalidArgumentf("pruned node %d of tree %d became node %d, which does not exist", j, i, p.node)
			}
		}
	}
	return nil
}

// tree returns a tree.
func (e *ensemble) tree(i int32) (*tree, error) {
	if i < 0 || int(i) >= len(e.trees) {
		return nil, status.InvalidArgumentf("tree %d is not in [0, %d)", i, len(e.trees))
	}
	return e.trees[i], nil
}

// node returns a node.
func (t *tree) node(i int32) (*node, error) {
	if i < 0 || int(i) >= len(t.nodes) {
		return nil, status.InvalidArgumentf("node %d is not in [0, %d)", i, len(t.nodes))
	}
	return &t.nodes[i], nil
}
