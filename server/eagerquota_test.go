package server_test

import (
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
)

// The context of a TensorFlow 2 client is a session whose memory is bounded: both what the client
// sends and what operations compute counts until the client drops it.
func TestMemoryOfEagerContexts(t *testing.T) {
	l := server.DefaultLimits()
	l.SessionMemory = 4 << 20
	s, err := server.New(cluster.ServerDef{Cluster: cluster.Spec{"worker": cluster.Dense("127.0.0.1:0")}, Job: "worker"}, server.WithLimits(l))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	c := newEagerClient(t, conn, s.Cluster(), 1)
	if err := c.create(); err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	shape := &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: size / 4}}}
	block := &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, TensorShape: shape, TensorContent: make([]byte, size)}
	send := func(op int64) *pb.QueueItem {
		return &pb.QueueItem{Item: &pb.QueueItem_SendTensor{
			SendTensor: &pb.SendTensorOp{OpId: op, DeviceName: c.device, Tensors: []*pb.TensorProto{block}},
		}}
	}
	grow := func(what string, next func(op int64) *pb.QueueItem) {
		t.Helper()
		var err error
		op := int64(2)
		for ; err == nil && op < 10; op++ {
			err = c.enqueue(next(op))
		}
		wantError(t, what, err, status.ResourceExhausted, "--max-session-memory")
		for held := int64(2); held < op-1; held++ {
			if err := c.enqueue(c.drop(held)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.enqueue(send(1)); err != nil {
		t.Fatal(err)
	}
	grow("values of the client", send)
	grow("values of operations", func(op int64) *pb.QueueItem { return c.operation(op, "Neg", c.input(1)) })
	if err := c.enqueue(c.operation(20, "Neg", c.input(1))); err != nil {
		t.Errorf("after the values were dropped: %v", err)
	}
}
