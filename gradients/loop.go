package gradients

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// stepLoop differentiates a loop after all gradients of its results have arrived. It adds a loop
// that runs through the iterations backwards. The variables of that loop are the gradients of the
// variables of the forward loop. They start as the gradients of the results, and after each
// iteration they are the gradients of the values at the start of the forward iteration.
func (a *accumulation) stepLoop(l *loop) ([]op.Output, []Grad, error) {
	if !a.hasGradient(l) {
		inputs, _ := a.entering(l)
		return inputs, nil, nil
	}
	back, err := newBackLoop(a, l)
	if err != nil {
		return nil, nil, err
	}
	body := &accumulation{shared: a.shared, s: back.s, back: back}
	vars := a.backVars(back)
	var ends []op.Output
	for _, v := range vars {
		end := v.Next.Input(0)
		a.parts[end] = append(a.parts[end], Of(v.value))
		ends = append(ends, end)
	}
	if err := body.run(body.ready(ends)); err != nil {
		return nil, nil, err
	}
	grads := map[op.Output]Grad{} // keyed by the output of the Enter node
	for _, v := range vars {
		closeLoop(back.s, v.merged, body.dense(v.Switch.Out(1)))
		grads[v.Enter.Out(0)] = Of(v.last)
	}
	inputs, enters := a.entering(l)
	out := make([]Grad, len(inputs))
	for i, e := range enters {
		g, isVar := grads[e]
		if !isVar {
			if g = body.sum(e); !g.IsNone() {
				g = back.addUp(e.Node.Input(0), g)
			}
		}
		out[i] = g
	}
	return inputs, out, nil
}

// hasGradient reports whether a result of a loop has a gradient.
func (a *accumulation) hasGradient(l *loop) bool {
	for _, v := range l.vars {
		if v.Exit != nil && len(a.parts[v.Exit.Out(0)]) > 0 {
			return true
		}
	}
	return false
}

// entering returns the values that enter a loop and affect the result, and the outputs of their
// Enter nodes.
func (a *accumulation) entering(l *loop) (inputs, enters []op.Output) {
	for _, n := range l.enters {
		if a.between[n] {
			inputs, enters = append(inputs, n.Input(0)), append(enters, n.Out(0))
		}
	}
	return inputs, enters
}

// backVar is the gradient of a loop variable, as a variable of the backward loop.
type backVar struct {
	graph.LoopVar
	merged, value, last op.Output
}

// backVars adds a variable to a backward loop for every loop variable that affects the result.
func (a *accumulation) backVars(back *backLoop) []backVar {
	var vars []backVar
	for _, v := range back.l.vars {
		if !a.between[v.Merge] || v.Merge.OutTypes[0] == tensor.Resource {
			continue
		}
		b := backVar{LoopVar: v}
		var begin op.Output
		if v.Exit != nil {
			begin = a.dense(v.Exit.Out(0))
		} else {
			begin = op.ZerosLike(a.s, v.Enter.Input(0))
		}
		b.merged, b.value, b.last = back.variable(begin)
		vars = append(vars, b)
	}
	return vars
}

// dense returns the gradient of a value as a tensor, zeros for none.
func (a *accumulation) dense(o op.Output) op.Output {
	g := a.sum(o)
	if g.IsNone() {
		return op.ZerosLike(a.s, o)
	}
	return Densify(a.s, g)
}
