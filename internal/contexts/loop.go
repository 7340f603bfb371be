package contexts

import (
	"slices"

	"github.com/weft-ml/weft/graph"
)

func isEnter(n *graph.Node) bool { return n.Op.Name == "Enter" || n.Op.Name == "RefEnter" }

func isExit(n *graph.Node) bool { return n.Op.Name == "Exit" || n.Op.Name == "RefExit" }

func isLoopSwitch(n *graph.Node) bool { return isSwitch(n) && n.Input(1).Node.Op.Name == "LoopCond" }

func isLoopMerge(n *graph.Node) bool {
	return n.IsMerge() && slices.ContainsFunc(n.Inputs(), func(in graph.Output) bool { return in.Node.IsNextIteration() })
}

// frameOf returns the frame that an Enter node leads to, nil if nobody uses what it lets in.
func (f *finder) frameOf(enter *graph.Node) *graph.Frame {
	for _, e := range enter.OutEdges() {
		if frame := f.frames.RunsIn[e.Dst.ID]; frame != nil {
			return frame
		}
	}
	return nil
}

// loop returns the context of a frame, nil if that is no loop. It is where the values that enter it come from, the innermost
// of their contexts if some are from further out.
func (f *finder) loop(frame *graph.Frame) *Context {
	if frame == nil || frame.Cond == nil {
		return nil
	}
	if f.loops[frame] == nil {
		var around *Context
		for _, n := range f.enters[frame] {
			around = inner(around, f.around(n))
		}
		f.loops[frame] = f.add(&Context{Parent: around, Loop: &Loop{Frame: frame.Name, Cond: frame.Cond}})
	}
	return f.loops[frame]
}

// variable returns what a variable of a loop is made of, if an Enter node begins one.
func variable(enter *graph.Node) (Var, bool) {
	v := Var{Enter: enter}
	for _, e := range enter.OutEdges() {
		if !e.IsControl() && isLoopMerge(e.Dst) {
			v.Merge = e.Dst
		}
	}
	if v.Merge == nil {
		return v, false
	}
	for _, e := range v.Merge.OutEdges() {
		if e.IsControl() || e.DstIn != 0 || !isLoopSwitch(e.Dst) {
			continue
		}
		v.Body = e.Dst.Out(1)
		for _, use := range e.Dst.OutEdges() {
			switch {
			case use.IsControl():
			case isExit(use.Dst):
				v.Exit = use.Dst
			case use.SrcOut == 1 && use.Dst.Op.Name == "Identity":
				v.Body = use.Dst.Out(0)
			}
		}
	}
	return v, v.Body.Node != nil
}
