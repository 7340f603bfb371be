package gpu

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// untouched are the operations whose kernels for CPUs do not access the elements of arguments in
// the memory of the device: they pass them on, keep them, or look at their shapes. Outputs that
// they allocate are copied to the device.
var untouched = set(
	"AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3", "Assign", "AssignVariableOp", "Bitcast", "Case", "Const",
	"DebugGradientIdentity", "DestroyTemporaryVariable", "EnsureShape", "Enter", "Exit", "ExpandDims",
	"ExperimentalMapDataset", "FakeParam", "For", "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor", "Identity", "IdentityN", "If",
	"IsVariableInitialized", "IteratorGetNext", "IteratorGetNextSync", "Merge", "NextIteration", "NoOp", "PartitionedCall", "Placeholder",
	"PlaceholderV2", "PlaceholderWithDefault", "PreventGradient", "Rank", "ReadVariableOp", "Recv", "RefEnter", "RefExit",
	"RefIdentity", "RefMerge", "RefNextIteration", "RefSwitch", "RemoteCall", "Reshape", "Send", "Shape", "ShapeN", "Size",
	"Snapshot", "Squeeze", "StatefulPartitionedCall", "StatelessCase", "StatelessIf", "StatelessWhile", "StopGradient", "Switch", "SymbolicGradient",
	"TemporaryVariable", "TensorArray", "TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3", "TensorArrayGrad",
	"TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3",
	"TensorArrayV2", "TensorArrayV3", "Variable", "VariableV2", "While", "_Arg", "_ArrayToList", "_DeviceArg", "_DeviceRetval", "_EagerConst", "_If",
	"_ListToArray", "_ReadVariablesOp", "_Recv", "_Retval", "_Send", "_SwitchN", "_While",
)

// reads are the operations that take variables and do not change them.
var reads = set("ResourceGather", "ResourceGatherNd")

func set(names ...string) map[string]bool {
	out := make(map[string]bool, len(names)) //sizedmake:ok the names of a table
	for _, name := range names {
		out[name] = true
	}
	return out
}

// cpuKernel creates the kernel of a node for CPUs.
func cpuKernel(op string, c *kernel.Construction) (kernel.Kernel, error) {
	impl := hostImpl(op, c.Attrs)
	if impl == nil {
		return nil, status.NotFoundf("No registered '%s' OpKernel for 'CPU' devices compatible with node {{node %s}}, which needs one on %s",
			op, c.Node, c.Device.Name)
	}
	return impl.New(c)
}

// hostImpl returns the kernel of the CPU, or else one that is for nodes on a GPU only. The label of
// a node may be one that only kernels for GPUs have.
func hostImpl(op string, attrs opdef.Attrs) *kernel.Impl {
	if impl := kernel.Default.Find(op, kernel.CPU, attrs); impl != nil {
		return impl
	}
	attrs = attrs.Clone()
	delete(attrs, "_kernel")
	if impl := kernel.Default.Find(op, kernel.CPU, attrs); impl != nil {
		return impl
	}
	return kernel.Default.Find(op, kernel.Host, attrs)
}

// onHost returns the constructor of the CPU's kernel, for a node whose arguments are all in the
// memory of the host.
func onHost(op string) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) { return cpuKernel(op, c) }
}

// hosted returns the constructor of the CPU's kernel for a node with arguments in the memory of the
// device. If detour is set, the kernel gets copies of them in the memory of the host.
func hosted(op string, host []string, detour bool) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		cpu, err := cpuKernel(op, c)
		if err != nil {
			return nil, err
		}
		k := &passing{op: op, cpu: cpu, gpu: c.Device.GPU, memory: kernel.MemoryOf(c, host)}
		async, waits := cpu.(kernel.Async)
		switch {
		case detour:
			return &detouring{passing: k, async: async, types: slices.Clone(c.Outputs)}, nil
		case waits:
			return &passingAsync{k, async}, nil
		}
		return k, nil
	}
}

// passing calls the CPU's kernel with tensors of the device, whose elements the kernel does not
// access.
type passing struct {
	op     string
	cpu    kernel.Kernel
	gpu    *device.Device
	memory kernel.Memory
}

// Compute implements kernel.Kernel.
func (k *passing) Compute(ctx *kernel.Context) error {
	if err := k.cpu.Compute(ctx); err != nil {
		return err
	}
	return k.settle(ctx)
}

// Close implements kernel.Closer.
func (k *passing) Close() {
	if c, ok := k.cpu.(kernel.Closer); ok {
		c.Close()
	}
}

// settle copies outputs to the device that belong there and are in the memory of the host.
func (k *passing) settle(ctx *kernel.Context) error {
	for i := range ctx.NumOutputs() {
		if k.memory.Out[i] {
			continue
		}
		if v := ctx.OutputRef(i); v != nil {
			if err := v.Update(k.move); err != nil {
				return err
			}
			continue
		}
		if err := k.move(ctx.OutputValue(i)); err != nil {
			return err
		}
	}
	return nil
}

// move replaces a tensor in the memory of the host by its copy on the device.
func (k *passing) move(t *tensor.Tensor) error {
	if !t.Initialized() || t.OnDevice() || device.IsPlaced(t, k.gpu) {
		return nil
	}
	on, err := device.PlaceNow(t.Retain(), k.gpu)
	if err != nil {
		return err
	}
	t.Release()
	*t = on
	return nil
}

// passingAsync is a passing kernel that may wait.
type passingAsync struct {
	*passing
	async kernel.Async
}

// ComputeAsync implements kernel.Async.
func (k *passingAsync) ComputeAsync(ctx *kernel.Context, done func(error)) {
	k.async.ComputeAsync(ctx, func(err error) {
		if err == nil {
			err = k.settle(ctx)
		}
		done(err)
	})
}

// detouring copies its inputs to the host, calls the CPU's kernel, and copies the outputs to the
// device. Variables that the node changes are locked meanwhile.
type detouring struct {
	*passing
	async kernel.Async // nil if the CPU's kernel never waits
	types []tensor.DType
}

// Compute implements kernel.Kernel.
func (k *detouring) Compute(ctx *kernel.Context) error {
	ended := make(chan error, 1)
	k.ComputeAsync(ctx, func(err error) { ended <- err })
	return <-ended
}

// ComputeAsync implements kernel.Async. The copies take longer than the start of a goroutine, which
// can wait for them.
func (k *detouring) ComputeAsync(ctx *kernel.Context, done func(error)) {
	device.CountDetour(k.op)
	go func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		d := &detour{k: k, ctx: ctx, done: done, inner: *ctx}
		if err := d.begin(); err != nil {
			d.end(err)
			return
		}
		parallel.Acquire()
		defer parallel.Release()
		d.compute()
	}()
}

// detour is one execution of a detouring kernel.
type detour struct {
	k     *detouring
	ctx   *kernel.Context
	done  func(error)
	inner kernel.Context // of the CPU's kernel
	ins   []kernel.Value
	outs  []kernel.Value
	vars  []borrowed
	drop  func() // unlocks the variables; nil without any
}

// borrowed is a variable, and the variable in the memory of the host that the CPU's kernel uses
// instead. The variable is locked.
type borrowed struct {
	v     *kernel.Variable
	value *tensor.Tensor // of v
	host  *kernel.Variable
}

// begin copies the inputs and the variables to the host.
func (d *detour) begin() error {
	ctx := d.ctx
	d.ins = make([]kernel.Value, ctx.NumInputs())   //sizedmake:ok the inputs and outputs of a node
	d.outs = make([]kernel.Value, ctx.NumOutputs()) //sizedmake:ok the inputs and outputs of a node
	d.inner.Bind(d.ins, d.outs, d.k.types)
	if err := d.borrow(); err != nil {
		return err
	}
	waits := make(chan error, len(d.ins)) //sizedmake:ok the inputs and outputs of a node
	copies := 0
	for i := range d.ins {
		in := ctx.Input(i)
		switch {
		case d.ins[i].Ref != nil || d.ins[i].Tensor.Initialized(): // borrowed
		case !in.Initialized():
		case device.IsPlaced(in, nil):
			d.ins[i].Tensor = in.Retain()
		default:
			copies++
			device.Place(in.Retain(), nil, func(t tensor.Tensor, err error) {
				d.ins[i].Tensor = t
				waits <- err
			})
		}
	}
	var first error
	for range copies {
		if err := <-waits; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// borrow locks the variables among the inputs, and gives the CPU's kernel copies of them in the
// memory of the host.
func (d *detour) borrow() error {
	var vars []*kernel.Variable
	handles := make([]*tensor.Handle, len(d.ins)) //sizedmake:ok the inputs of a node
	position := make([]int, len(d.ins))           //sizedmake:ok inputs; in vars, from 1
	for i := range d.ins {
		v := d.ctx.InputRef(i)
		if v == nil {
			handles[i], v = variableOf(d.ctx, i)
		}
		if v == nil || !needsCopy(v) {
			if v != nil && handles[i] == nil {
				d.ins[i].Ref = v
			}
			continue
		}
		at := slices.Index(vars, v)
		if at < 0 {
			at = len(vars)
			vars = append(vars, v)
		}
		position[i] = at + 1
	}
	if len(vars) == 0 {
		return nil
	}
	values, unlock := kernel.LockAll(vars...)
	d.drop = unlock
	for i, v := range vars {
		b := borrowed{v, values[i], kernel.NewVariableOf(v.Declared())}
		d.vars = append(d.vars, b)
		t, err := device.PlaceNow(b.value.Retain(), nil)
		if err != nil {
			return err
		}
		b.host.Store(t)
	}
	for i, at := range position {
		switch {
		case at == 0:
		case handles[i] == nil:
			d.ins[i].Ref = d.vars[at-1].host
		default:
			h := *handles[i]
			h.Resource = d.vars[at-1].host
			d.ins[i].Tensor = tensor.Scalar(&h)
		}
	}
	return nil
}

// needsCopy reports whether the value of a variable may be in the memory of a device.
func needsCopy(v *kernel.Variable) bool {
	t := v.Load()
	defer t.Release()
	return !t.Initialized() || t.DType().Size() > 0 || t.DType() == tensor.Variant
}

// variableOf returns the handle at input i and the variable behind it, or nil if there is none.
func variableOf(ctx *kernel.Context, i int) (*tensor.Handle, *kernel.Variable) {
	t := ctx.Input(i)
	if t.DType() != tensor.Resource || t.NumElements() != 1 {
		return nil, nil
	}
	h := tensor.Value[*tensor.Handle](t)
	if h == nil || h.Device != ctx.Device.Name {
		return nil, nil
	}
	if v, ok := h.Resource.(*kernel.Variable); ok {
		return h, v
	}
	v, err := kernel.LookupResource[*kernel.Variable](ctx.Device.Resources, h.Container, h.Name)
	if err != nil {
		return nil, nil
	}
	return h, v
}

// compute calls the CPU's kernel.
func (d *detour) compute() {
	defer func() {
		if v := recover(); v != nil {
			d.end(panicked(d.k.op, d.ctx.Device.Name, v))
		}
	}()
	if err := context.Cause(d.ctx.Context()); err != nil {
		d.end(status.FromContext(d.ctx.Context(), "running the step"))
		return
	}
	if d.k.async != nil {
		d.k.async.ComputeAsync(&d.inner, d.finish)
		return
	}
	d.finish(d.k.cpu.Compute(&d.inner))
}

// panicked returns the error for a panic of a kernel.
func panicked(op, deviceName string, v any) error {
	if err, ok := v.(error); ok {
		if over, ok := errors.AsType[*membudget.Exceeded](err); ok {
			return status.ResourceExhaustedf("OOM when allocating %d bytes of scratch memory on %s by allocator cpu", over.Bytes, deviceName)
		}
	}
	return status.Internalf("Kernel of op %s panicked: %v", op, v)
}

// finish copies variables and outputs to the device.
func (d *detour) finish(err error) {
	if err == nil {
		err = d.giveBack()
	}
	if err != nil {
		d.end(err)
		return
	}
	for i := range d.outs {
		switch out := &d.outs[i]; {
		case out.Ref != nil:
			d.ctx.SetOutputRef(i, d.original(out.Ref))
		case out.Tensor.Initialized():
			d.ctx.SetOutput(i, out.Tensor)
			out.Tensor = tensor.Tensor{}
		}
	}
	d.ctx.Dead = d.inner.Dead
	d.unlock()
	d.end(d.k.settle(d.ctx))
}

// original returns the variable that a variable in the memory of the host stands for.
func (d *detour) original(host *kernel.Variable) *kernel.Variable {
	for _, b := range d.vars {
		if b.host == host {
			return b.v
		}
	}
	return host
}

// giveBack stores the values of the variables.
func (d *detour) giveBack() error {
	if reads[d.k.op] {
		return nil
	}
	for _, b := range d.vars {
		t := b.host.Load()
		if err := d.k.move(&t); err != nil {
			t.Release()
			return err
		}
		b.value.Release()
		*b.value = t
	}
	return nil
}

func (d *detour) unlock() {
	if d.drop != nil {
		d.drop()
		d.drop = nil
	}
}

// end releases what the detour holds and ends the node.
func (d *detour) end(err error) {
	d.unlock()
	for _, b := range d.vars {
		b.host.Store(tensor.Tensor{})
	}
	for _, values := range [][]kernel.Value{d.ins, d.outs} {
		for i := range values {
			values[i].Release()
		}
	}
	d.done(err)
}
