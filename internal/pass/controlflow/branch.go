package controlflow

import (
	"path"

	"github.com/weft-ml/weft/graph"
)

// cond is a condition.
type cond struct {
	pred   graph.Output
	split  *graph.Node    // Switch whose data and predicate are the predicate
	pivots [2]*graph.Node // Identity nodes of the sides; nil for a side without one
}

// conds maps Switch nodes to their conditions.
type conds map[*graph.Node]*cond

// findConds finds the conditions of a graph. A condition starts with a Switch of its predicate by
// the predicate. The pivots of its sides are Identity nodes of the outputs of that Switch. The
// other Switch nodes of the condition take the predicate from an Identity node named "pred_id" in
// the same name scope, which distinguishes conditions with the same predicate.
func findConds(order []*graph.Node) conds {
	found := conds{}
	byPred := map[graph.Output]*cond{}
	for _, n := range order {
		if !n.IsSwitch() || n.IsLoopSwitch() || n.Input(0) != n.Input(1) {
			continue
		}
		c := &cond{pred: n.Input(1), split: n}
		for _, e := range n.OutEdges() {
			if !e.IsControl() && e.Dst.Op.Name == "Identity" {
				c.pivots[e.SrcOut] = e.Dst
			}
		}
		for _, e := range n.Input(1).Node.OutEdges() {
			if e.SrcOut == n.Input(1).Index && e.Dst.Op.Name == "Identity" && e.Dst.Name == path.Join(path.Dir(n.Name), "pred_id") {
				c.pred = e.Dst.Out(0)
			}
		}
		found[n], byPred[c.pred] = c, c
	}
	for _, n := range order {
		if n.IsSwitch() && found[n] == nil && !n.IsLoopSwitch() {
			if c := byPred[n.Input(1)]; c != nil {
				found[n] = c
			}
		}
	}
	return found
}

// side is one side of a condition.
type side struct {
	*cond
	index int
}

// branch returns the context of a side of a condition, or nil if the side has no pivot.
func (f *finder) branch(c *cond, index int) *Context {
	if c == nil || c.pivots[index] == nil {
		return nil
	}
	at := side{c, index}
	if f.branches[at] == nil {
		f.branches[at] = f.add(&Context{Parent: f.at(c.split), Branch: &Branch{Pred: c.pred, Pivot: c.pivots[index], Side: index}})
	}
	return f.branches[at]
}

// capture returns the branch that the value of a Switch node enters, or nil unless the value is
// used in exactly one branch.
func (f *finder) capture(n *graph.Node) *Context {
	c := f.conds[n]
	if c == nil || c.split == n {
		return nil
	}
	used := [2]bool{}
	for _, e := range n.OutEdges() {
		if !e.IsControl() {
			used[e.SrcOut] = true
		}
	}
	switch used {
	case [2]bool{true, false}:
		return f.branch(c, 0)
	case [2]bool{false, true}:
		return f.branch(c, 1)
	}
	return nil
}
