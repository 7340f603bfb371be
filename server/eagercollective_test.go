package server_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/tensor"
)

// A collective operation that runs alone offers its buffers in step 0, as TensorFlow's tasks
// expect. The test is the other member of the group.
func TestEagerCollectiveBuffers(t *testing.T) {
	s, conn := plainWorker(t)
	c := newEagerClient(t, conn, s.Cluster(), 7)
	c.def.DefaultSessionConfig = &pb.ConfigProto{
		Experimental: &pb.ConfigProto_Experimental{CollectiveGroupLeader: "/job:worker/replica:0/task:0"},
	}
	c.def.Cluster.Job[0].Tasks[1] = "127.0.0.1:1"
	if err := c.create(); err != nil {
		t.Fatal(err)
	}
	scalar := func(v int32) *pb.Operation_Input {
		x := tensor.Scalar(v)
		p, err := pbconv.TensorToProto(&x)
		if err != nil {
			t.Fatal(err)
		}
		return &pb.Operation_Input{Item: &pb.Operation_Input_Tensor{Tensor: p}}
	}
	reduce := c.operation(1, "CollectiveReduceV2", value(t, 1), scalar(2), scalar(1), scalar(10))
	text := func(s string) *pb.AttrValue { return &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(s)}} }
	reduce.GetOperation().Attrs["merge_op"], reduce.GetOperation().Attrs["final_op"] = text("Add"), text("Id")
	reduce.GetOperation().Attrs["Nordering_token"] = &pb.AttrValue{Value: &pb.AttrValue_I{I: 0}}
	ended := make(chan error)
	go func() { ended <- c.enqueue(reduce) }()

	const peer = "/job:worker/replica:0/task:1/device:CPU:0"
	w := rpc.NewWorkerClient(conn, "worker")
	group, err := w.CompleteGroup(t.Context(), &pb.CompleteGroupRequest{
		GroupKey: 1, GroupSize: 2, DeviceType: "CPU",
		DeviceAttributes: &pb.DeviceAttributes{Name: peer, DeviceType: "CPU", Incarnation: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	instance := &pb.CompleteInstanceRequest{
		Name: "CollectiveReduceV2: ReduceV2(Add,Id)", DataType: pb.DataType_DT_FLOAT, Shape: &pb.TensorShapeProto{},
		GroupKey: 1, GroupSize: 2, InstanceKey: 10, DeviceType: "CPU", Device: peer,
	}
	if _, err := w.CompleteInstance(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	buf, err := w.RecvBuf(t.Context(), &pb.RecvBufRequest{
		BufRendezvousKey: "1:10:0:0:0:0:0", NumBytes: 4, SrcDevice: c.device, DstDevice: peer,
		SrcIncarnation: group.GetDeviceAttributes()[0].GetIncarnation(),
	})
	if err != nil || len(buf.GetTransportOptions().GetValue()) == 0 {
		t.Errorf("the buffer of step 0: %v, %v", buf, err)
	}
	if err := c.closeContext(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the operation ended without an error and without its peer")
	}
}
