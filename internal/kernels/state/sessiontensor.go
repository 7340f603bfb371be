package state

import (
	"strconv"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// sessionTensor is a tensor that a session stores between steps; its client holds the handle.
type sessionTensor struct{ value tensor.Tensor }

// TypeName returns the resource type in the handles that clients feed in place of tensors.
func (*sessionTensor) TypeName() string { return kernel.SessionTensorType }

// Kept returns the tensor with a new reference.
func (s *sessionTensor) Kept() tensor.Tensor { return s.value.Retain() }

// Close releases the tensor.
func (s *sessionTensor) Close() { s.value.Release() }

// lastHandle is the last handle number; numbers are unique within the process.
var lastHandle atomic.Int64

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "GetSessionHandle", Doc: "Stores a tensor in the session and returns a handle to it.",
		In: []string{"value: T"}, Out: []string{"handle: string"}, Attrs: []string{"T: type"}, Stateful: true, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		name, err := keep(ctx)
		if err == nil {
			ctx.SetOutput(0, tensor.Scalar(name))
		}
		return err
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "GetSessionHandleV2", Doc: "Stores a tensor in the session and returns a resource handle to it.",
		In: []string{"value: T"}, Out: []string{"handle: resource"}, Attrs: []string{"T: type"}, Stateful: true, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		name, err := keep(ctx)
		if err == nil {
			ctx.SetOutput(0, tensor.Scalar(&tensor.Handle{
				Device: ctx.Device.Name, Container: kernel.SessionTensorType, Name: name, TypeName: kernel.SessionTensorType,
			}))
		}
		return err
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "GetSessionTensor", Doc: "Returns the tensor stored in the session under a handle.",
		In: []string{"handle: string"}, Out: []string{"value: dtype"}, Attrs: []string{"dtype: type"}, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			return shapefn.CheckRanks(c, 0, 0)
		},
	}, func(ctx *kernel.Context) error {
		name, err := kept(ctx, "GetSessionTensor", "handle must be scalar")
		if err != nil {
			return err
		}
		s, err := kernel.LookupResource[*sessionTensor](ctx.Device.Resources, kernel.SessionContainer(ctx.Step.Session), name)
		if err != nil {
			return status.InvalidArgumentf("The tensor with handle '%s' is not in the session store.", name)
		}
		ctx.SetOutput(0, s.value.Retain())
		return nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "DeleteSessionTensor", Doc: "Deletes the tensor stored in the session under a handle.",
		In: []string{"handle: string"}, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error { return shapefn.CheckRanks(c, 0, 0) },
	}, func(ctx *kernel.Context) error {
		name, err := kept(ctx, "DeleteSessionTensor", "`handle` must be scalar")
		if err != nil {
			return err
		}
		container := kernel.SessionContainer(ctx.Step.Session)
		if ctx.Device.Resources.DeleteResource(container, (*sessionTensor)(nil).TypeName(), name) != nil {
			return status.InvalidArgumentf("Failed to delete a tensor with handle '%s' in the session store.", name)
		}
		return nil
	})
}

// keep stores the input in the session and returns its handle: the node name, the device name and a
// number. Clients parse it to locate the tensor.
func keep(ctx *kernel.Context) (string, error) {
	if ctx.Step.Session == "" {
		return "", status.FailedPreconditionf("GetSessionHandle called on null session state")
	}
	name := ctx.Node + ";" + strconv.FormatInt(lastHandle.Add(1)-1, 10) + ";" + ctx.Device.Name
	s := &sessionTensor{ctx.Input(0).Retain()}
	if err := kernel.CreateResource(ctx.Device.Resources, kernel.SessionContainer(ctx.Step.Session), name, s); err != nil {
		s.Close()
		return "", status.InvalidArgumentf("Failed to add a tensor with handle '%s' to the session store.", name)
	}
	return name, nil
}

// kept returns the handle that is input 0. notScalar is the error text for an input that is not a
// scalar.
func kept(ctx *kernel.Context, op, notScalar string) (string, error) {
	switch {
	case ctx.Input(0).Rank() != 0:
		return "", status.InvalidArgumentf("%s", notScalar)
	case ctx.Step.Session == "":
		return "", status.FailedPreconditionf("%s called on null session state", op)
	}
	return tensor.Value[string](ctx.Input(0)), nil
}
