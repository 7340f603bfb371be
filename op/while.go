package op

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// LoopOption is an option of [WhileLoop].
type LoopOption func(*loop)

// ParallelIterations sets the number of iterations that may run concurrently if their data
// dependencies permit it; the default is 10.
func ParallelIterations(n int64) LoopOption { return func(l *loop) { l.parallel = n } }

// MaximumIterations ends a loop after n iterations, even if its condition still holds. n is a
// scalar of type int32.
func MaximumIterations(n Output) LoopOption { return func(l *loop) { l.maximum = n } }

// ShapeInvariants sets the shapes of the variables that hold in all iterations, one for each
// variable. It is required if the body changes the shape of a variable.
func ShapeInvariants(shapes ...tensor.PartialShape) LoopOption {
	return func(l *loop) { l.invariants = shapes }
}

// WhileLoop adds a loop. As long as cond returns true for the variables, body computes their next
// values, of the same number and types. vars are the initial values; the results are the last ones.
// cond and body may use values of the surrounding graph, which are computed once, before the loop.
//
//	sum := op.WhileLoop(s, []op.Output{zero, n},
//		func(s *op.Scope, v []op.Output) op.Output { return op.Greater(s, v[1], zero) },
//		func(s *op.Scope, v []op.Output) []op.Output {
//			return []op.Output{op.AddV2(s, v[0], v[1]), op.Sub(s, v[1], one)}
//		})[0]
//
// Like tf.while_loop of TensorFlow 1, WhileLoop places the nodes of the loop in the graph, in a
// frame of their own, between Enter and Exit nodes. They can be on any device. First-order
// gradients pass through a loop; gradients of gradients do not.
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

// loop is the Region of a loop during construction.
type loop struct {
	outer      *Scope // scope around the loop
	s          *Scope // scope of the condition and body
	frame      string
	parallel   int64
	maximum    Output // the zero Output for none
	invariants []tensor.PartialShape
	pivot      *graph.Node
}

func (l *loop) Pivot() *graph.Node { return l.pivot }

// Capture adds an Enter node for a loop-invariant value.
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

// counted returns the condition, body and variables of a loop with an additional first variable. It
// counts iterations and ends the loop at the maximum.
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
		next := Add(s, v[0], Const(s, int32(1)))
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
			// The shape function of Enter returns an unknown shape, because iterations may change
			// it. Here the body is checked against the initial shape (see close).
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

// split adds Switch and Exit nodes. It returns the variables in the body and after the loop.
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

// close connects the next values of the variables to the back edges of the loop.
func (l *loop) close(merges, next []Output) error {
	if len(next) != len(merges) {
		return status.InvalidArgumentf("the body returns %d values for %d variables", len(next), len(merges))
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

// includes reports whether every shape that is compatible with p is also compatible with was.
func includes(was, p tensor.PartialShape) bool {
	both, ok := was.Merge(p)
	return ok && both.Equal(p)
}
