package eager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Enqueue executes items in order and returns when all are done. The first error ends it.
func (s *Service) Enqueue(ctx context.Context, req *pb.EnqueueRequest) (*pb.EnqueueResponse, error) {
	c, err := s.find(ctx, req.GetContextId())
	if err != nil {
		return nil, err
	}
	resp := &pb.EnqueueResponse{QueueResponse: make([]*pb.QueueResponse, 0, len(req.GetQueue()))}
	for _, item := range req.GetQueue() {
		if ctx.Err() != nil {
			return nil, status.FromContext(ctx, "executing the items of a request")
		}
		r, err := c.execute(ctx, item)
		if err != nil {
			return nil, err
		}
		resp.QueueResponse = append(resp.QueueResponse, r)
	}
	return resp, nil
}

// StreamingEnqueue executes the requests of a stream in order and sends a response for each. next
// returns io.EOF after the last request. An error ends the stream, but not its context.
func (s *Service) StreamingEnqueue(
	ctx context.Context, next func() (*pb.EnqueueRequest, error), send func(*pb.EnqueueResponse) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(status.Unavailablef("The task is shutting down.")) })()
	for {
		req, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		resp, err := s.Enqueue(ctx, req)
		if err != nil {
			return err
		}
		if err := send(resp); err != nil {
			return err
		}
	}
}

// execute executes one item.
func (c *Context) execute(ctx context.Context, item *pb.QueueItem) (*pb.QueueResponse, error) {
	none := &pb.QueueResponse{}
	switch item := item.GetItem().(type) {
	case *pb.QueueItem_Operation:
		return c.operation(ctx, item.Operation)
	case *pb.QueueItem_HandleToDecref:
		return none, c.drop(item.HandleToDecref)
	case *pb.QueueItem_SendTensor:
		return none, c.sendTensor(item.SendTensor)
	case *pb.QueueItem_RegisterFunction:
		return none, c.register(item.RegisterFunction)
	case *pb.QueueItem_RemoveFunction:
		return none, c.removeFunction(item.RemoveFunction.GetFunctionName())
	case *pb.QueueItem_CleanupFunction:
		c.scope.Cleanup(item.CleanupFunction.GetStepId())
		return none, nil
	case *pb.QueueItem_SyncRemoteExecutorForStream:
		return none, nil // the items before it are done
	case *pb.QueueItem_SendPackedHandle:
		return none, c.sendPackedHandle(item.SendPackedHandle)
	}
	return nil, status.Unimplementedf("an item of EnqueueRequest has an unknown kind")
}

// sendTensor keeps values that the client has sent.
func (c *Context) sendTensor(p *pb.SendTensorOp) error {
	if _, err := c.device(p.GetDeviceName()); err != nil {
		return err
	}
	values := make([]tensor.Tensor, 0, len(p.GetTensors()))
	for _, t := range p.GetTensors() {
		v, err := pbconv.TensorFromProto(t)
		if err == nil && hasForeignDataset(&v) {
			v.Release()
			err = status.InvalidArgumentf("Unable to parse tensor proto")
		}
		if err == nil {
			err = resource.Charge(c.scope.Account(), &v)
		}
		if err != nil {
			release(values)
			return err
		}
		values = append(values, v)
	}
	return c.store(p.GetOpId(), nil, values)
}

// hasForeignDataset reports whether a tensor holds a dataset of another process. TensorFlow's
// clients send such a value without its content, and expect that it is refused.
func hasForeignDataset(t *tensor.Tensor) bool {
	if t.DType() != tensor.Variant {
		return false
	}
	return slices.ContainsFunc(tensor.Values[tensor.VariantValue](t), func(v tensor.VariantValue) bool {
		encoded, ok := v.Value.(tensor.EncodedVariant)
		return ok && encoded.TypeName == "tensorflow::DatasetVariantWrapper"
	})
}

// maxComponents bounds the components of a packed handle, which are one for each of several
// devices. Each input that names the handle has them all.
const maxComponents = 4096

// sendPackedHandle makes one handle of several.
func (c *Context) sendPackedHandle(p *pb.SendPackedHandleOp) error {
	n := len(p.GetHandles())
	if n > maxComponents {
		return status.ResourceExhaustedf("the packed handle %d has %d components, at most %d are allowed", p.GetOpId(), n, maxComponents)
	}
	if !membudget.TakeRecord(handleMemory + packedMemory(n)) {
		return noRoomForPacked(n, p.GetOpId())
	}
	var parts []argument
	for _, h := range p.GetHandles() {
		var arg argument
		var err error
		switch {
		case h.GetLocalHandle() != nil:
			arg.value, err = pbconv.TensorFromProto(h.GetLocalHandle().GetTensor())
			if err == nil {
				err = resource.Charge(c.scope.Account(), &arg.value)
			}
			arg.device = canonical(h.GetLocalHandle().GetDevice())
		case h.GetRemoteHandle() != nil:
			arg, err = c.byHandle(h.GetRemoteHandle())
			if arg.device == "" { // the value is on this task
				arg.device = canonical(h.GetRemoteHandle().GetDevice())
			}
		default:
			err = status.InvalidArgumentf("a component of a packed handle has no value")
		}
		if err == nil && arg.packed != nil {
			err = status.InvalidArgumentf("a component of the packed handle %d is a packed handle", p.GetOpId())
		}
		if err != nil {
			releaseArguments(append(parts, arg))
			return err
		}
		parts = append(parts, arg)
	}
	if len(parts) == 0 {
		return status.InvalidArgumentf("a packed handle has no components")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		releaseArguments(parts)
		return status.Abortedf("the context %d was closed", c.id)
	}
	id := handleID{p.GetOpId(), 0}
	if old := c.handles[id]; old != nil {
		old.release()
	}
	c.handles[id] = &handle{packed: parts}
	return nil
}

// register adds a function to the library of the context, or a part of a function that another
// task runs, with a library of its own.
func (c *Context) register(p *pb.RegisterFunctionOp) error {
	// it stays until its client removes it
	size := proto.Size(p.GetFunctionDef()) + definedNode*(1+len(p.GetFunctionDef().GetNodeDef()))
	if !membudget.TakeRecord(int64(size)) {
		return noRoomForFunction(p.GetFunctionDef().GetSignature().GetName())
	}
	library := &pb.FunctionDefLibrary{Function: []*pb.FunctionDef{p.GetFunctionDef()}}
	if p.GetIsComponentFunction() {
		library.Function = append(library.Function, p.GetLibrary().GetFunction()...)
		library.Gradient = p.GetLibrary().GetGradient()
	}
	def, err := pbconv.GraphFromProto(&pb.GraphDef{Library: library})
	if err != nil {
		return err
	}
	name := p.GetFunctionDef().GetSignature().GetName()
	if p.GetIsComponentFunction() {
		return c.addComponent(name, def, p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.library.Add(def.Library, def.Gradient, c.service.Kernels); err != nil {
		return err
	}
	c.registered[name]++
	return nil
}

// definedNode is about the memory of a node in the definition of a function without its texts, in
// bytes.
const definedNode = 512

func noRoomForFunction(name string) error {
	return status.ResourceExhaustedf("There is not enough memory for the function %.256s (--memory-limit).", name)
}

// componentMemory is about the memory of a part of a function without its nodes: its library and
// runtime, in bytes.
const componentMemory = 4 << 10

func (c *Context) addComponent(name string, def *graph.Def, p *pb.RegisterFunctionOp) error {
	// the definition stays as a message and as a library
	if !membudget.TakeRecord(componentMemory + 2*int64(proto.Size(p))) {
		return noRoomForFunction(name)
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return status.Internalf("function %s cannot be encoded: %v", name, err)
	}
	restoreNames(def.Library, c.service.Kernels)
	lib := graph.New(c.service.Kernels).Library
	if err := lib.Add(def.Library, def.Gradient, c.service.Kernels); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.components[name]; ok {
		if bytes.Equal(old.text, text) {
			return nil
		}
		return status.InvalidArgumentf("Cannot add function '%s' because a different function with the same name already exists.", name)
	}
	if c.closed {
		return status.Abortedf("the context %d was closed", c.id)
	}
	r := c.newRuntime(lib)
	c.others = append(c.others, r)
	c.components[name] = component{r, text}
	return nil
}

// removeFunction ends one registration of a function. The last one removes it. Instances that run
// are not affected.
func (c *Context) removeFunction(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.registered[name] {
	case 0:
		return status.InvalidArgumentf("Tried to remove non-existent function '%s'.", name)
	case 1:
		delete(c.registered, name)
		c.library.Remove(name)
		c.ops.clear() // operations may refer to the function
		for key, p := range c.plans {
			if p.name == name {
				delete(c.plans, key)
			}
		}
	default:
		c.registered[name]--
	}
	return nil
}
