package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// MovingAverages maintains exponential moving averages of variables, which often make a better
// model than the variables themselves. An update changes an average by (1 - Decay) * (variable -
// average). The averages are variables named "v/ExponentialMovingAverage".
type MovingAverages struct {
	Decay float64 // below 1, such as 0.999
	// Updates is the number of updates so far, such as the global step. If it is set, the decay is
	// at most (1 + Updates) / (10 + Updates), so that early averages follow the variables.
	Updates op.Output

	means map[*Variable]*Variable
}

const averageName = "ExponentialMovingAverage"

// Apply adds averages of the given variables and returns a node that updates them. Without
// arguments it averages all trainable variables. To update the averages after each training step,
// pass a scope with a control dependency on the training step.
func (a *MovingAverages) Apply(s *op.Scope, vars ...*Variable) *graph.Node {
	if len(vars) == 0 {
		vars = Variables(s, TrainableVariables)
	}
	if a.means == nil {
		a.means = map[*Variable]*Variable{}
	}
	for _, v := range vars {
		switch {
		case !v.DType.IsFloating():
			s.Fail(status.InvalidArgumentf("The variables must be half, float, or double: %s", v.Name))
			return nil
		case a.means[v] == nil:
			a.means[v] = NewSlot(s, v, averageName, func(*op.Scope, tensor.Shape, tensor.DType) op.Output { return v.Initial })
			s.AddToCollection(MovingAverageVariables, v)
		}
	}
	inner, result := s.Composite(averageName)
	decay := hyper(inner, "decay", a.Decay)
	if a.Updates.Node != nil {
		n := castTo(inner, a.Updates, tensor.Float32)
		least := op.RealDiv(inner, op.AddV2(inner, number(inner, 1), n), op.AddV2(inner, number(inner, 10), n))
		decay = op.Minimum(inner, decay, least)
	}
	updates := make([]*graph.Node, len(vars))
	for i, v := range vars {
		updates[i] = a.update(inner, v, decay)
	}
	return op.Group(result, updates...)
}

func (a *MovingAverages) update(s *op.Scope, v *Variable, decay op.Output) *graph.Node {
	mean := a.means[v]
	s, _ = s.ColocateWith(mean.Handle.Node).Composite("AssignMovingAvg")
	step := castTo(s, op.Sub(s, number(s, 1), decay), v.DType)
	return mean.AssignSub(s, op.Mul(s, op.Sub(s, mean.Read(s), v.Read(s)), step))
}

// Average returns the variable that holds the average of v, or nil if there is none.
func (a *MovingAverages) Average(v *Variable) *Variable { return a.means[v] }

// Restore returns a map for [SaverOptions.Variables] with which a saver restores averaged variables
// from their averages and all others from their own values. The graph need not maintain averages
// itself.
func (a *MovingAverages) Restore(s *op.Scope) map[string][]*Variable {
	names, averaged := map[string][]*Variable{}, map[*Variable]bool{}
	for _, list := range [][]*Variable{Variables(s, TrainableVariables), Variables(s, MovingAverageVariables)} {
		for _, v := range list {
			if averaged[v] {
				continue
			}
			averaged[v] = true
			name := v.wholeName() + "/" + averageName
			if mean := a.means[v]; mean != nil {
				name = mean.wholeName()
			}
			names[name] = append(names[name], v)
		}
	}
	means := map[string]bool{}
	for name := range names {
		means[name] = true
	}
	for _, v := range Variables(s, GlobalVariables) {
		if name := v.wholeName(); !averaged[v] && !means[name] {
			names[name] = append(names[name], v)
		}
	}
	return names
}
