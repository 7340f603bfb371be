package resource

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// RegisterForms adds an operation whose first input is a handle in both of its forms: that of older
// graphs, which def describes and whose handle is a reference to two strings, and that with a
// resource handle, which has a name and a rule for shapes of its own. arg is the name of the
// handle.
func RegisterForms(arg string, def opdef.Def, newName string, newShape opdef.ShapeFn, impl kernel.New) {
	inputs := def.In
	def.In = append([]string{arg + ": Ref(string)"}, inputs...)
	kernel.Register(kernel.Op{Def: def, Kernels: kernel.Any(impl)})
	def.In = append([]string{arg + ": resource"}, inputs...)
	def.Name, def.Shape, def.Stateful = newName, newShape, true
	kernel.Register(kernel.Op{Def: def, Kernels: kernel.Any(impl)})
}

// CheckSignature compares the types of a node's inputs and outputs with those that its resource
// asks for.
func CheckSignature(in, out, wantIn, wantOut []tensor.DType) error {
	if slices.Equal(in, wantIn) && slices.Equal(out, wantOut) {
		return nil
	}
	return status.InvalidArgumentf("Signature mismatch, have: %s->%s expected: %s->%s",
		opdef.JoinTypes(in), opdef.JoinTypes(out), opdef.JoinTypes(wantIn), opdef.JoinTypes(wantOut))
}

// NamesShape is the rule of operations that give references to container and name.
func NamesShape(c *opdef.ShapeContext) error {
	c.SetAll(shapefn.Of(2))
	return nil
}

// CheckNames checks that input i has the shape of a reference to container and name.
func CheckNames(c *opdef.ShapeContext, i int) error {
	names, err := opdef.WithRank(c.In[i], 1)
	if err == nil {
		err = shapefn.CheckDim(names.Dim(0), 2)
	}
	return err
}

// ByNamesShape is the rule of older operations that take nothing but such references and give
// scalars.
func ByNamesShape(c *opdef.ShapeContext) error {
	for i := range c.In {
		if err := CheckNames(c, i); err != nil {
			return err
		}
	}
	return opdef.ScalarShape(c)
}
