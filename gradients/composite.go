package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
)

// The gradient of a variant that is composed of tensors is a variant of their gradients. Tensors
// without gradients stay as they are.
func init() {
	differentiable := func(x op.Output) bool { t := x.DType().Base(); return t.IsFloating() || t.IsComplex() }
	Register(func(c *Call) []Grad {
		if c.Grad(0).IsNone() {
			return c.None()
		}
		n := c.S.Add("CompositeTensorVariantToComponents", []op.Arg{op.One(c.DY(0))}, opdef.Attrs{
			"metadata": c.Node.Attrs["metadata"], "Tcomponents": c.Node.Attrs["Tcomponents"],
		})
		grads := c.None()
		for i := range grads {
			if differentiable(c.In(i)) {
				grads[i] = Of(output(n, i))
			}
		}
		return grads
	}, "CompositeTensorVariantFromComponents")
	Register(func(c *Call) []Grad {
		parts := make([]op.Output, len(c.Node.OutTypes))
		for i := range parts {
			if parts[i] = c.Out(i); differentiable(parts[i]) {
				parts[i] = c.DY(i)
			}
		}
		n := c.S.Add("CompositeTensorVariantFromComponents", []op.Arg{op.Many(parts)}, opdef.Attrs{"metadata": c.Node.Attrs["metadata"]})
		return c.first(output(n, 0))
	}, "CompositeTensorVariantToComponents")
}
