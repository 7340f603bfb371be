package controlflow

import (
	"path"

	"github.com/weft-ml/weft/graph"
)

// cond is a condition.
type cond struct {
	pred   graph.Output
	split  *graph.Node    // Switch of the predicate by itself
	pivots [2]*graph.Node // nil for a side that has none
}

// conds are the conditions that Switch nodes belong to.
type conds map[*graph.Node]*cond

// findConds finds the conditions: each begins with a Switch of its predicate by itself, from which
// the pivots of its sides come. Other Switch nodes take the predicate from an Identity node beside
// these, "pred_id", so that conditions with the same predicate can be told apart.
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

// branch returns the context of a side of a condition, nil if it is none.
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

// capture returns the branch that a Switch node lets a value into, nil if that is not one branch.
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
