// Package comm implements the operations that transfer tensors between devices within a step.
package comm

import (
	"sync"

	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, doc := range map[string]string{
		"_Send":     "Sends a tensor to another device.",
		"_HostSend": "Sends a tensor in the host's memory to another device.",
		"Send":      "Sends a tensor to another device.",
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: []string{"tensor: T"}, Attrs: append([]string{"T: type"}, keyAttrs...), Stateful: true,
		}, newSend)
	}
	for name, doc := range map[string]string{
		"_Recv":     "Receives a tensor from another device.",
		"_HostRecv": "Receives a tensor from another device into the host's memory.",
		"Recv":      "Receives a tensor from another device.",
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, Out: []string{"tensor: tensor_type"}, Attrs: append([]string{"tensor_type: type"}, keyAttrs...),
			Shape: opdef.UnknownShape, Stateful: true, Distributed: true,
		}, newRecv)
	}
}

// keyAttrs lists the attributes common to both ends of a transfer.
var keyAttrs = []string{
	"tensor_name: string", "send_device: string", "send_device_incarnation: int", "recv_device: string",
	"client_terminated: bool = false",
}

func newKey(attrs opdef.Attrs) (*kernel.Key, error) {
	incarnation, _ := attrs["send_device_incarnation"].(int64)
	key := kernel.NewKey(attrs.String("send_device"), uint64(incarnation), attrs.String("recv_device"), attrs.String("tensor_name"))
	_, err := kernel.ParseKey(key.At(kernel.FrameIter{}))
	return key, err
}

func tableOf(ctx *kernel.Context) (kernel.Rendezvous, error) {
	if r := ctx.Step.Rendezvous; r != nil {
		return r, nil
	}
	return nil, status.Internalf("Op kernel context needs to provide a rendezvous.")
}

type send struct {
	key      *kernel.Key
	toClient bool
}

func newSend(c *kernel.Construction) (kernel.Kernel, error) {
	key, err := newKey(c.Attrs)
	return &send{key, c.Attrs.Bool("client_terminated")}, err
}

func (s *send) Compute(ctx *kernel.Context) error {
	r, err := tableOf(ctx)
	if err != nil {
		return err
	}
	if ctx.Dead {
		return r.Send(s.key, ctx.At, tensor.Tensor{}, true)
	}
	if v := ctx.InputRef(0); v != nil {
		return s.sendVariable(ctx, r, v)
	}
	return r.Send(s.key, ctx.At, ctx.Input(0).Retain(), false)
}

// sendVariable sends a variable behind a reference.
//
// The simple design sends the value that the variable has when the node runs. That is wrong where
// the consumer has a control input: it must see the updates that the control input stands for, but
// the control edge ends at the consumer's task, and this node runs at the start of the step. The
// consumer's task requests the tensor when the other inputs of the consumer have arrived, so the
// variable is read at the request. In TensorFlow the tensor shares the memory of the variable, with
// the same effect. A client gets the value as of now.
func (s *send) sendVariable(ctx *kernel.Context, r kernel.Rendezvous, v *kernel.Variable) error {
	if s.toClient {
		return r.Send(s.key, ctx.At, v.Load(), false)
	}
	return r.SendVariable(s.key, ctx.At, v)
}

type recv struct {
	key *kernel.Key
	gpu *gpu.Device // in whose memory the tensor is wanted; nil for the host
}

func newRecv(c *kernel.Construction) (kernel.Kernel, error) {
	key, err := newKey(c.Attrs)
	r := &recv{key: key}
	if c.Device != nil && c.Op.Name != "_HostRecv" && c.Attrs["_output_hostmem"] == nil {
		r.gpu = c.Device.GPU
	}
	return r, err
}

// Compute waits for the tensor.
func (r *recv) Compute(ctx *kernel.Context) error {
	came := make(chan error, 1)
	r.ComputeAsync(ctx, func(err error) { came <- err })
	return <-came
}

func (r *recv) ComputeAsync(ctx *kernel.Context, done func(error)) {
	table, err := tableOf(ctx)
	if err != nil {
		done(err)
		return
	}
	a, _ := arrivals.Get().(*arrival)
	if a == nil {
		a = new(arrival)
		a.accept = a.come
	}
	a.ctx, a.done, a.gpu = ctx, done, r.gpu
	table.Recv(r.key, ctx.At, a.accept)
}

// arrival is a receive in progress. It is reused with its callback, so that a receive does not
// allocate.
type arrival struct {
	ctx    *kernel.Context
	done   func(error)
	gpu    *gpu.Device
	accept func(t tensor.Tensor, dead bool, err error)
}

var arrivals sync.Pool // of *arrival

func (a *arrival) come(t tensor.Tensor, dead bool, err error) {
	ctx, done, to := a.ctx, a.done, a.gpu
	a.ctx, a.done, a.gpu = nil, nil, nil
	arrivals.Put(a)
	switch {
	case err != nil:
	case dead:
		ctx.Dead = true
	case !gpu.IsPlaced(&t, to):
		gpu.Place(t, to, func(t tensor.Tensor, err error) {
			ctx.SetOutput(0, t)
			done(err)
		})
		return
	default:
		ctx.SetOutput(0, t)
	}
	done(err)
}
