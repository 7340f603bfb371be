// Package collective implements the operations that the devices of a group perform together:
// reductions, broadcasts, gathers and exchanges. kernel.Collectives locates the devices and
// exchanges the tensors; the kernels describe the operation. An operation has up to three forms:
// the first identifies its group by attributes, the second by inputs, and the third by a
// communicator, a resource for a group that has been joined.
package collective

import (
	"runtime/debug"
	"time"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Element dtypes, by operation.
const (
	sums       = "T: {bfloat16, float, half, double, int32, int64}"
	gathers    = "T: {float, half, double, int32, int64}"
	broadcasts = "T: {bool, float, half, double, int32, int64}"
)

// Attributes common to several forms.
var (
	first   = []string{"group_size: int", "group_key: int", "instance_key: int"}
	hints   = []string{"communication_hint: string = 'auto'", "timeout_seconds: float = 0"}
	tokens  = []string{"is_stateless: bool = false", "Nordering_token: int >= 0 = 0"}
	reducer = []string{"merge_op: {'Min', 'Max', 'Mul', 'Add'}", "final_op: {'Id', 'Div'}"}
)

// Inputs that identify the group in the second form.
var second = []string{"group_size: int32", "group_key: int32", "instance_key: int32"}

// prepare sets the fields of op that depend on the inputs of one execution.
type prepare func(ctx *kernel.Context, op *kernel.Collective) error

// register registers an operation with all its attributes. describe returns the fields common to
// all executions of a node.
func register(def opdef.Def, describe func(c *kernel.Construction) (*kernel.Collective, prepare, error)) {
	def.Stateful, def.Distributed = true, true
	kernel.RegisterNew(def, func(c *kernel.Construction) (kernel.Kernel, error) {
		op, p, err := describe(c)
		if err != nil {
			return nil, err
		}
		op.DType = c.Attrs.Type("T")
		op.Timeout = seconds(c.Attrs.Float("timeout_seconds"))
		return waiting(func(ctx *kernel.Context) error { return run(ctx, *op, p) }), nil
	})
}

// run performs one execution of a node.
func run(ctx *kernel.Context, op kernel.Collective, p prepare) error {
	if err := p(ctx, &op); err != nil {
		return err
	}
	all, err := collectives(ctx)
	if err != nil {
		return err
	}
	var in tensor.Tensor
	if ctx.NumInputs() > 0 && ctx.Input(0).DType() == op.DType && (op.Kind != kernel.Broadcast || op.Source) {
		in = *ctx.Input(0)
	}
	out, err := all.Run(ctx, &op, &in)
	if err == nil {
		ctx.SetOutput(0, out)
	}
	return err
}

func collectives(ctx *kernel.Context) (kernel.Collectives, error) {
	if c := ctx.Step.Collectives; c != nil {
		return c, nil
	}
	return nil, status.Internalf("Failed to get CollectiveExecutor from OpKernelContext for Op %s", ctx.Node)
}

// waiting returns a kernel that waits for other devices on a separate goroutine, which ends with
// the step at the latest.
func waiting(f func(ctx *kernel.Context) error) kernel.Kernel {
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		go func() { done(guarded(ctx, f)) }()
	})
}

// guarded converts a panic, which nothing else on this goroutine recovers, to an error.
func guarded(ctx *kernel.Context, f func(ctx *kernel.Context) error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = status.Internalf("a collective operation panicked: %v\n%s", fault, debug.Stack())
		}
	}()
	return f(ctx)
}

func seconds(s float32) time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// byAttrs reads the keys of the group and the operation from attributes.
func byAttrs(c *kernel.Construction, op *kernel.Collective) error {
	op.Group = kernel.CollectiveGroup{
		Key: int32(c.Attrs.Int("group_key")), Size: int32(c.Attrs.Int("group_size")), Rank: -1,
	}
	op.Instance = int32(c.Attrs.Int("instance_key"))
	return checkSize(op.Group.Size)
}

func checkSize(size int32) error {
	if size <= 0 {
		return status.InvalidArgumentf("group_size must be positive integer but got %d", size)
	}
	return nil
}

// byInputs reads the keys of the group and the operation from three inputs, from the given index
// on.
func byInputs(ctx *kernel.Context, op *kernel.Collective, from int) error {
	var vals [3]int32
	for i := range vals {
		t := ctx.Input(from + i)
		if t.Rank() > 0 {
			name := [...]string{"group_size", "group_key", "instance_key"}[i]
			return status.InvalidArgumentf("Unexpected dimensions on input %s, got %v", name, t.Shape())
		}
		vals[i] = tensor.Value[int32](t)
	}
	op.Group = kernel.CollectiveGroup{Size: vals[0], Key: vals[1], Rank: -1}
	op.Instance = vals[2]
	return checkSize(op.Group.Size)
}

// sameShape prepares an operation whose result has the shape of the input.
func sameShape(ctx *kernel.Context, op *kernel.Collective) error {
	op.Shape = ctx.Input(0).Shape()
	return nil
}

// scaledShape returns the shape of t with the first dimension multiplied by n.
func scaledShape(t *tensor.Tensor, n int32) (tensor.Shape, error) {
	if t.Rank() == 0 {
		return nil, status.InvalidArgumentf("input should have rank > 0, received %d", t.Rank())
	}
	shape := append(tensor.Shape(nil), t.Shape()...)
	shape[0] *= int64(n)
	return shape, shape.Check()
}
