package controlflow

import "github.com/weft-ml/weft/graph"

// loop returns the context of a frame, nil if that is no loop. It is where the values that enter it
// come from, the innermost of their contexts if some are from further out.
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

// variable returns a variable of a loop, and false if the Enter node lets in what is the same in
// all iterations.
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
