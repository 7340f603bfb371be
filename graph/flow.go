package graph

import "slices"

// IsSwitch reports whether the node gives its input to one side of a condition.
func (n *Node) IsSwitch() bool { return n.Op.Name == "Switch" || n.Op.Name == "RefSwitch" }

// IsMerge reports whether the node joins the branches of a condition or the entry and the next
// iteration of a loop.
func (n *Node) IsMerge() bool { return n.Op.Name == "Merge" || n.Op.Name == "RefMerge" }

// IsEnter reports whether the node lets a value into a loop.
func (n *Node) IsEnter() bool { return n.Op.Name == "Enter" || n.Op.Name == "RefEnter" }

// IsExit reports whether the node lets a value out of a loop.
func (n *Node) IsExit() bool { return n.Op.Name == "Exit" || n.Op.Name == "RefExit" }

// IsNextIteration reports whether the node passes its input to the next iteration of a loop.
func (n *Node) IsNextIteration() bool {
	return n.Op.Name == "NextIteration" || n.Op.Name == "RefNextIteration"
}

// IsLoopSwitch reports whether the node is where a variable of a loop goes into the body or out of
// the loop.
func (n *Node) IsLoopSwitch() bool { return n.IsSwitch() && n.Input(1).Node.Op.Name == "LoopCond" }

// IsLoopMerge reports whether the node is where a variable of a loop begins an iteration.
func (n *Node) IsLoopMerge() bool {
	return n.IsMerge() && slices.ContainsFunc(n.Inputs(), func(in Output) bool { return in.Node.IsNextIteration() })
}

// LoopVar is what a variable of a loop goes through: Enter → Merge → Switch → body → NextIteration
// → Merge, and Switch → Exit.
type LoopVar struct {
	Enter, Merge, Switch, Next *Node
	Exit                       *Node // nil if the last value is not used
}

// LoopVar returns the variable that an Enter node begins, and false if what it lets in is the same
// in all iterations.
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

// EnteredBy returns the frame that an Enter node leads to, nil if its output is not used.
func (f *Frames) EnteredBy(enter *Node) *Frame {
	for _, e := range enter.OutEdges() {
		if frame := f.RunsIn[e.Dst.ID]; frame != nil {
			return frame
		}
	}
	return nil
}
