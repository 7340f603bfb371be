package resource

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// RegisterForms registers two versions of an operation whose first input, arg, is a handle. def
// describes the version for older graphs, whose handle is a reference to two strings. The other
// version has a resource handle, the name newName and the shape function newShape.
func RegisterForms(arg string, def opdef.Def, newName string, newShape opdef.ShapeFn, impl kernel.New) {
	inputs := def.In
	def.In = append([]string{arg + ": Ref(string)"}, inputs...)
	kernel.Register(kernel.Op{Def: def, Kernels: kernel.Any(impl)})
	def.In = append([]string{arg + ": resource"}, inputs...)
	def.Name, def.Shape, def.Stateful = newName, newShape, true
	kernel.Register(kernel.Op{Def: def, Kernels: kernel.Any(impl)})
}

// CheckSignature checks that the types of a node's inputs and outputs are those of its resource.
func CheckSignature(in, out, wantIn, wantOut []tensor.DType) error {
	if slices.Equal(in, wantIn) && slices.Equal(out, wantOut) {
		return nil
	}
	return status.InvalidArgumentf("Signature mismatch, have: %s->%s expected: %s->%s",
		opdef.JoinTypes(in), opdef.JoinTypes(out), opdef.JoinTypes(wantIn), opdef.JoinTypes(wantOut))
}

// NamesShape is the shape function of operations that return a reference to container and name.
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

// ByNamesShape is the shape function of older operations whose inputs are all such references and
// whose outputs are scalars.
func ByNamesShape(c *opdef.ShapeContext) error {
	for i := range c.In {
		if err := CheckNames(c, i); err != nil {
			return err
		}
	}
	return opdef.ScalarShape(c)
}
