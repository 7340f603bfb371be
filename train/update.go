package train

import (
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
)

// A kernelUpdater updates each variable with one operation. TensorFlow has four forms of each:
// ApplyX and SparseApplyX for dense and sparse gradients of reference variables, ResourceApplyX and
// ResourceSparseApplyX for those of resource variables. Arguments are matched by name.
type kernelUpdater struct {
	kernel string // X
	attrs  opdef.Attrs
	slots  map[string]slots     // argument → slots of the variables
	values map[string]op.Output // argument → value that all updates share
}

// slots maps variables to their slots of one kind.
type slots map[*Variable]*Variable

// A slotKind is a kind of slot: a variable that an optimizer keeps for each variable.
type slotKind struct {
	arg  string // of the operation
	init Initializer
}

// newSlots adds a slot of each kind for each variable, variable by variable. The names of the kinds
// after the first get numeric suffixes.
func newSlots(s *op.Scope, name string, vars []*Variable, kinds ...slotKind) map[string]slots {
	all := map[string]slots{}
	for _, k := range kinds {
		all[k.arg] = slots{}
	}
	for _, v := range vars {
		for _, k := range kinds {
			all[k.arg][v] = NewSlot(s, v, name, k.init)
		}
	}
	return all
}

// NewSlot adds a slot for an [Optimizer]: a variable "v/name" with the shape, the type and the
// device of v, which is not trainable.
func NewSlot(s *op.Scope, v *Variable, name string, init Initializer) *Variable {
	opts := []VariableOption{NotTrainable()}
	if v.Resource {
		opts = append(opts, Resource())
	}
	near := s.Absolute().ColocateWith(v.Handle.Node)
	slot := NewVariable(near, v.Name+"/"+name, v.Shape, v.DType, init, opts...)
	if v.Part != nil {
		slot.Part = v.Part.slot(strings.TrimPrefix(slot.Name, v.Name))
	}
	return slot
}

// Dense implements [Updater].
func (u *kernelUpdater) Dense(s *op.Scope, v *Variable, grad op.Output) *graph.Node {
	return u.apply(s, "Apply", v, map[string]op.Output{"grad": grad, "delta": grad})
}

// Sparse implements [Updater].
func (u *kernelUpdater) Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node {
	return u.apply(s, "SparseApply", v, map[string]op.Output{"grad": values, "indices": indices})
}

// Finish implements [Updater].
func (*kernelUpdater) Finish(*op.Scope, []*graph.Node) []*graph.Node { return nil }

func (u *kernelUpdater) apply(s *op.Scope, form string, v *Variable, grad map[string]op.Output) *graph.Node {
	if v.Resource {
		form = "Resource" + form
	}
	name := form + u.kernel
	def, ok := s.Graph().LookupOp(name)
	if !ok {
		return s.Add(name, nil, nil) // records the build error
	}
	args := make([]op.Arg, len(def.Inputs))
	for i := range def.Inputs {
		args[i] = op.One(u.argument(s, def.Inputs[i].Name, v, grad))
	}
	return s.Add(name, args, u.attrs)
}

func (u *kernelUpdater) argument(s *op.Scope, arg string, v *Variable, grad map[string]op.Output) op.Output {
	if arg == "var" {
		return v.Handle
	}
	if slot, ok := u.slots[arg]; ok {
		return slot[v].Handle
	}
	if g, ok := grad[arg]; ok {
		return g
	}
	value := u.values[arg]
	if arg == "global_step" {
		return value
	}
	return castTo(s, value, v.DType)
}
