package op

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// LoopOption changes how [WhileLoop] works.
type LoopOption func(*loop)

// ParallelIterations is how many iterations may be under way at once, as far as they do not need
// each other's values; without it, 10.
func ParallelIterations(n int64) LoopOption { return func(l *loop) { l.parallel = n } }

// MaximumIterations ends a loop after a number of iterations, a scalar of type int32, even if its
// condition holds.
func MaximumIterations(n Output) LoopOption { return func(l *loop) { l.maximum = n } }

// ShapeInvariants says what holds of the shapes of the variables in all iterations, where a body
// changes them: one for each variable.
func ShapeInvariants(shapes ...tensor.PartialShape) LoopOption {
	return func(l *loop) { l.invariants = shapes }
}

// WhileLoop adds a loop: as long as cond of the variables holds, body computes their next values,
// of the same number and types. The results are the last values of the variables, which begin as
// vars. Values from around are used like any others; they are computed once, before the loop.
//
//	sum := op.WhileLoop(s, []op.Output{zero, n},
//		func(s *op.Scope, v []op.Output) op.Output { return op.Greater(s, v[1], zero) },
//		func(s *op.Scope, v []op.Output) []op.Output {
//			return []op.Output{op.AddV2(s, v[0], v[1]), op.Sub(s, v[1], one)}
//		})[0]
//
// As tf.while_loop of TensorFlow 1 does it, the loop is nodes of the graph in a frame of their own,
// from Enter to Exit. They can be on any device, and gradients pass through them once: a gradient
// of a gradient does not.
func WhileLoop(
	s *Scope, vars []Output, cond func(s *Scope, vars []Output) Output, body func(s *Scope, vars []Output) []Output, opts ...LoopOption,
) []Output {
	inner, _ := s.Composite("while")
	l := &loop{outer: inner, frame: s.b.unique(inner.prefix + "while_context"), parallel: 10}
	for _, opt := range opts {
		opt(l)
	}
	l.s = inner.Within(l)
	count := len(vars)
	if l.maximum.Node != nil {
		cond, body, vars = l.counted(cond, body, vars)
	}
	exits, err := l.build(vars, cond, body)
	if err != nil {
		s.failInput("WhileLoop", err)
		return nil
	}
	return exits[len(vars)-count:]
}

// loop is a loop that is being built: the Region between Enter and Exit.
type loop struct {
	outer      *Scope // where the loop is
	s          *Scope // within the loop
	frame      string
	parallel   int64
	maximum    Output // the zero Output for none
	invariants []tensor.PartialShape
	pivot      *graph.Node
}

func (l *loop) Pivot() *graph.Node { return l.pivot }

// Capture lets a value in that is the same in all iterations.
func (l *loop) Capture(o Output) (Output, error) {
	o, err := l.outer.Capture(o)
	if err != nil {
		return Output{}, err
	}
	return l.enter(o, true), nil
}

func (l *loop) enter(o Output, constant bool) Output {
	name := "Enter"
	if constant && o.DType().IsRef() {
		name = "RefEnter"
	}
	attrs := opdef.Attrs{"frame_name": l.frame, "is_constant": constant, "parallel_iterations": l.parallel}
	n := l.outer.Add(name, []Arg{One(o)}, attrs)
	l.s.Adopt(n)
	return out(n, 0)
}

// counted returns a loop with one variable more, in front, that counts iterations up to the
// maximum.
func (l *loop) counted(
	cond func(*Scope, []Output) Output, body func(*Scope, []Output) []Output, vars []Output,
) (func(*Scope, []Output) Output, func(*Scope, []Output) []Output, []Output) {
	if l.invariants != nil {
		l.invariants = append([]tensor.PartialShape{tensor.MakePartial()}, l.invariants...)
	}
	countedCond := func(s *Scope, v []Output) Output {
		return LogicalAnd(s, Less(s, v[0], l.maximum), cond(s, v[1:]))
	}
	countedBody := func(s *Scope, v []Output) []Output {
		next := AddV2(s, v[0], Const(s, int32(1)))
		return append([]Output{next}, body(s, v[1:])...)
	}
	return countedCond, countedBody, append([]Output{Const(l.outer, int32(0))}, vars...)
}

func (l *loop) build(vars []Output, cond func(*Scope, []Output) Output, body func(*Scope, []Output) []Output) ([]Output, error) {
	if len(vars) == 0 {
		return nil, status.InvalidArgumentf("No loop variables provided")
	}
	if l.invariants != nil && len(l.invariants) != len(vars) {
		return nil, status.InvalidArgumentf("%d shape invariants for %d variables", len(l.invariants), len(vars))
	}
	merges := make([]Output, len(vars))
	for i, v := range vars {
		enter := l.enter(v, false)
		if enter.Node != nil && l.invariants != nil {
			l.s.b.shapes.Relax(enter, l.invariants[i])
		} else if enter.Node != nil {
			// the rule of Enter cannot know that iterations will not change the shape
			l.s.b.shapes.Relax(enter, l.s.ShapeOf(enter.Node.Input(0)))
		}
		if merges[i], _ = Merge(l.s, []Output{enter, enter}); merges[i].Node == nil {
			return nil, errZeroOutput
		}
	}
	l.pivot = merges[0].Node
	again, err := l.s.Capture(cond(l.s, merges))
	if err != nil {
		return nil, err
	}
	if again.DType().Base() != tensor.Bool {
		return nil, status.InvalidArgumentf("the condition %s is of type %s, want bool", again, again.DType().Name())
	}
	inBody, exits := l.split(merges, LoopCond(l.s, again))
	if inBody == nil {
		return nil, errZeroOutput
	}
	l.pivot = inBody[0].Node
	return exits, l.close(merges, body(l.s, inBody))
}

// split returns the variables as the body sees them, and as they are after the loop.
func (l *loop) split(merges []Output, again Output) (inBody, exits []Output) {
	after := l.outer.Anywhere()
	for _, m := range merges {
		left, stays := Switch(l.s.ColocateWith(m.Node), m, again)
		id := Identity(l.s, stays)
		exit := Exit(l.s, left)
		if id.Node == nil || exit.Node == nil {
			return nil, nil
		}
		after.Adopt(exit.Node)
		inBody, exits = append(inBody, id), append(exits, exit)
	}
	return inBody, exits
}

// close makes the next values of the variables the input of the next iteration.
func (l *loop) close(merges, next []Output) error {
	if len(next) != len(merges) {
		return status.InvalidArgumentf("the body gives %d values for %d variables", len(next), len(merges))
	}
	for i, o := range next {
		o, err := l.s.Capture(o)
		if err != nil {
			return err
		}
		m := merges[i]
		if o.DType().Base() != m.DType() {
			return status.InvalidArgumentf("variable %d is of type %s, its next value of type %s", i, m.DType().Name(), o.DType().Name())
		}
		if was, is := l.s.ShapeOf(m), l.s.ShapeOf(o); !includes(was, is) {
			return status.InvalidArgumentf("Input tensor '%s' enters the loop with shape %v, but has shape %v after one iteration. "+
				"To allow the shape to vary across iterations, use ShapeInvariants to specify a less-specific shape.",
				m.Node.Input(0).Node.Input(0).Node.Name, was, is)
		}
		back := NextIteration(l.s, o)
		if err := l.s.b.g.Connect(back, m.Node, 1); err != nil {
			return err
		}
	}
	return nil
}

// includes reports whether every shape that p stands for is one that was stands for.
func includes(was, p tensor.PartialShape) bool {
	both, ok := was.Merge(p)
	return ok && both.Equal(p)
}
