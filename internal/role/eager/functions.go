package eager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// plan is a function that was placed and split for arguments on certain devices.
type plan struct {
	name  string // of the function
	parts *function.Parts
	// parts on other tasks, in the order of parts.Remotes
	remotes []*remotePart

	lock chan struct{} // holds a token while no goroutine makes the plan
	err  error         // of making it; guarded by lock
}

// call is one execution of a function.
type call struct {
	context *Context
	op      *pb.Operation
	runtime *function.Runtime
	device  *kernel.Device
	plan    *plan
	run     *worker.Run
	step    int64
	args    []argument
	values  []tensor.Tensor // of the arguments on this task, borrowed
	rets    []tensor.Tensor
	devices []string // of the results; "" for this task
	shapes  []*pb.TensorShapeProto

	mu   sync.Mutex
	errs status.Group // guarded by mu
}

// function runs a function of the library and keeps its results. It takes over args.
func (c *Context) function(ctx context.Context, op *pb.Operation, args []argument) (*pb.QueueResponse, error) {
	defer func() { releaseArguments(args) }()
	name := op.GetName()
	if _, ok := c.library.Lookup(name); !ok {
		return nil, unknownOp(name)
	}
	c.mu.Lock()
	r := c.runtime
	c.mu.Unlock()
	call := &call{context: c, op: op, runtime: r, step: -rand.Int64N(1<<62) - 1, args: args}
	defer call.cleanup()
	if err := call.traced(ctx); err != nil {
		return nil, inFunction(name, err)
	}
	resp := &pb.QueueResponse{Shape: call.shapes, Device: call.devices}
	var outputs []int32
	var values []tensor.Tensor
	for i := range call.rets {
		if call.devices[i] == "" || c.isLocal(call.devices[i]) {
			outputs, values = append(outputs, int32(i)), append(values, call.rets[i])
		}
	}
	return resp, c.store(op.GetId(), outputs, values)
}

// RunComponentFunction runs the part of a function that another task runs.
func (s *Service) RunComponentFunction(ctx context.Context, req *pb.RunComponentFunctionRequest) (*pb.RunComponentFunctionResponse, error) {
	c, err := s.find(ctx, req.GetContextId())
	if err != nil {
		return nil, err
	}
	op := req.GetOperation()
	if !op.GetIsFunction() || !op.GetIsComponentFunction() {
		return nil, status.Internalf("RunComponentFunction request can only be used to execute component functions.")
	}
	c.mu.Lock()
	part, ok := c.components[op.GetName()]
	c.mu.Unlock()
	if !ok {
		return nil, unknownOp(op.GetName())
	}
	args, err := c.arguments(op)
	if err != nil {
		return nil, err
	}
	defer func() { releaseArguments(args) }()
	call := &call{context: c, op: op, runtime: part.runtime, step: op.GetFuncStepId(), args: args}
	if err := call.execute(ctx); err != nil {
		return nil, err
	}
	if n := len(req.GetOutputNum()); n != len(call.rets) && op.GetId() >= 0 {
		release(call.rets)
		return nil, status.Internalf("%s has %d results, and output_num names %d", op.GetName(), len(call.rets), n)
	}
	resp := &pb.RunComponentFunctionResponse{}
	if op.GetId() < 0 { // the function was not called by an operation: its runner needs the values
		defer release(call.rets)
		for i := range call.rets {
			p, err := pbconv.TensorCopyToProto(&call.rets[i])
			if err != nil {
				return nil, err
			}
			resp.Tensor = append(resp.Tensor, p)
		}
		return resp, nil
	}
	resp.Shape = call.shapes
	return resp, c.store(op.GetId(), req.GetOutputNum(), call.rets)
}

// inFunction adds the name of a function to an error, as TensorFlow does.
func inFunction(name string, err error) error {
	e := status.From(err)
	if strings.Contains(e.Message, "{{function_node ") {
		return e
	}
	out := *e
	out.Message = "{{function_node " + name + "}} " + e.Message
	return &out
}

// traced executes the function in a span.
func (f *call) traced(ctx context.Context) error {
	tracer := f.context.service.Tracer
	if tracer == nil {
		return f.execute(ctx)
	}
	ctx, end := tracer.FunctionBegan(ctx, f.op.GetName())
	err := f.execute(ctx)
	end(err)
	return err
}

// execute runs all parts of the function and waits for them.
func (f *call) execute(ctx context.Context) error {
	var err error
	if f.device, err = f.context.device(f.op.GetDevice()); err != nil {
		return err
	}
	if f.plan, err = f.findPlan(ctx); err != nil {
		return err
	}
	if got := len(f.args); got != f.plan.parts.Args {
		return status.InvalidArgumentf("function %s takes %d arguments, got %d", f.op.GetName(), f.plan.parts.Args, got)
	}
	if f.run, err = f.context.scope.Begin(ctx, f.step, f.context.leader); err != nil {
		return err
	}
	defer f.run.End()
	for _, p := range f.plan.parts.Packed {
		component := f.args[p.Arg].packed[p.Component]
		component.value = component.value.Retain()
		f.args = append(f.args, component)
	}
	f.rets = make([]tensor.Tensor, f.plan.parts.Rets)
	f.devices = make([]string, len(f.rets))
	f.shapes = make([]*pb.TensorShapeProto, len(f.rets))
	f.values = make([]tensor.Tensor, len(f.args)) // the parts on this task take args over
	for i := range f.args {
		if len(f.plan.remotes) > 0 && f.args[i].value.DType() == tensor.Resource {
			f.values[i] = f.args[i].value.Retain()
		}
	}
	defer release(f.values)
	recording := f.context.service.Worker.Recorder.Current()
	defer recording.Part(f.step)()
	var parts sync.WaitGroup
	for _, p := range f.plan.remotes {
		parts.Go(func() {
			f.ended(guard.Call("function "+f.op.GetName(), func() error { return f.runRemote(p) }))
		})
	}
	values := make([]tensor.Tensor, len(f.args))
	for i := range f.args {
		values[i], f.args[i].value = f.args[i].value, tensor.Tensor{}
	}
	for i := range f.plan.parts.Locals {
		parts.Add(1)
		p := &f.plan.parts.Locals[i]
		p.Start(f.run.Step(), values, f.rets, recording.Collector(f.step, p.Device, p.Graph), func(err error) {
			f.ended(err)
			parts.Done()
		})
	}
	parts.Wait()
	release(values)
	err = f.errs.Summary()
	if err == nil {
		err = f.run.Err()
	}
	if err == nil {
		err = f.describe()
	}
	if err != nil {
		release(f.rets)
	}
	return err
}

// ended records the end of a part. The first error ends the others.
func (f *call) ended(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	f.errs.Add(err)
	f.mu.Unlock()
	f.run.Fail(err)
}

// describe sets the shapes of the results on this task.
func (f *call) describe() error {
	for i := range f.rets {
		if f.shapes[i] != nil {
			continue
		}
		if !f.rets[i].Initialized() {
			return status.InvalidArgumentf("Retval[%d] does not have value", i)
		}
		f.shapes[i] = pbconv.ShapeToProto(f.rets[i].Shape())
	}
	return nil
}

// maxPlans bounds the plans of a context. A client that puts a counter into an attribute would fill
// it otherwise.
const maxPlans = 4096

// findPlan returns the plan for the function and the devices of the arguments.
func (f *call) findPlan(ctx context.Context) (*plan, error) {
	key, err := cacheKey(f.op, f.device.Name)
	if err != nil {
		return nil, err
	}
	at, packed, where, err := f.argumentDevices()
	if err != nil {
		return nil, err
	}
	key += where
	c := f.context
	c.mu.Lock()
	if c.runtime != f.runtime && !f.op.GetIsComponentFunction() {
		f.runtime = c.runtime
	}
	p := c.plans[key]
	if p == nil {
		if len(c.plans) >= maxPlans {
			clear(c.plans) // calls that use one keep it
		}
		p = &plan{name: f.op.GetName(), lock: make(chan struct{}, 1)}
		p.lock <- struct{}{}
		c.plans[key] = p
	}
	c.mu.Unlock()
	select {
	case <-p.lock:
	case <-ctx.Done():
		return nil, status.FromContext(ctx, "placing function "+f.op.GetName())
	}
	defer func() { p.lock <- struct{}{} }()
	if p.parts != nil || p.err != nil {
		return p, p.err
	}
	if p.err = f.makePlan(p, at, packed); p.err != nil {
		c.mu.Lock()
		if c.plans[key] == p {
			delete(c.plans, key)
		}
		c.mu.Unlock()
	}
	return p, p.err
}

// argumentDevices returns the devices of the arguments that are not on the default device, those of
// the components of packed arguments, and a text that is equal for equal devices.
//
// The text asks for its memory: the name of a device is that of a handle, which any number of
// arguments may share.
func (f *call) argumentDevices() (at map[int]string, packed map[int][]string, key string, err error) {
	if !membudget.Take(f.devicesMemory()) {
		return nil, nil, "", status.ResourceExhaustedf("There is not enough memory for the devices of the %d arguments of function %s (--memory-limit).",
			len(f.args), f.op.GetName())
	}
	var b strings.Builder
	for i := range f.args {
		if f.args[i].packed != nil {
			if packed == nil {
				packed = map[int][]string{}
			}
			for _, p := range f.args[i].packed {
				packed[i] = append(packed[i], p.device)
			}
			fmt.Fprintf(&b, "\x00%d@%q", i, packed[i])
			continue
		}
		where := f.args[i].deviceName()
		if where == "" || where == f.device.Name {
			continue
		}
		if at == nil {
			at = map[int]string{}
		}
		at[i] = where
		fmt.Fprintf(&b, "\x00%d@%s", i, where)
	}
	return at, packed, b.String(), nil
}

// devicesMemory returns about the memory of the key that argumentDevices returns, in bytes. The
// quotes of a name may make four bytes of one, and the text grows by doubling.
func (f *call) devicesMemory() int64 {
	n := 0
	for i := range f.args {
		n += 2 * (argumentText + len(f.args[i].deviceName()))
		for j := range f.args[i].packed {
			n += 8 * (argumentText + len(f.args[i].packed[j].device))
		}
	}
	return int64(n)
}

// argumentText is the size of the number of an argument, and of what separates it, in bytes.
const argumentText = 16

// deviceName returns the device of an argument that is not packed, "" for the default one.
func (a *argument) deviceName() string {
	if a.remote != nil {
		return a.device
	}
	return deviceOf(&a.value)
}

// deviceOf returns the device of a resource, "" for other values.
func deviceOf(t *tensor.Tensor) string {
	if t.DType() != tensor.Resource || t.NumElements() == 0 {
		return ""
	}
	if h := tensor.Values[*tensor.Handle](t)[0]; h != nil {
		return h.Device
	}
	return ""
}

// makePlan places and splits the function.
func (f *call) makePlan(p *plan, at map[int]string, packed map[int][]string) error {
	attrs, err := pbconv.AttrsFromProto(f.op.GetAttrs())
	if err != nil {
		return err
	}
	r := f.runtime.OnDevice(f.device.Name)
	if r == nil {
		return status.InvalidArgumentf("%s unknown device.", f.device.Name)
	}
	known := f.context.deviceNames()
	for i, name := range at {
		if _, ok := known[name]; !ok {
			return status.InvalidArgumentf("%s unknown device. It is the device of argument %d of function %s.", name, i, f.op.GetName())
		}
	}
	parts, err := r.Split(opdef.Func{Name: f.op.GetName(), Attrs: attrs}, at, packed)
	if err != nil {
		return err
	}
	unique := strconv.FormatUint(rand.Uint64(), 16)
	for i := range parts.Remotes {
		part := &parts.Remotes[i]
		name := fmt.Sprintf("%s_partitioned_%s_%d", f.op.GetName(), unique, i)
		remote, err := newRemotePart(name, part)
		if err != nil {
			return err
		}
		p.remotes = append(p.remotes, remote)
	}
	p.parts = parts
	return nil
}

// cleanup ends the step on all tasks that had a part. It does not wait for the others.
func (f *call) cleanup() {
	f.context.scope.Cleanup(f.step)
	if f.plan == nil {
		return
	}
	var tasks []string
	for _, p := range f.plan.remotes {
		if !slices.Contains(tasks, p.task) {
			tasks = append(tasks, p.task)
		}
	}
	for _, task := range tasks {
		f.context.cleanupOn(task, f.step)
	}
}

func itoa(i int) string { return strconv.Itoa(i) }
