package state

import (
	"strings"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// flag returns the attributes of a rule as kernels of devices take them: the boolean attribute
// in bit 0. Bit 1 is for sparse gradients of FTRL, whose NaN spreads to the variable.
func (s *step) flag(attrs opdef.Attrs) (flag int32) {
	for _, name := range []string{"use_nesterov", "update_slots", "multiply_linear_by_lr"} {
		if on, _ := attrs[name].(bool); on {
			flag |= 1
		}
	}
	if s.form.rows() && strings.HasPrefix(s.name, "Ftrl") {
		flag |= 2
	}
	return flag
}

// onDevice queues the update of variables in the memory of a device. The signs of hyperparameters
// and the range of indices are not checked there; indices out of range are dropped.
func (s *step) onDevice(ctx *kernel.Context, d *device.Device, o *operands, flag int32) error {
	name := strings.ToLower(s.name) + "_" + source.TypeName(o.grad.DType())
	if o.indices != nil {
		name += "_rows"
	}
	if !device.HasKernel(name) {
		return status.Unimplementedf("%s has no kernel %s", d.Name(), name)
	}
	var args []any
	for i, t := range o.values {
		if device.Of(t) != d {
			return status.Internalf("%s is not in the memory of %s", s.vars[i], d.Name())
		}
		own, err := ctx.Writable(t)
		if err != nil {
			return err
		}
		//sizedmake:ok one for each input
		args = append(args, own)
	}
	n := int64(o.grad.NumElements())
	args = append(args, o.grad)
	if o.indices == nil {
		return d.LaunchLine(name, n, append(hyperArgs(args, o), n, flag)...)
	}
	limit, count := int64(o.values[0].Dim(0)), int64(o.indices.NumElements())
	if count == 0 {
		return nil
	}
	sorted, err := gatherscatter.Sort(d, o.indices, limit)
	if err != nil {
		return err
	}
	defer sorted.Release()
	args = hyperArgs(append(args, &sorted), o)
	return d.LaunchLine(name, n, append(args, count, n/count, limit, flag)...)
}

func hyperArgs(args []any, o *operands) []any {
	for _, p := range o.hyper {
		//sizedmake:ok one for each input
		args = append(args, p)
	}
	return args
}
