package op

import (
	"errors"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Cond adds a condition. If pred, a scalar of type bool, is true, the nodes that then adds are
// executed; otherwise, those that otherwise adds. The results are those of the executed branch.
// Both functions must return the same number of values, of the same types. Branches may use values
// of the surrounding graph. The nodes that compute such values are executed in any case.
//
// A node without outputs runs only if a result depends on it:
//
//	assign := op.AssignAddVariableOp(s, handle, one)
//	return []op.Output{op.Identity(s.WithControlDependencies(assign), x)}
//
// Like tf.cond of TensorFlow 1, Cond places the nodes of the branches in the graph, between Switch
// and Merge nodes. They can be on any device, and gradients pass through them.
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
		return nil // the build error is recorded
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

// mergeBranches adds Merge nodes and returns the results of the executed branch.
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

// failInput records a build error in the result of a callback, unless it is a consequence of an
// earlier error.
func (s *Scope) failInput(what string, err error) {
	if errors.Is(err, errZeroOutput) && len(*s.b.errs) > 0 {
		return
	}
	s.Fail(status.Errorf(status.CodeOf(err), "%s: %w", what, err))
}

// branch is the Region of one branch of a condition.
type branch struct {
	outer *Scope // scope around the condition
	pred  Output
	side  int // 1 for the branch that is executed if pred is true, otherwise 0
	pivot *graph.Node
}

func (b *branch) Pivot() *graph.Node { return b.pivot }

// Capture adds a Switch node, whose output is dead unless the branch is executed.
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
