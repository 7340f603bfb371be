package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
)

// FuzzSequence calls the methods of a worker in any order, with few handles, steps and keys. No
// call may panic or hang, and the end of all sessions leaves no step.
func FuzzSequence(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0, 3, 0, 5, 0, 1, 0})
	f.Add([]byte{3, 1, 4, 1, 5, 1, 0, 1, 2, 1, 3, 1, 3, 1, 6, 0})
	f.Add([]byte{0, 0, 2, 0, 4, 0, 1, 0, 3, 0, 7, 0})
	f.Fuzz(func(t *testing.T, calls []byte) {
		w := newFixture(t)
		for ; len(calls) >= 2; calls = calls[2:] {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			err := w.call(ctx, calls[0]%8, calls[1])
			if status.CodeOf(err) == status.Internal {
				t.Errorf("call %d: %v", calls[0]%8, err)
			}
			cancel()
		}
		for _, s := range []string{"a", "b"} {
			if _, err := w.DeleteWorkerSession(t.Context(), &pb.DeleteWorkerSessionRequest{SessionHandle: s}); err != nil {
				t.Error(err)
			}
		}
		if n := w.NumSessions(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// call calls one method. arg chooses the session, the graph, the step and the key.
func (f *fixture) call(ctx context.Context, method, arg byte) (err error) {
	session := []string{"a", "b"}[arg&1]
	graph := []string{"0000000000000001", "0000000000000002", "x", ""}[arg>>1&3]
	step := int64(arg >> 3 & 3)
	switch method {
	case 0:
		_, err = f.CreateWorkerSession(ctx, &pb.CreateWorkerSessionRequest{SessionHandle: session, IsolateSessionState: arg>>5&1 == 1})
	case 1:
		_, err = f.DeleteWorkerSession(ctx, &pb.DeleteWorkerSessionRequest{SessionHandle: session})
	case 2:
		text := []string{addOne, "recv x\nsend y x", "v = TestVar()\nfetch y v"}[int(arg>>5)%3]
		_, err = f.RegisterGraph(ctx, &pb.RegisterGraphRequest{SessionHandle: session, CreateWorkerSessionCalled: true, GraphDef: f.graph(text)})
	case 3:
		req := f.request(graph, step, map[string]float32{"x": 1}, "y")
		req.Session = session
		var resp *message.RunGraphResponse
		if resp, err = f.RunGraph(ctx, req); err == nil {
			for i := range resp.Recv {
				resp.Recv[i].Tensor.Release()
			}
		}
	case 4:
		var resp *message.RecvTensorResponse
		if resp, err = f.RecvTensor(ctx, &message.RecvTensorRequest{StepID: step, Key: f.transfer(cpu, peer, "y")}); err == nil {
			resp.Tensor.Release()
		}
	case 5:
		_, err = f.CleanupGraph(ctx, &pb.CleanupGraphRequest{StepId: step})
	case 6:
		_, err = f.CleanupAll(ctx, &pb.CleanupAllRequest{})
	case 7:
		_, err = f.DeregisterGraph(ctx, &pb.DeregisterGraphRequest{SessionHandle: session, CreateWorkerSessionCalled: true, GraphHandle: graph})
	}
	return err
}
