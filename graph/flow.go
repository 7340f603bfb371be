package graph

import "slices"

// IsSwitch reports whether the node forwards its input to one of two branches.
func (n *Node) IsSwitch() bool { return n.Op.Name == "Switch" || n.Op.Name == "RefSwitch" }

// IsMerge reports whether the node forwards the input that arrives: that of one branch of a
// condition, or that of the entry or the next iteration of a loop.
func (n *Node) IsMerge() bool { return n.Op.Name == "Merge" || n.Op.Name == "RefMerge" }

// IsEnter reports whether the node forwards its input into the frame of a loop.
func (n *Node) IsEnter() bool { return n.Op.Name == "Enter" || n.Op.Name == "RefEnter" }

// IsExit reports whether the node forwards its input out of the frame of a loop.
func (n *Node) IsExit() bool { return n.Op.Name == "Exit" || n.Op.Name == "RefExit" }

// IsNextIteration reports whether the node forwards its input to the next iteration of a loop.
func (n *Node) IsNextIteration() bool {
	return n.Op.Name == "NextIteration" || n.Op.Name == "RefNextIteration"
}

// IsLoopSwitch reports whether the node forwards a loop variable to the body or to the exit of a
// loop.
func (n *Node) IsLoopSwitch() bool { return n.IsSwitch() && n.Input(1).Node.Op.Name == "LoopCond" }

// IsLoopMerge reports whether the node forwards a loop variable into each iteration of a loop.
func (n *Node) IsLoopMerge() bool {
	return n.IsMerge() && slices.ContainsFunc(n.Inputs(), func(in Output) bool { return in.Node.IsNextIteration() })
}

// LoopVar holds the nodes of a loop variable, in the order in which its value passes them: Enter →
// Merge → Switch → body → NextIteration → Merge, and Switch → Exit.
type LoopVar struct {
	Enter, Merge, Switch, Next *Node
	Exit                       *Node // nil if the last value is not used
}

// LoopVar returns the loop variable of an Enter node. It returns false if the value is
// loop-invariant.
func (n *Node) LoopVar() (LoopVar, bool) {
	v := LoopVar{Enter: n}
	for _, e := range n.OutEdges() {
		if !e.IsControl() && e.Dst.IsLoopMerge() {
			v.Merge = e.Dst
		}
	}
	if v.Merge == nil {
		return v, false
	}
	for _, in := range v.Merge.Inputs() {
		if in.Node.IsNextIteration() {
			v.Next = in.Node
		}
	}
	for _, e := range v.Merge.OutEdges() {
		if !e.IsControl() && e.DstIn == 0 && e.Dst.IsLoopSwitch() {
			v.Switch = e.Dst
		}
	}
	if v.Switch == nil {
		return v, false
	}
	for _, e := range v.Switch.OutEdges() {
		if !e.IsControl() && e.Dst.IsExit() {
			v.Exit = e.Dst
		}
	}
	return v, true
}
