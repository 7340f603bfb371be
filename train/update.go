package train

import (
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
)

// kernelUpdater updates variables by one operation each, which TensorFlow has in four forms: ApplyX
// for references to variables and ResourceApplyX for handles, SparseApplyX and ResourceSparseApplyX
// for rows. Their arguments go by name.
type kernelUpdater struct {
	kernel string // X
	attrs  opdef.Attrs
	slots  map[string]slots     // argument → the variable beside each variable
	values map[string]op.Output // argument → what all updates share
}

// slots are the variables of one kind that an optimizer keeps beside variables.
type slots map[*Variable]*Variable

// A slotKind is a kind of variable that an optimizer keeps beside each variable.
type slotKind struct {
	arg  string // of the operation
	init Initializer
}

// newSlots makes a slot of each kind beside each variable, variable by variable: kinds after the
// first have numbered names.
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

// NewSlot adds a variable of the shape and the type of v beside it, named "v/name" and not
// trainable, for an [Optimizer].
func NewSlot(s *op.Scope, v *Variable, name string, init Initializer) *Variable {
	opts := []VariableOption{NotTrainable()}
	if v.Resource {
		opts = append(opts, Resource())
	}
	near := s.Absolute().ColocateWith(v.Handle.Node)
	slot := NewVariable(near, v.Name+"/"+name, v.Shape, v.DType, init, opts...)
	if v.Part != nil {
		slot.Part = v.Part.beside(strings.TrimPrefix(slot.Name, v.Name))
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
		return s.Add(name, nil, nil) // says so
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
