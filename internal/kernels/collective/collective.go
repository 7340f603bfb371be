// Package collective holds the operations that the devices of a group make together: sums over
// devices, broadcasts, gathering and exchanging pieces. How devices find each other and exchange
// tensors is behind kernel.Collectives; the kernels say what is to be done. Of each operation there
// are up to three forms: the first names its group by attributes, the second by inputs, and the
// third by a communicator, a resource that stands for a group which has been joined.
package collective

import (
	"runtime/debug"
	"time"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Types of elements, by operation.
const (
	sums       = "T: {bfloat16, float, half, double, int32, int64}"
	gathers    = "T: {float, half, double, int32, int64}"
	broadcasts = "T: {bool, float, half, double, int32, int64}"
)

// Attributes that forms share.
var (
	first   = []string{"group_size: int", "group_key: int", "instance_key: int"}
	hints   = []string{"communication_hint: string = 'auto'", "timeout_seconds: float = 0"}
	tokens  = []string{"is_stateless: bool = false", "Nordering_token: int >= 0 = 0"}
	reducer = []string{"merge_op: {'Min', 'Max', 'Mul', 'Add'}", "final_op: {'Id', 'Div'}"}
)

// Inputs by which the second form names its group.
var second = []string{"group_size: int32", "group_key: int32", "instance_key: int32"}

// prepare says what one execution of a node does, but for what the node alone determines.
type prepare func(ctx *kernel.Context, op *kernel.Collective) error

// register adds an operation with all its attributes, whose nodes are described by describe.
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

// run makes one execution of a node.
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

// waiting returns a kernel that waits for other devices on a goroutine of its own, which ends no
// later than the step.
func waiting(f func(ctx *kernel.Context) error) kernel.Kernel {
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		go func() { done(guarded(ctx, f)) }()
	})
}

// guarded turns a panic, which nobody else on this goroutine would stop, into an error.
func guarded(ctx *kernel.Context, f func(ctx *kernel.Context) error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = status.Internalf("a collective operation panicked: %v\n%s", fault, debug.Stack())
		}
	}()
	return f(ctx)
}

func seconds(s float32) time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// byAttrs names the group and the operation by attributes.
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

// byInputs names the group and the operation by three inputs, from the given one on.
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

// sameShape is prepare for a result that has the shape of the input.
func sameShape(ctx *kernel.Context, op *kernel.Collective) error {
	op.Shape = ctx.Input(0).Shape()
	return nil
}

// scaledShape returns the shape of t with n times its first dimension.
func scaledShape(t *tensor.Tensor, n int32) (tensor.Shape, error) {
	if t.Rank() == 0 {
		return nil, status.InvalidArgumentf("input should have rank > 0, received %d", t.Rank())
	}
	shape := append(tensor.Shape(nil), t.Shape()...)
	shape[0] *= int64(n)
	return shape, shape.Check()
}
