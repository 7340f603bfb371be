// Package ioops implements file operations: saving and restoring checkpoints in both formats, names
// of sharded files, reading and writing whole files, and readers, which produce the records of
// files whose names they take from a queue.
package ioops

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// scalars is the shape function of operations whose inputs and outputs are scalars.
func scalars(c *opdef.ShapeContext) error {
	for i := range c.In {
		if err := shapefn.CheckRanks(c, i, 0); err != nil {
			return err
		}
	}
	return opdef.ScalarShape(c)
}

// text returns the string that is input i, which must be a scalar.
func text(ctx *kernel.Context, i int, name string) (string, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return "", status.InvalidArgumentf("%s must be a scalar, got shape %v", name, t.Shape())
	}
	return tensor.Value[string](t), nil
}
