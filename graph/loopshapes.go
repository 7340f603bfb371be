package graph

import (
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// maxLoopPasses is the number of passes over the loops of a graph. After the last pass, shapes that
// still change are set to unknown.
const maxLoopPasses = 8

// inferMerge sets the shape of a Merge node to what the shapes of its inputs have in common. Inputs
// that have not been inferred, that is back edges of loops, are ignored. The first pass therefore
// assumes that a loop preserves the shapes that enter it.
func (s *Shapes) inferMerge(n *Node) {
	result := nodeShapes{inferred: true, out: make([]tensor.PartialShape, len(n.OutTypes))}
	var handles []tensor.HandleElem
	first := true
	for _, in := range n.in {
		src := s.of(in.Node)
		if src == nil || !src.inferred {
			continue
		}
		if first {
			result.out[0], handles, first = s.Of(in), s.HandlesOf(in), false
			continue
		}
		result.out[0] = common(result.out[0], s.Of(in))
		if !sameHandles(handles, s.HandlesOf(in)) {
			handles = nil
		}
	}
	for i := 1; i < len(result.out); i++ {
		result.out[i] = tensor.MakePartial()
	}
	if handles != nil {
		result.handles = [][]tensor.HandleElem{handles}
	}
	s.nodes[n.ID] = result
}

func sameHandles(a, b []tensor.HandleElem) bool {
	return slices.EqualFunc(a, b, func(x, y tensor.HandleElem) bool { return x.DType == y.DType && x.Shape.Equal(y.Shape) })
}

// common returns the shape with the sizes that p and q have in common; the others are unknown.
func common(p, q tensor.PartialShape) tensor.PartialShape {
	if p.Rank() != q.Rank() || !p.RankKnown() {
		return tensor.PartialShape{}
	}
	dims := p.Dims()
	for i := range dims {
		if dims[i] != q.Dim(i) {
			dims[i] = tensor.UnknownDim
		}
	}
	return tensor.MakePartial(dims...)
}

// settleLoops infers shapes again, including back edges of loops, until they no longer change. A
// pass only makes shapes less known, so there can be no new errors: the first pass has checked the
// shapes of the first iteration.
func (s *Shapes) settleLoops(order []*Node) {
	for pass := 1; ; pass++ {
		changed := make([]bool, len(s.nodes))
		if !s.relaxMerges(order, changed, pass == maxLoopPasses) {
			return
		}
		clear(s.values)
		s.numbers = 0
		for _, n := range order {
			if n.IsMerge() && s.entersLoop(n) {
				continue
			}
			for _, in := range n.in {
				if in.Node != nil && changed[in.Node.ID] {
					_ = s.Infer(n)       // on errors the outputs are unknown
					changed[n.ID] = true // its value may have changed even if its shape has not
					break
				}
			}
		}
		if pass == maxLoopPasses {
			return
		}
	}
}

// relaxMerges infers the Merge nodes of loops again, marks those that changed, and reports whether
// there are any. With giveUp it sets their shapes to unknown.
func (s *Shapes) relaxMerges(order []*Node, changed []bool, giveUp bool) bool {
	found := false
	for _, n := range order {
		if !n.IsMerge() || !s.entersLoop(n) {
			continue
		}
		before := s.nodes[n.ID].out
		s.inferMerge(n)
		if giveUp {
			s.nodes[n.ID].out[0] = tensor.PartialShape{}
		}
		if !equalShapes(before, s.nodes[n.ID].out) {
			changed[n.ID], found = true, true
		}
	}
	return found
}

func (s *Shapes) entersLoop(n *Node) bool {
	for _, in := range n.in {
		if in.Node != nil && in.Node.IsNextIteration() {
			return true
		}
	}
	return false
}

func equalShapes(a, b []tensor.PartialShape) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}
