package gradients

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// backLoop is the loop that differentiates a loop. It runs the same number of iterations, in
// reverse order. It is the Region of its nodes.
//
// The forward loop pushes the values that the backward loop needs onto stacks in every iteration,
// and the backward loop pops them. Both loops count their iterations. A loop counts an iteration
// only after everything that the iteration pushes or pops, so the orders of the two are exact
// reverses of each other, in nested loops too.
type backLoop struct {
	st *structure
	l  *loop
	// the scope of the loop's gradient: that of the enclosing backward loop, or base
	outer    *op.Scope
	base     *op.Scope // outside of all differentiated loops
	forward  *op.Scope // for nodes added to forward loops
	parent   *backLoop // nil for none
	s        *op.Scope // inside the backward loop
	frame    string
	parallel int64

	// in the forward loop: the start of an iteration, and a trigger after all that it pushes
	begun, pushed *graph.Node
	pivot         *graph.Node // of the backward loop
	popped        *graph.Node // trigger after everything that an iteration pops
	cond          op.Output
}

// anyFrame is the Region of nodes that are added to existing loops. Each is in the frame of its
// inputs.
type anyFrame struct{}

func (anyFrame) Pivot() *graph.Node { return nil }

func (anyFrame) Capture(o op.Output) (op.Output, error) { return o, nil }

func (b *backLoop) Pivot() *graph.Node { return b.pivot }

// newBackLoop creates the backward loop of l with the iteration counters of both loops.
func newBackLoop(a *accumulation, l *loop) (*backLoop, error) {
	b := &backLoop{
		st: a.st, l: l, outer: a.s, base: a.base, parent: a.back, frame: a.base.Prefix() + l.frame.Name,
		parallel: int64(l.enters[0].Attrs.Int("parallel_iterations")),
		forward:  a.base.WithoutDevices().Within(anyFrame{}).Anywhere(),
	}
	b.s = a.s.Within(b)
	count := b.countForward()
	count, err := b.outer.Capture(count)
	if err != nil {
		return nil, err
	}
	return b, b.countBackward(count)
}

// countForward adds an iteration counter to the forward loop and returns the number of iterations.
func (b *backLoop) countForward() op.Output {
	s := b.forward.Named("f_count")
	zero := op.Const(b.base, int32(0))
	if b.parent != nil {
		// in the frame of the enclosing loop, and not before its iteration starts
		zero = op.ZerosLike(b.forward, b.parent.begun.Out(0))
	}
	enter := op.Enter(s, guarded(b.forward, zero, b.l.guards), b.l.frame.Name, op.EnterParallelIterations(b.parallel))
	merge, _ := op.Merge(s, []op.Output{enter, enter})
	left, stays := op.Switch(s, merge, b.l.frame.Cond.Out(0))
	at := op.Identity(s, stays)
	b.begun = at.Node
	b.pushed = op.ControlTrigger(b.forward.Named("f_sync").WithControlDependencies(b.begun))
	next := op.Add(s.WithControlDependencies(b.pushed), at, op.OnesLike(b.forward, at))
	closeLoop(s, merge, next)
	count := op.Exit(s, left)
	if count.Node != nil {
		b.st.guards[count.Node] = b.l.guards
		b.st.frame[count.Node] = b.l.frame.Parent
	}
	return count
}

// closeLoop makes next the value of a loop variable in the next iteration.
func closeLoop(s *op.Scope, merge, next op.Output) {
	if merge.Node == nil || next.Node == nil {
		return // a build error, already recorded
	}
	if err := s.Graph().Connect(op.NextIteration(s, next), merge.Node, 1); err != nil {
		s.Fail(err)
	}
}

// countBackward adds the condition of the backward loop, which runs count iterations.
func (b *backLoop) countBackward(count op.Output) error {
	s := b.s.Named("b_count")
	enter := b.enter(count, false)
	merge, _ := op.Merge(s, []op.Output{enter, enter})
	b.pivot = merge.Node
	b.cond = op.LoopCond(s, op.GreaterEqual(s, merge, op.Const(s, int32(1))))
	left, stays := op.Switch(s, merge, b.cond)
	at := op.Identity(s, stays)
	b.pivot = at.Node
	b.popped = op.ControlTrigger(b.s.Named("b_sync").WithControlDependencies(at.Node))
	closeLoop(s, merge, op.Sub(s.WithControlDependencies(b.popped), at, op.Const(s, int32(1))))
	done := b.exit(left)
	if b.parent != nil && done.Node != nil {
		s.Graph().ConnectControl(done.Node, b.parent.popped)
	}
	return s.Err()
}

// enter returns a value of the enclosing scope inside the backward loop.
func (b *backLoop) enter(o op.Output, constant bool) op.Output {
	o = guarded(b.outer, o, b.l.guards)
	name := "Enter"
	if o.Node != nil && o.DType().IsRef() {
		name = "RefEnter"
	}
	n := b.outer.Add(name, []op.Arg{op.One(o)}, opdef.Attrs{
		"frame_name": b.frame, "is_constant": constant, "parallel_iterations": b.parallel,
	})
	b.s.Adopt(n)
	return output(n, 0)
}

// exit returns the final value of a loop variable in the enclosing scope.
func (b *backLoop) exit(left op.Output) op.Output {
	o := op.Exit(b.s, left)
	b.outer.Adopt(o.Node)
	return o
}

// guarded returns a value that is dead unless all guards hold.
func guarded(s *op.Scope, o op.Output, guards []guard) op.Output {
	for _, g := range guards {
		f, t := op.Switch(s, o, g.pred)
		o = [2]op.Output{f, t}[g.side]
	}
	return o
}

// variable adds a loop variable whose initial value is from the enclosing scope. The caller
// connects its next value to merge.
func (b *backLoop) variable(begin op.Output) (merge, value, last op.Output) {
	enter := b.enter(begin, false)
	merge, _ = op.Merge(b.s, []op.Output{enter, enter})
	left, value := op.Switch(b.s, merge, b.cond)
	return merge, value, b.exit(left)
}

// Capture returns the value that o had in the iteration that is being differentiated. A value from
// outside the loop is returned as it is.
func (b *backLoop) Capture(o op.Output) (op.Output, error) {
	if b.st.frame[o.Node] != b.l.frame {
		o, err := b.outer.Capture(o)
		if err != nil {
			return op.Output{}, err
		}
		return b.enter(o, true), nil
	}
	switch {
	case o.Node.IsEnter() && o.Node.Attrs.Bool("is_constant"):
		return b.Capture(o.Node.Input(0))
	case o.Node.Op.Name == "Const":
		return output(b.s.Named(baseName(o.Node)).Add("Const", nil, opdef.Attrs{
			"value": *o.Node.Attrs.Tensor("value"), "dtype": o.DType(),
		}), 0), nil
	}
	return b.recall(o)
}

// recall saves a value of every iteration of the forward loop on a stack, and returns it in the
// order of the backward loop.
func (b *backLoop) recall(o op.Output) (op.Output, error) {
	elem := o.DType().Base()
	place := b.base.WithoutDevices().WithoutControlDependencies()
	if o.Node.Device != "" {
		place = place.WithDevice(o.Node.Device)
	}
	stack := op.StackV2(place.Named("f_acc"), op.Const(place, int32(-1)), elem)
	push := op.StackPushV2(b.forward.WithControlDependencies(b.begun), b.enterForward(stack), o)
	handle, err := b.s.Capture(stack)
	if err != nil || push.Node == nil {
		return op.Output{}, err
	}
	b.s.Graph().ConnectControl(push.Node, b.pushed)
	handle = guarded(b.s, handle, b.st.of(o))
	pop := op.StackPopV2(b.s.WithControlDependencies(b.pivot), handle, elem)
	if pop.Node != nil {
		b.s.Graph().ConnectControl(pop.Node, b.popped)
	}
	return pop, nil
}

// enterForward returns a value from outside of all loops inside the forward loop.
func (b *backLoop) enterForward(o op.Output) op.Output {
	if b.parent != nil {
		o = b.parent.enterForward(o)
	}
	o = guarded(b.forward, o, b.l.guards)
	return op.Enter(b.forward, o, b.l.frame.Name, op.EnterIsConstant(true), op.EnterParallelIterations(b.parallel))
}

func baseName(n *graph.Node) string {
	for i := len(n.Name) - 1; i >= 0; i-- {
		if n.Name[i] == '/' {
			return n.Name[i+1:]
		}
	}
	return n.Name
}

// addUp returns the sum over all iterations of the gradients of a loop-invariant value.
func (b *backLoop) addUp(value op.Output, g Grad) Grad {
	shape := shapeOf(b.outer, value, tensor.Int32)
	if g.Slices == nil {
		zero := op.Fill(b.outer, shape, op.ConstOf(b.outer, g.Dense.DType().Base(), 0))
		merge, sum, last := b.variable(zero)
		closeLoop(b.s, merge, op.Add(b.s, sum, g.Dense))
		return Of(last)
	}
	row := op.StridedSlice(b.outer, shape, op.Const(b.outer, []int32{1}), op.Const(b.outer, []int32{0}), op.Const(b.outer, []int32{1}),
		op.StridedSliceEndMask(1))
	none := op.ConcatV2(b.outer, []op.Output{op.Const(b.outer, []int32{0}), row}, op.Const(b.outer, int32(0)))
	return Grad{Slices: &IndexedSlices{
		Values:  b.append(op.Fill(b.outer, none, op.ConstOf(b.outer, g.Slices.Values.DType().Base(), 0)), g.Slices.Values),
		Indices: b.append(op.Fill(b.outer, op.Const(b.outer, []int32{0}), op.ConstOf(b.outer, g.Slices.Indices.DType().Base(), 0)), g.Slices.Indices),
		Shape:   shape,
	}}
}

// append concatenates the rows of all iterations.
func (b *backLoop) append(none, rows op.Output) op.Output {
	merge, sum, last := b.variable(none)
	closeLoop(b.s, merge, op.ConcatV2(b.s, []op.Output{sum, rows}, op.Const(b.s, int32(0))))
	return last
}

// shapeOf returns the shape of a tensor, or of the variable behind a handle.
func shapeOf(s *op.Scope, o op.Output, dtype tensor.DType) op.Output {
	if o.DType() == tensor.Resource {
		return op.VariableShape(s, o, op.VariableShapeOutType(dtype))
	}
	return op.Shape(s, o, op.ShapeOutType(dtype))
}
