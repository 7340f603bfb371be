package lower

import (
	"path"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// loop is a While that is being lowered.
type loop struct {
	*lowerer
	*site
	parallel int64
	vars     []variable
	pivot    *graph.Node // Merge of the first variable that changes; it runs in every iteration
}

// variable is a variable of a loop.
type variable struct {
	dtype tensor.DType
	fixed bool         // a resource that never changes; its Enter is loop-invariant
	value graph.Output // in an iteration: output of the Merge, or of the Enter if fixed

	merge, sw *graph.Node // nil if fixed
}

func (l *lowerer) lowerWhile(n *graph.Node) {
	cond, body := n.Attrs.Func("cond"), n.Attrs.Func("body")
	if !l.known(cond, body) {
		return
	}
	vars, changing := l.variables(n, body)
	if !changing { // without a Merge there are no iterations
		return
	}
	parallel := max(n.Attrs.Int("parallel_iterations"), 1)
	w := &loop{lowerer: l, site: l.detach(n), parallel: int64(parallel), vars: vars}
	w.enter()
	again := w.condition(cond)
	results := w.body(body, again)
	w.next(results)
	w.exit()
}

// variables returns the variables of a loop, and whether any of them can change.
func (l *lowerer) variables(n *graph.Node, fn opdef.Func) (vars []variable, changing bool) {
	vars = make([]variable, n.NumInputs())
	body := l.bodyOf(fn)
	if body == nil || len(body.Args) != len(vars) || len(body.Rets) != len(vars) {
		return nil, false
	}
	for i := range vars {
		v := &vars[i]
		v.dtype = n.InTypes[i].Base()
		v.fixed = v.dtype == tensor.Resource && body.Rets[i].Input(0).Node == body.Args[i]
		changing = changing || !v.fixed
	}
	return vars, changing
}

// enter adds the Enter nodes, each on the device of its input.
func (w *loop) enter() {
	var after *graph.Node
	if len(w.controls) > 0 {
		after = w.add(w.name+"/LoopControlInputs", "NoOp", w.device, nil)
		for _, src := range w.controls {
			w.order(src, after)
		}
	}
	for i := range w.vars {
		v, in := &w.vars[i], w.in[i]
		enter := w.add(w.name+"/enter", "Enter", in.Node.Device, opdef.Attrs{
			"T": v.dtype, "frame_name": w.name, "parallel_iterations": w.parallel, "is_constant": v.fixed,
		}, in)
		w.order(after, enter)
		if v.fixed {
			v.value = enter.Out(0)
			continue
		}
		v.merge = w.add(w.name+"/merge", "Merge", in.Node.Device, opdef.Attrs{"T": v.dtype, "N": int64(2)}, enter.Out(0))
		v.value = v.merge.Out(0)
		if w.pivot == nil {
			w.pivot = v.merge
		}
	}
}

// condition adds the call of the condition and returns whether there is another iteration.
func (w *loop) condition(cond opdef.Func) graph.Output {
	args := make([]graph.Output, len(w.vars))
	for i := range w.vars {
		args[i] = w.vars[i].value
	}
	call := w.call(w.site, "cond", cond, w.condTypes(cond), args)
	w.order(w.pivot, call)
	holds := w.bool(w.name+"/cond_bool", w.device, call.Out(0))
	return w.add(w.name+"/LoopCond", "LoopCond", w.device, nil, holds).Out(0)
}

// condTypes returns the types of the results of a condition, which should be a single boolean.
func (w *loop) condTypes(cond opdef.Func) []tensor.DType {
	types := []tensor.DType{tensor.Bool}
	if f, ok := w.g.Library.Lookup(cond.Name); ok {
		if all, err := f.Def.Signature.OutputTypes(cond.Attrs); err == nil && len(all) == 1 {
			types = all
		}
	}
	return types
}

// body adds the call of the body, which runs if there is another iteration, and returns it.
func (w *loop) body(body opdef.Func, again graph.Output) *graph.Node {
	args, rets := make([]graph.Output, len(w.vars)), make([]tensor.DType, len(w.vars))
	var first graph.Output
	for i := range w.vars {
		v := &w.vars[i]
		rets[i] = v.dtype
		if v.fixed {
			args[i] = v.value
			continue
		}
		v.sw = w.add(w.name+"/"+path.Base(w.in[i].Node.Name)+"_switch", "Switch", w.in[i].Node.Device, opdef.Attrs{"T": v.dtype}, v.value, again)
		args[i] = v.sw.Out(1)
		if first.Node == nil {
			first = args[i]
		}
	}
	call := w.call(w.site, "body", body, rets, args)
	w.order(w.add(w.name+"/loop_body_control", "Identity", w.device, opdef.Attrs{"T": base(first)}, first), call)
	return call
}

// next passes the results of the body to the next iteration.
func (w *loop) next(call *graph.Node) {
	for i := range w.vars {
		v := &w.vars[i]
		if v.fixed || w.err != nil {
			continue
		}
		next := w.add(w.name+"/next_iteration", "NextIteration", v.merge.Device, opdef.Attrs{"T": v.dtype}, call.Out(i))
		w.order(call, next)
		if w.err == nil {
			w.connect(next.Out(0), v.merge, 1)
		}
	}
}

// exit adds the Exit nodes. The final values of fixed variables are the inputs.
func (w *loop) exit() {
	values := make([]graph.Output, len(w.vars))
	executed := w.add(w.name+"/LoopExecuted", "NoOp", w.device, nil)
	for i := range w.vars {
		v := &w.vars[i]
		if v.fixed {
			values[i] = w.in[i]
			continue
		}
		exit := w.add(w.name+"/exit", "Exit", w.in[i].Node.Device, opdef.Attrs{"T": v.dtype}, v.sw.Out(0))
		values[i] = exit.Out(0)
		w.order(exit, executed)
	}
	w.replace(w.site, values, executed)
}
