package eager

import (
	"context"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// What a context keeps for its client is refused when there is no memory for it.
func TestNoMemoryForRecords(t *testing.T) {
	c := &Context{handles: map[handleID]*handle{}, components: map[string]component{}}
	membudget.SetLimit(1 << 20)
	defer membudget.SetLimit(0)
	large := make([]byte, 256<<10)
	for name, keep := range map[string]func() error{
		"handles": func() error { return c.store(1, nil, make([]tensor.Tensor, 2000)) },
		"a packed handle": func() error {
			return c.sendPackedHandle(&pb.SendPackedHandleOp{OpId: 1, Handles: make([]*pb.SendPackedHandleOp_Handle, maxComponents)})
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
