package function

import (
	"slices"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{
		"Tin: list(type) >= 0", "Tout: list(type) >= 0", "f: func", "config: string = ''", "config_proto: string = ''",
		"executor_type: string = ''",
	}
	kernel.RegisterNew(opdef.Def{
		Name: "PartitionedCall", Doc: "Calls the stateless function f.",
		In: []string{"args: Tin"}, Out: []string{"output: Tout"}, Attrs: attrs, Shape: opdef.UnknownShape,
	}, newCall)
	kernel.RegisterNew(opdef.Def{
		Name: "StatefulPartitionedCall", Doc: "Calls the function f.",
		In: []string{"args: Tin"}, Out: []string{"output: Tout"}, Attrs: attrs, Shape: opdef.UnknownShape,
		Stateful: true, Distributed: true,
	}, newCall)
	kernel.RegisterNew(opdef.Def{
		Name: "SymbolicGradient",
		Doc: "Calls the gradient of the function f: for (y…) = f(x…), it computes the derivatives of all y, weighted by dy…, with " +
			"respect to x… from (x…, dy…).",
		In: []string{"input: Tin"}, Out: []string{"output: Tout"},
		Attrs: []string{"Tin: list(type) >= 1", "Tout: list(type) >= 1", "f: func"}, Shape: gradientShape,
	}, newGradient)
}

// gradientShape sets the shape of each gradient to that of the value it belongs to.
func gradientShape(c *opdef.ShapeContext) error {
	if len(c.In) < len(c.Out) {
		return status.InvalidArgumentf("len(inputs) < len(outputs)")
	}
	types := c.Attrs.Types("Tin")
	for i := range c.Out {
		switch {
		case types[i] != tensor.Resource:
			c.Out[i] = c.In[i]
		case len(c.InHandles[i]) > 0:
			c.Out[i] = c.InHandles[i][0].Shape
		}
	}
	return nil
}

// newGradient returns the kernel that calls the gradient of a function, which has its own name in
// the library.
func newGradient(c *kernel.Construction) (kernel.Kernel, error) {
	f, err := instantiate(c, opdef.Func{Name: c.Op.Name, Attrs: opdef.Attrs{"f": c.Attrs.Func("f")}})
	if err != nil {
		return nil, err
	}
	return &selected{
		choose: func(*kernel.Context) (kernel.Function, error) { return f, nil },
		miscount: func(want, got int) error {
			return status.InvalidArgumentf("SymGrad expects to return %d tensor(s), but get %d tensor(s) instead.", want, got)
		},
	}, nil
}

// executors are the executors that a call may name. A function runs on the same one for all of
// them.
var executors = []string{"", "DEFAULT", "SINGLE_THREADED_EXECUTOR"}

func newCall(c *kernel.Construction) (kernel.Kernel, error) {
	if name := c.Attrs.String("executor_type"); !slices.Contains(executors, name) {
		return nil, status.NotFoundf("No executor factory registered for the given executor type: %s "+
			"Registered factories are {DEFAULT, , SINGLE_THREADED_EXECUTOR}.", name)
	}
	if c.Functions == nil {
		return nil, errNoLibrary
	}
	f, err := c.Functions.InstantiateAcross(c.Attrs.Func("f"))
	if err != nil {
		return nil, err
	}
	return &selected{choose: func(*kernel.Context) (kernel.Function, error) { return f, nil }}, nil
}
