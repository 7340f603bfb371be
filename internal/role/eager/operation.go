package eager

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// operation runs an operation or function and keeps its outputs.
func (c *Context) operation(ctx context.Context, op *pb.Operation) (*pb.QueueResponse, error) {
	if op.GetIsComponentFunction() {
		return nil, status.Internalf("Component functions are run by RunComponentFunction.")
	}
	args, err := c.arguments(op)
	if err != nil {
		return nil, err
	}
	if op.GetIsFunction() {
		return c.function(ctx, op, args)
	}
	d, err := c.device(op.GetDevice())
	if err != nil {
		releaseArguments(args)
		return nil, err
	}
	values := make([]tensor.Tensor, len(args))
	for i := range args {
		if args[i].remote != nil || args[i].packed != nil {
			releaseArguments(args)
			return nil, status.InvalidArgumentf("input %d of operation %s is on %s, not on %s", i, op.GetName(), args[i].device, d.Name)
		}
		values[i] = args[i].value
	}
	outs, err := c.run(ctx, d, op, values)
	if err != nil {
		return nil, err
	}
	return c.respond(op.GetId(), outs)
}

// respond keeps the outputs of an operation and returns their shapes.
func (c *Context) respond(id int64, outs []tensor.Tensor) (*pb.QueueResponse, error) {
	resp := &pb.QueueResponse{}
	for i := range outs {
		resp.Shape = append(resp.Shape, pbconv.ShapeToProto(outs[i].Shape()))
	}
	return resp, c.store(id, nil, outs)
}

// arguments returns the inputs of an operation. The caller must release them.
func (c *Context) arguments(op *pb.Operation) ([]argument, error) {
	args := make([]argument, len(op.GetOpInputs()))
	for i, p := range op.GetOpInputs() {
		var err error
		if args[i], err = c.argument(p); err != nil {
			releaseArguments(args)
			return nil, err
		}
	}
	return args, nil
}

// run runs an operation on a device of this task. It takes over the references of args.
func (c *Context) run(ctx context.Context, d *kernel.Device, op *pb.Operation, args []tensor.Tensor) ([]tensor.Tensor, error) {
	r, err := c.scope.Begin(ctx, int64(c.id), c.leader)
	if err != nil {
		release(args)
		return nil, err
	}
	defer r.End()
	switch op.GetName() {
	case "_Send":
		return nil, send(r.Step(), op, args)
	case "_Recv":
		release(args)
		return receive(r.Step(), op)
	}
	compiled, err := c.ops.get(ctx, c, d, op)
	if err == nil && len(args) != compiled.inputs {
		err = status.InvalidArgumentf("operation %s takes %d inputs, got %d", op.GetName(), compiled.inputs, len(args))
	}
	if err == nil {
		err = compiled.checkTypes(op.GetName(), args)
	}
	if err != nil {
		release(args)
		return nil, err
	}
	outs := make([]tensor.Tensor, compiled.outputs)
	recording := c.service.Worker.Recorder.Current()
	done := recording.Part(r.Step().ID)
	err = compiled.exec.Run(r.Step(), executor.RunOptions{Args: args, Rets: outs, Stats: recording.Collector(r.Step().ID, d.Name, nil)})
	done()
	if err == nil {
		err = r.Err()
	}
	for i := range outs {
		if err == nil && !outs[i].Initialized() {
			err = status.Internalf("output %d of operation %s has no value", i, op.GetName())
		}
	}
	if err != nil {
		release(outs)
		return nil, ofKernel(err)
	}
	return outs, nil
}

// ofKernel returns the error of an operation. Clients take UNAVAILABLE for the failure of a task,
// so a kernel may not return it.
func ofKernel(err error) error {
	e := status.From(err)
	if e.Code == status.Unavailable {
		out := *e
		out.Code = status.Internal
		return &out
	}
	return e
}

func release(tensors []tensor.Tensor) {
	for i := range tensors {
		tensors[i].Release()
	}
}

// keyOf returns the rendezvous key of a _Send or _Recv operation.
func keyOf(op *pb.Operation) *kernel.Key {
	text := func(name string) string { return string(op.GetAttrs()[name].GetS()) }
	return kernel.NewKey(text("send_device"), uint64(op.GetAttrs()["send_device_incarnation"].GetI()), text("recv_device"), text("tensor_name"))
}

// send puts a value into the rendezvous of the context for another task. Every transfer has a name
// of its own, so the operation is not compiled.
func send(step *kernel.Step, op *pb.Operation, args []tensor.Tensor) error {
	if len(args) != 1 {
		release(args)
		return status.InvalidArgumentf("_Send takes 1 input, got %d", len(args))
	}
	return step.Rendezvous.Send(keyOf(op), kernel.FrameIter{}, args[0], false)
}

// receive waits for a value that another task sends.
func receive(step *kernel.Step, op *pb.Operation) ([]tensor.Tensor, error) {
	type result struct {
		value tensor.Tensor
		dead  bool
		err   error
	}
	came := make(chan result, 1)
	step.Rendezvous.Recv(keyOf(op), kernel.FrameIter{}, func(t tensor.Tensor, dead bool, err error) { came <- result{t, dead, err} })
	got := <-came
	switch {
	case got.err != nil:
		return nil, got.err
	case got.dead:
		return nil, status.InvalidArgumentf("the received tensor %s is dead", op.GetAttrs()["tensor_name"].GetS())
	}
	return []tensor.Tensor{got.value}, nil
}

// opCache holds the operations that a context has compiled, by name, device and attributes.
type opCache struct {
	mu  sync.Mutex
	ops map[string]*compiledOp // guarded by mu
}

// maxCompiled bounds the operations of a cache. A client that puts a counter into an attribute
// would fill it otherwise.
const maxCompiled = 4096

// compiledOp is a graph of one operation.
type compiledOp struct {
	exec            *executor.Executor
	inputs, outputs int
	types           []tensor.DType // of the inputs
}

func (o *compiledOp) checkTypes(name string, args []tensor.Tensor) error {
	for i := range args {
		if got := args[i].DType(); got != o.types[i] {
			return status.InvalidArgumentf("cannot compute %s as input #%d(zero-based) was expected to be a %v tensor but is a %v tensor",
				name, i, o.types[i], got)
		}
	}
	return nil
}

func (o *opCache) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.ops)
}

// get returns the compiled form of an operation.
func (o *opCache) get(ctx context.Context, c *Context, d *kernel.Device, op *pb.Operation) (*compiledOp, error) {
	key, err := cacheKey(op, d.Name)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	found := o.ops[key]
	o.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made, keep, err := c.compile(ctx, d, op)
	if err != nil || !keep {
		return made, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if first := o.ops[key]; first != nil { // compiled concurrently
		return first, nil
	}
	if o.ops == nil || len(o.ops) >= maxCompiled {
		o.ops = map[string]*compiledOp{}
	}
	o.ops[key] = made
	return made, nil
}

// cacheKey returns a text that is equal for operations with the same name, device and attributes.
func cacheKey(op *pb.Operation, device string) (string, error) {
	size := 0
	for name, attr := range op.GetAttrs() {
		size += len(name) + proto.Size(attr)
	}
	// the key grows by doubling, and is copied
	if size >= minCountedKey && !membudget.Take(4*int64(size)) {
		return "", status.ResourceExhaustedf("There is not enough memory for the attributes of %.256s (--memory-limit).", op.GetName())
	}
	key := append(append(append(make([]byte, 0, 256), op.GetName()...), 0), device...)
	for _, name := range slices.Sorted(maps.Keys(op.GetAttrs())) {
		key = append(append(append(key, 0), name...), 0)
		var err error
		if key, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(key, op.GetAttrs()[name]); err != nil {
			return "", status.InvalidArgumentf("attribute %s of %s cannot be encoded: %v", name, op.GetName(), err)
		}
	}
	return string(key), nil
}

// minCountedKey is the smallest size of the attributes of an operation, in bytes, for which memory
// is asked for. Those of most operations are below 100.
const minCountedKey = 16 << 10

// compile builds the graph of an operation. It reports whether the result can be kept: operations
// that refer to functions depend on the library.
//
// An operation has as many inputs and outputs as an attribute says, so their memory is asked for.
func (c *Context) compile(ctx context.Context, d *kernel.Device, op *pb.Operation) (compiled *compiledOp, keep bool, err error) {
	attrs, err := pbconv.AttrsFromProto(op.GetAttrs())
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	r := c.runtime
	c.mu.Unlock()
	if _, ok := c.service.Kernels.LookupOp(op.GetName()); !ok {
		return nil, false, unknownOp(op.GetName())
	}
	g := graph.New(c.service.Kernels)
	g.Library = c.library
	n, err := g.Add(op.GetName(), op.GetName(), attrs)
	if err != nil {
		return nil, false, err
	}
	release := membudget.AwaitHold(ctx, partition.FootprintOf(1+len(n.InTypes)+len(n.OutTypes)))
	if release == nil {
		return nil, false, status.ResourceExhaustedf("There is not enough memory for the %d inputs and %d outputs of operation %s (--memory-limit).",
			len(n.InTypes), len(n.OutTypes), op.GetName())
	}
	defer release()
	n.Assigned = d.Name
	compiled = &compiledOp{inputs: len(n.InTypes), outputs: len(n.OutTypes), types: n.InTypes}
	for i, t := range n.InTypes {
		arg, err := g.Add("arg_"+itoa(i), "_Arg", opdef.Attrs{"T": t.Base(), "index": int64(i)})
		if err != nil {
			return nil, false, err
		}
		if err := g.Connect(arg.Out(0), n, i); err != nil {
			return nil, false, err
		}
	}
	for i, t := range n.OutTypes {
		ret, err := g.Add("ret_"+itoa(i), "_Retval", opdef.Attrs{"T": t.Base(), "index": int64(i)})
		if err != nil {
			return nil, false, err
		}
		if err := g.Connect(n.Out(i), ret, 0); err != nil {
			return nil, false, err
		}
	}
	compiled.exec, err = r.OnDevice(d.Name).Compile(g)
	keep = true
	for range attrs.Functions() {
		keep = false
	}
	return compiled, keep, err
}

func unknownOp(name string) error {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return status.NotFoundf("'%s' is neither a type of a primitive operation nor a name of a function registered in binary running on %s. "+
		"Make sure the operation or function is registered in the binary running in this process.", name, host)
}
