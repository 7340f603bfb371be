package op

import (
	"errors"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Cond adds a condition: the nodes that then adds run where pred, a scalar of type bool, is true,
// those that otherwise adds where it is false, and the results are those of the branch that ran.
// The two return as many values, of the same types. Values from around are used like any others;
// what they need runs in any case.
//
// An effect without a value is tied to one:
//
//	assign := op.AssignAddVariableOp(s, handle, one)
//	return []op.Output{op.Identity(s.WithControlDependencies(assign), x)}
//
// As tf.cond of TensorFlow 1 does it, the branches are nodes of the graph between Switch and Merge
// nodes. They can be on any device, and gradients pass through them.
func Cond(s *Scope, pred Output, then, otherwise func(s *Scope) []Output) []Output {
	inner, _ := s.Composite("cond")
	if pred.Node != nil && pred.DType().Base() != tensor.Bool {
		s.Fail(status.InvalidArgumentf("Cond: the condition %s is of type %s, want bool", pred, pred.DType().Name()))
		return nil
	}
	f, t := Switch(inner, pred, pred)
	pivots := [2]Output{Identity(inner.Named("switch_f").Anywhere(), f), Identity(inner.Named("switch_t").Anywhere(), t)}
	id := Identity(inner.Named("pred_id"), pred)
	if id.Node == nil {
		return nil // a mistake, which is recorded
	}
	var results [2][]Output
	for i, build := range []func(*Scope) []Output{1: then, 0: otherwise} {
		branch := inner.Within(&branch{outer: inner.WithoutDevices(), pred: id, side: i, pivot: pivots[i].Node})
		branch.Adopt(pivots[i].Node)
		for _, o := range build(branch) {
			o, err := branch.Capture(o)
			if err != nil {
				s.failInput("Cond", err)
				return nil
			}
			if o.DType().IsRef() {
				o = Identity(branch, o)
			}
			results[i] = append(results[i], o)
		}
	}
	return mergeBranches(inner, results[0], results[1])
}

// mergeBranches returns the results of the branch that ran.
func mergeBranches(s *Scope, otherwise, then []Output) []Output {
	if len(otherwise) != len(then) {
		s.Fail(status.InvalidArgumentf("Cond: the branches have %d and %d results", len(then), len(otherwise)))
		return nil
	}
	out := make([]Output, len(then))
	for i := range then {
		if then[i].DType() != otherwise[i].DType() {
			s.Fail(status.InvalidArgumentf("Cond: result %d is of type %s in one branch and of type %s in the other",
				i, then[i].DType().Name(), otherwise[i].DType().Name()))
			return nil
		}
		out[i], _ = Merge(s.Anywhere(), []Output{otherwise[i], then[i]})
	}
	return out
}

// failInput records a mistake in what a function was given, unless it follows from another.
func (s *Scope) failInput(what string, err error) {
	if errors.Is(err, errZeroOutput) && len(*s.b.errs) > 0 {
		return
	}
	s.Fail(status.Errorf(status.CodeOf(err), "%s: %w", what, err))
}

// branch is one side of a condition.
type branch struct {
	outer *Scope // where the condition is
	pred  Output
	side  int // 1 for the branch that runs where pred is true
	pivot *graph.Node
}

func (b *branch) Pivot() *graph.Node { return b.pivot }

// Capture lets a value in that is dead unless the branch runs.
func (b *branch) Capture(o Output) (Output, error) {
	o, err := b.outer.Capture(o)
	if err != nil {
		return Output{}, err
	}
	name := "Switch"
	if o.DType().IsRef() {
		name = "RefSwitch"
	}
	return out(b.outer.ColocateWith(o.Node).Add(name, []Arg{One(o), One(b.pred)}, nil), b.side), nil
}
