package controlflow

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/loopframe"
)

// loop returns the context of a frame, or nil if the frame is not a loop. Its parent is the
// innermost context of the values that enter the frame.
func (f *finder) loop(frame *loopframe.Frame) *Context {
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

// variable returns the loop variable of an Enter node. ok is false if the Enter node is that of a
// loop-invariant input.
func variable(enter *graph.Node) (v Var, ok bool) {
	if v.LoopVar, ok = enter.LoopVar(); !ok {
		return v, false
	}
	v.Body = v.Switch.Out(1)
	for _, use := range v.Switch.OutEdges() {
		if !use.IsControl() && !use.Dst.IsExit() && use.SrcOut == 1 && use.Dst.Op.Name == "Identity" {
			v.Body = use.Dst.Out(0)
		}
	}
	return v, true
}
