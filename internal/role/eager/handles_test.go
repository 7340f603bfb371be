package eager

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// What a context keeps for its client is refused when there is no memory for it.
func TestNoMemoryForRecords(t *testing.T) {
	c := &Context{handles: map[handleID]*handle{}, components: map[string]component{}}
	kernel.Register(kernel.Op{Def: opdef.Def{
		Name: "ManyOutputs", Doc: "-", Out: []string{"outputs: num * float32"}, Attrs: []string{"num: int"}, Shape: opdef.UnknownShape,
	}})
	membudget.SetLimit(1 << 20)
	defer membudget.SetLimit(0)
	large := make([]byte, 256<<10)
	// many arguments with the device of one handle
	h := tensor.Scalar(&tensor.Handle{Device: string(large)})
	many := &call{op: &pb.Operation{Name: "F"}, device: &kernel.Device{}, args: slices.Repeat([]argument{{value: h}}, 100)}
	packed := &call{op: &pb.Operation{Name: "F"}, device: &kernel.Device{}, args: slices.Repeat([]argument{{packed: []argument{{device: string(large)}}}}, 100)}
	for name, keep := range map[string]func() error{
		"handles": func() error { return c.store(1, nil, make([]tensor.Tensor, 2000)) },
		"a packed handle": func() error {
			return c.sendPackedHandle(&pb.SendPackedHandleOp{OpId: 1, Handles: make([]*pb.SendPackedHandleOp_Handle, maxComponents)})
		},
		"a function": func() error {
			return c.register(&pb.RegisterFunctionOp{FunctionDef: &pb.FunctionDef{Signature: &pb.OpDef{Name: "F"}, NodeDef: make([]*pb.NodeDef, 1000)}})
		},
		"the devices of arguments": func() error {
			_, _, _, err := many.argumentDevices()
			return err
		},
		"the devices of components": func() error {
			_, _, _, err := packed.argumentDevices()
			return err
		},
		"the key of an operation": func() error {
			_, err := cacheKey(&pb.Operation{Name: "Const", Attrs: map[string]*pb.AttrValue{"s": {Value: &pb.AttrValue_S{S: large}}}}, "CPU:0")
			return err
		},
		"an operation with many outputs": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // it does not wait for memory
			s := &Context{service: &Service{Config: Config{Kernels: kernel.Default}}, library: new(graph.Library)}
			_, _, err := s.compile(ctx, &kernel.Device{}, &pb.Operation{Name: "ManyOutputs", Attrs: map[string]*pb.AttrValue{
				"num": {Value: &pb.AttrValue_I{I: 1 << 20}},
			}})
			return err
		},
		"a part of a function": func() error {
			return c.register(&pb.RegisterFunctionOp{IsComponentFunction: true, FunctionDef: &pb.FunctionDef{
				Signature: &pb.OpDef{Name: "F", Description: string(large)},
			}})
		},
	} {
		if err := keep(); status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(c.handles)+len(c.components) > 0 {
		t.Errorf("%d handles and %d functions were kept", len(c.handles), len(c.components))
	}
}

// The components of a packed handle have one value each: those of a handle within another one would
// be released by each of its users.
func TestPackedHandleWithinAnother(t *testing.T) {
	c := &Context{handles: map[handleID]*handle{}}
	if err := c.store(1, nil, []tensor.Tensor{tensor.Scalar[float32](1)}); err != nil {
		t.Fatal(err)
	}
	pack := func(id, of int64) error {
		h := &pb.SendPackedHandleOp_Handle{Item: &pb.SendPackedHandleOp_Handle_RemoteHandle{RemoteHandle: &pb.RemoteTensorHandle{OpId: of}}}
		return c.sendPackedHandle(&pb.SendPackedHandleOp{OpId: id, Handles: []*pb.SendPackedHandleOp_Handle{h}})
	}
	if err := pack(2, 1); err != nil {
		t.Fatal(err)
	}
	if err := pack(3, 2); status.CodeOf(err) != status.InvalidArgument || len(c.handles) != 2 {
		t.Errorf("got %v, and %d handles", err, len(c.handles))
	}
}

// A request whose deadline has passed executes no further items.
func TestItemsAfterTheDeadline(t *testing.T) {
	s := &Service{Config: Config{Now: time.Now}}
	s.contexts = map[uint64]*Context{7: {service: s, handles: map[handleID]*handle{}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := &pb.EnqueueRequest{ContextId: 7, Queue: []*pb.QueueItem{{Item: &pb.QueueItem_SyncRemoteExecutorForStream{}}}}
	if _, err := s.Enqueue(ctx, req); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
}
