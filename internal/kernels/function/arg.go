// Package function implements the operations that call functions of the graph's library: calls,
// conditionals and loops, and the nodes for arguments and results in function bodies.
package function

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, doc := range map[string]string{
		"_Arg":       "The argument of the given index of a function's call.",
		"_DeviceArg": "The argument of the given index of a function's call, in the memory of the device.",
	} {
		kernel.RegisterFunc(opdef.Def{
			Name: name, Doc: doc, Out: []string{"output: T"}, Attrs: []string{"T: type", "index: int >= 0"},
			Shape: argShape, Stateful: true,
		}, outsideCall)
	}
	for name, doc := range map[string]string{
		"_Retval":       "The result of the given index of a function's call.",
		"_DeviceRetval": "The result of the given index of a function's call, in the memory of the device.",
	} {
		kernel.RegisterFunc(opdef.Def{
			Name: name, Doc: doc, In: []string{"input: T"}, Attrs: []string{"T: type", "index: int >= 0"}, Stateful: true,
		}, outsideCall)
	}
}

// outsideCall is the kernel of nodes that only the executor can run.
func outsideCall(ctx *kernel.Context) error {
	return status.Internalf("%s is outside of a call", ctx.Node)
}

// argShape uses the shape that the caller has recorded for the argument.
func argShape(c *opdef.ShapeContext) error {
	if shapes := c.Attrs.Shapes("_output_shapes"); len(shapes) > 0 {
		c.Out[0] = shapes[0]
	}
	types, shapes := c.Attrs.Types("_handle_dtypes"), c.Attrs.Shapes("_handle_shapes")
	if c.Attrs.Type("T") == tensor.Resource && len(types) > 0 && len(shapes) > 0 {
		c.OutHandles[0] = []tensor.HandleElem{{DType: types[0], Shape: shapes[0]}}
	}
	return nil
}
