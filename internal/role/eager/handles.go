package eager

import (
	"strings"
	"unsafe"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// handleID names an output of an operation of the client.
type handleID struct {
	op     int64
	output int32
}

// handle is the value behind a name.
type handle struct {
	value tensor.Tensor
	// components of a packed handle, one for each device; nil for others
	packed []argument
}

func (h *handle) release() {
	h.value.Release()
	for i := range h.packed {
		h.packed[i].value.Release()
	}
}

// handleMemory is about the memory of a handle with its entry in the map, in bytes.
const handleMemory = 256

// argument is an input of an operation: a value on this task, or a handle of another task.
type argument struct {
	value  tensor.Tensor
	remote *pb.RemoteTensorHandle // nil for a value on this task
	device string                 // where a remote value is, or the device of a component
	packed []argument             // components of a packed handle
}

// packedMemory returns the memory of n components of a packed handle in bytes.
func packedMemory(n int) int64 { return int64(n) * int64(unsafe.Sizeof(argument{})) }

func noRoomForPacked(n int, op int64) error {
	return status.ResourceExhaustedf("There is not enough memory for the %d components of the packed handle %d (--memory-limit).", n, op)
}

func releaseArguments(args []argument) {
	for i := range args {
		args[i].value.Release()
		releaseArguments(args[i].packed)
	}
}

// store keeps values under the names (op, outputs[i]). It takes over their references. A value
// that has the name already is released.
func (c *Context) store(op int64, outputs []int32, values []tensor.Tensor) error {
	if n := len(values); n > 0 && !membudget.TakeRecord(int64(n)*handleMemory) {
		release(values)
		return status.ResourceExhaustedf("There is not enough memory for the %d handles of operation %d (--memory-limit).", n, op)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		release(values)
		return status.Abortedf("Unable to find a context_id matching the specified one (%d). Perhaps the worker was restarted, "+
			"or the context was GC'd?", c.id)
	}
	for i, v := range values {
		id := handleID{op, int32(i)}
		if outputs != nil {
			id.output = outputs[i]
		}
		if old := c.handles[id]; old != nil {
			old.release()
		}
		c.handles[id] = &handle{value: v}
	}
	return nil
}

// drop forgets a handle.
func (c *Context) drop(p *pb.RemoteTensorHandle) error {
	id := handleID{p.GetOpId(), p.GetOutputNum()}
	c.mu.Lock()
	h := c.handles[id]
	delete(c.handles, id)
	c.mu.Unlock()
	if h == nil {
		return status.InvalidArgumentf("Unable to find the relevant tensor remote_handle: Op ID: %d, Output num: %d", id.op, id.output)
	}
	h.release()
	return nil
}

// argument returns an input of an operation. The caller must release its value.
func (c *Context) argument(p *pb.Operation_Input) (argument, error) {
	if t := p.GetTensor(); t != nil {
		value, err := pbconv.TensorFromProto(t)
		return argument{value: value}, err
	}
	h := p.GetRemoteHandle()
	if h == nil {
		return argument{}, status.InvalidArgumentf("an input of an operation is neither a tensor nor a handle")
	}
	return c.byHandle(h)
}

func (c *Context) byHandle(h *pb.RemoteTensorHandle) (argument, error) {
	id := handleID{h.GetOpId(), h.GetOutputNum()}
	if c.isLocal(h.GetDevice()) || c.isLocal(h.GetOpDevice()) || h.GetDevice()+h.GetOpDevice() == "" {
		return c.localArgument(id)
	}
	at := h.GetOpDevice()
	if at == "" || isComposite(at) {
		at = h.GetDevice()
	}
	at = canonical(at)
	if isComposite(at) {
		return c.localArgument(id)
	}
	if _, ok := c.scope.Remote()[at]; !ok {
		return argument{}, status.InvalidArgumentf("%s unknown device.", at)
	}
	return argument{remote: h, device: at}, nil
}

func (c *Context) localArgument(id handleID) (argument, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.handles[id]
	if found == nil {
		return argument{}, status.InvalidArgumentf("Unable to find the relevant tensor remote_handle: Op ID: %d, Output num: %d. "+
			"One possible cause is that the tensor was accessed after deallocation in a distributed worker setup. Try setting "+
			"`os.environ['TF_ENABLE_EAGER_CLIENT_STREAMING_ENQUEUE']='False'` in your client to disable async streaming behavior to see "+
			"if it fixes the problem.", id.op, id.output)
	}
	if n := len(found.packed); n > 0 && !membudget.Take(packedMemory(n)) {
		return argument{}, noRoomForPacked(n, id.op)
	}
	out := argument{value: found.value.Retain()}
	for _, p := range found.packed {
		p.value = p.value.Retain()
		out.packed = append(out.packed, p)
	}
	return out, nil
}

// isLocal reports whether a device is on this task.
func (c *Context) isLocal(name string) bool {
	return strings.HasPrefix(name, c.prefix) || name != "" && strings.HasPrefix(canonical(name), c.prefix)
}

// isComposite reports whether a name is that of a device that stands for several.
func isComposite(name string) bool { return strings.Contains(name, "/device:COMPOSITE:") }

// canonical returns the full form of a device name, or the name itself if it has none.
func canonical(name string) string {
	spec, err := device.Parse(name)
	if err != nil {
		return name
	}
	return spec.String()
}
