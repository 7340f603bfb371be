package kernel

import (
	"errors"

	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// GPU returns the device in whose memory the kernel computes: the inputs and outputs that its
// registration does not list in Host are there. It returns nil for a kernel in the memory of the
// host, also on a GPU.
func (c *Context) GPU() *gpu.Device { return c.gpu }

// ErrDetour is returned by a kernel with a context of a GPU, before it has changed anything, for
// inputs that it can compute in the memory of the host only. The caller copies them there.
var ErrDetour = errors.New("the kernel does not compute this on a device")

// OnHost calls f with a context whose outputs are in the memory of the host.
func (c *Context) OnHost(f func() error) error {
	d, host := c.gpu, c.hostOuts
	c.gpu, c.hostOuts = nil, nil
	err := f()
	c.gpu, c.hostOuts = d, host
	return err
}

// Scratch returns a tensor for intermediate results, in the memory in which the kernel
// computes. Its elements are not cleared. The caller releases it.
func (c *Context) Scratch(dtype tensor.DType, shape tensor.Shape) (tensor.Tensor, error) {
	if c.gpu != nil {
		return c.gpu.Alloc(dtype, shape)
	}
	return tensor.Alloc(dtype, shape)
}

// allocatesOnGPU reports whether output i is allocated in the memory of a GPU. Strings, handles and
// variants never are.
func (c *Context) allocatesOnGPU(i int) bool {
	return c.gpu != nil && !c.isHostOutput(i) && c.OutputType(i).Size() > 0
}

func (c *Context) isHostOutput(i int) bool { return c.hostOuts != nil && c.hostOuts[i] }

// fits reports whether a tensor is in the memory of output i.
func (c *Context) fits(t *tensor.Tensor, i int) bool { return t.OnDevice() == c.allocatesOnGPU(i) }

func (c *Context) allocateOnGPU(i int, shape tensor.Shape) (*tensor.Tensor, error) {
	t, err := c.gpu.AllocIn(c.Step.Context, c.Device.Name, c.OutputType(i), shape)
	if err != nil {
		return nil, err
	}
	c.outputs[i].Tensor = t
	return &c.outputs[i].Tensor, nil
}

// OnGPU returns a kernel that calls k with a context whose outputs are in the memory of a GPU,
// except for those that host marks. host is nil for none.
func OnGPU(k Kernel, d *gpu.Device, host []bool) Kernel {
	g := onGPU{k, d, host}
	if a, ok := k.(Async); ok {
		return &asyncOnGPU{g, a}
	}
	return &g
}

type onGPU struct {
	kernel Kernel
	gpu    *gpu.Device
	host   []bool
}

// Compute implements [Kernel].
func (k *onGPU) Compute(ctx *Context) error {
	if k.gpu.Traced() {
		defer k.gpu.EnterNode(ctx.Node)()
	}
	ctx.gpu, ctx.hostOuts = k.gpu, k.host
	err := k.kernel.Compute(ctx)
	ctx.gpu, ctx.hostOuts = nil, nil
	return err
}

// Close implements [Closer].
func (k *onGPU) Close() {
	if c, ok := k.kernel.(Closer); ok {
		c.Close()
	}
}

type asyncOnGPU struct {
	onGPU
	async Async
}

// ComputeAsync implements [Async].
func (k *asyncOnGPU) ComputeAsync(ctx *Context, done func(error)) {
	ctx.gpu, ctx.hostOuts = k.gpu, k.host
	k.async.ComputeAsync(ctx, func(err error) {
		ctx.gpu, ctx.hostOuts = nil, nil
		done(err)
	})
}

// Memory says which inputs and outputs of a node are in the memory of the host.
type Memory struct{ In, Out []bool }

// MemoryOf returns the memory of a node's inputs and outputs whose kernel has the given arguments
// in the memory of the host.
func MemoryOf(c *Construction, host []string) Memory {
	m := Memory{make([]bool, len(c.Inputs)), make([]bool, len(c.Outputs))}
	_, known := Default.LookupOp(c.Op.Name)
	m.fill(c.Op, c.Attrs, c.Inputs, c.Outputs, host, known && !callOps[c.Op.Name])
	return m
}

// alwaysOnHost reports whether tensors of a type are never in the memory of a device.
func alwaysOnHost(t tensor.DType) bool {
	t = t.Base()
	return t == tensor.String || t == tensor.Resource
}

// callOps are the operations that call functions. Their int32 arguments are in the memory of the
// host, whatever their kernel says.
var callOps = map[string]bool{
	"PartitionedCall": true, "StatefulPartitionedCall": true, "SymbolicGradient": true, "While": true, "StatelessWhile": true,
}

// Memory returns the memory of the inputs and outputs of a node on a device that has memory of its
// own. The rules are TensorFlow's.
func (r *Registry) Memory(deviceType string, op *opdef.Op, attrs opdef.Attrs, in, out []tensor.DType) Memory {
	m := Memory{make([]bool, len(in)), make([]bool, len(out))}
	var impl *Impl
	if _, known := r.LookupOp(op.Name); known && !callOps[op.Name] {
		impl = r.Find(op.Name, deviceType, attrs)
	}
	var host []string
	if impl != nil {
		host = impl.Host
	}
	m.fill(op, attrs, in, out, host, impl != nil)
	return m
}

// fill marks what is in the memory of the host. int32 is there too if there is no kernel.
func (m *Memory) fill(op *opdef.Op, attrs opdef.Attrs, in, out []tensor.DType, host []string, hasKernel bool) {
	for _, arg := range host {
		mark(m.In, op.Inputs, attrs, arg)
		mark(m.Out, op.Outputs, attrs, arg)
	}
	for i, t := range in {
		m.In[i] = m.In[i] || alwaysOnHost(t) || !hasKernel && t.Base() == tensor.Int32
	}
	for i, t := range out {
		m.Out[i] = m.Out[i] || alwaysOnHost(t) || !hasKernel && t.Base() == tensor.Int32
	}
	markListed(m.In, attrs, "_input_hostmem")
	markListed(m.Out, attrs, "_output_hostmem")
	if to, ok := attrs[CopyAttr].(string); ok {
		m.In[0], m.Out[0] = to == CopyToDevice, to == CopyToHost
	}
}

// CopyAttr is the attribute of an Identity that copies between the memory of a device and that of
// the host. Its value is one of the constants below.
const (
	CopyAttr     = "_memory_copy"
	CopyToHost   = "to_host"
	CopyToDevice = "to_device"
)

// mark marks the positions of an argument.
func mark(marks []bool, args []opdef.Arg, attrs opdef.Attrs, name string) {
	lo, hi, err := opdef.ArgRange(args, attrs, name)
	if err != nil {
		return // an argument of the other direction
	}
	for i := lo; i < hi && i < len(marks); i++ {
		marks[i] = true
	}
}

// markListed marks the positions in an attribute.
func markListed(marks []bool, attrs opdef.Attrs, name string) {
	list, _ := attrs[name].([]int64)
	for _, i := range list {
		if i >= 0 && i < int64(len(marks)) {
			marks[i] = true
		}
	}
}
