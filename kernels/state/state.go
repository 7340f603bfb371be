// Package state holds variables, of both kinds that TensorFlow has, and the operations that change them: assignments,
// scatters, and the steps of optimizers.
//
// A variable behind a reference edge and one behind a resource handle are the same [kernel.Variable]; operations that
// exist for both share their code and differ in how they find it.
package state

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// numbers are the element types that updates of variables take.
const numbers = "{float32, float64, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, " +
	"uint16, complex128, float16, uint32, uint64}"

// place is where a stateful operation keeps its resource: names come from attributes, or from the node.
type place struct{ container, name string }

func placeOf(c *kernel.Construction) (place, error) {
	p := place{c.Attrs.String("container"), c.Attrs.String("shared_name")}
	if err := checkContainer(p.container); err != nil {
		return p, err
	}
	if p.container == "" {
		p.container = c.Device.Resources.DefaultContainer()
	}
	if p.name == "" {
		p.name = c.Node
	}
	return p, nil
}

// checkContainer allows the names of containers that TensorFlow does.
func checkContainer(name string) error {
	for i := range len(name) {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.'
		if !alnum && (i == 0 || c != '-' && c != '/') {
			return status.InvalidArgumentf("container contains invalid characters: %s", name)
		}
	}
	return nil
}

// handleOf returns the handle that input i is.
func handleOf(ctx *kernel.Context, i int) (*tensor.Handle, error) {
	in := ctx.Input(i)
	if in.DType() != tensor.Resource || in.NumElements() < 1 {
		return nil, status.InvalidArgumentf("input %d is not a resource handle", i)
	}
	h := tensor.Value[*tensor.Handle](in)
	if h == nil {
		return nil, status.InvalidArgumentf("input %d is an empty resource handle", i)
	}
	if h.Device != ctx.Device.Name {
		return nil, status.InvalidArgumentf("Trying to access resource %s located in device %s from device %s", h.Name, h.Device, ctx.Device.Name)
	}
	return h, nil
}

// variableOf returns the variable that the handle in input i names.
func variableOf(ctx *kernel.Context, i int) (*kernel.Variable, error) {
	h, err := handleOf(ctx, i)
	if err != nil {
		return nil, err
	}
	return kernel.LookupResource[*kernel.Variable](ctx.Device.Resources, h.Container, h.Name)
}
