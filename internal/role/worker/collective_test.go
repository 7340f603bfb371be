package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// joinGroup joins a device to group 1, which has two members.
func (f *fixture) joinGroup(name string, incarnation uint64) (*pb.CompleteGroupResponse, error) {
	return f.CompleteGroup(f.t.Context(), &pb.CompleteGroupRequest{
		GroupKey: 1, GroupSize: 2, DeviceType: "CPU",
		DeviceAttributes: &pb.DeviceAttributes{Name: name, DeviceType: "CPU", Incarnation: incarnation},
	})
}

func TestCompleteGroup(t *testing.T) {
	f := newFixture(t)
	_, err := f.CompleteGroup(t.Context(), &pb.CompleteGroupRequest{GroupKey: 1, GroupSize: 2})
	expect(t, err, status.Internal, "CompleteGroupRequest device_attributes is not set.")
	_, err = f.joinGroup("garbage", 1)
	expect(t, err, status.InvalidArgument)

	var wg sync.WaitGroup
	for _, d := range []struct {
		name        string
		incarnation uint64
	}{{peer, 2}, {cpu, 1}} {
		wg.Go(func() {
			resp, err := f.joinGroup(d.name, d.incarnation)
			if err != nil {
				t.Error(err)
				return
			}
			var got []string
			for _, m := range resp.DeviceAttributes {
				got = append(got, m.Name)
			}
			if !slices.Equal(got, []string{cpu, peer}) || resp.NumTasks != 2 || resp.GroupSize != 2 || resp.DeviceType != "CPU" {
				t.Errorf("%s gets %v", d.name, resp)
			}
		})
	}
	wg.Wait()
	_, err = f.joinGroup("/job:worker/replica:0/task:7/device:CPU:0", 3)
	expect(t, err, status.Internal, "is joining a group that is already full (group_key=1)")
	if resp, err := f.joinGroup(peer, 2); err != nil || len(resp.DeviceAttributes) != 2 {
		t.Errorf("a member that joins again gets %v, %v", resp, err)
	}
	_, err = f.joinGroup(peer, 4)
	expect(t, err, status.FailedPrecondition, "current incarnation doesn't match with one in the group.")
}

// All members of a large group get one description: as many as there are members would take seconds
// and gigabytes.
func TestLargeGroup(t *testing.T) {
	f := newFixture(t)
	const members = 1024
	got := make([]*pb.CompleteGroupResponse, members)
	var wg sync.WaitGroup
	for i := range members {
		wg.Go(func() {
			name := fmt.Sprintf("/job:worker/replica:0/task:%d/device:CPU:0", i)
			var err error
			got[i], err = f.CompleteGroup(t.Context(), &pb.CompleteGroupRequest{
				GroupKey: 1, GroupSize: members, DeviceType: "CPU", DeviceAttributes: &pb.DeviceAttributes{Name: name, DeviceType: "CPU"},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, resp := range got {
		if len(resp.GetDeviceAttributes()) != members || resp.DeviceAttributes[i] != got[0].DeviceAttributes[i] || resp.NumTasks != members {
			t.Fatalf("member %d has a description of its own, of %d members", i, len(resp.GetDeviceAttributes()))
		}
	}
}

func TestCompleteInstance(t *testing.T) {
	f := newFixture(t)
	in := &pb.CompleteInstanceRequest{
		Name: "n", DataType: pb.DataType_DT_FLOAT, GroupKey: 1, GroupSize: 2, InstanceKey: 5, DeviceType: "CPU", Device: cpu,
		Shape: &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: 2}}},
	}
	_, err := f.CompleteInstance(t.Context(), in)
	expect(t, err, status.FailedPrecondition, "group 1 not found. This normally means the server has restarted")

	var wg sync.WaitGroup
	for i, name := range []string{cpu, peer} {
		wg.Go(func() {
			if _, err := f.joinGroup(name, uint64(i+1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	resp, err := f.CompleteInstance(t.Context(), in)
	if err != nil || resp.InstanceKey != 5 || resp.SourceRank != -1 {
		t.Errorf("got %v, %v", resp, err)
	}
	for _, tt := range []struct {
		change func(*pb.CompleteInstanceRequest)
		code   status.Code
		want   string
	}{
		{func(in *pb.CompleteInstanceRequest) { in.Shape.Dim[0].Size = 3 }, status.InvalidArgument, "Shape mismatch in the collective instance 5."},
		{func(in *pb.CompleteInstanceRequest) { in.DataType = pb.DataType_DT_INT32 }, status.Internal, "Collective instance 5 expected type 0"},
		{func(in *pb.CompleteInstanceRequest) { in.Shape.Dim[0].Size = -3 }, status.InvalidArgument, ""},
		{func(in *pb.CompleteInstanceRequest) { in.Device = "/job:other" }, status.FailedPrecondition, "is not a member of collective group 1"},
	} {
		other := proto.CloneOf(in)
		tt.change(other)
		_, err := f.CompleteInstance(t.Context(), other)
		expect(t, err, tt.code, tt.want)
	}
}

func TestGetStepSequence(t *testing.T) {
	f := newFixture(t)
	req := &pb.GetStepSequenceRequest{GraphKey: []int64{7, 8}}
	resp, err := f.GetStepSequence(t.Context(), req)
	if err != nil || len(resp.StepSequence) != 2 || resp.StepSequence[0].GraphKey != 7 || resp.StepSequence[1].NextStepId>>57 != 0 {
		t.Fatalf("got %v, %v", resp, err)
	}
	again, err := f.GetStepSequence(t.Context(), req)
	if err != nil || !proto.Equal(resp, again) {
		t.Errorf("got %v, then %v, %v", resp, again, err)
	}
	f = newFixtureOf(t, &pb.ConfigProto{Experimental: &pb.ConfigProto_Experimental{CollectiveGroupLeader: "/job:worker/replica:0/task:1"}})
	_, err = f.GetStepSequence(t.Context(), req)
	expect(t, err, status.Internal, "GetStepSequenceAsync called at non-group-leader")
}

func TestRecvBufChecksItsDevice(t *testing.T) {
	f := newFixture(t)
	req := &pb.RecvBufRequest{StepId: 1, BufRendezvousKey: "k", SrcDevice: cpu, SrcIncarnation: f.device.Incarnation + 1, RequestId: 9}
	_, err := f.RecvBuf(t.Context(), req)
	expect(t, err, status.FailedPrecondition, "RecvBuf expects a different device incarnation")
	_, err = f.RecvBuf(t.Context(), req)
	expect(t, err, status.Aborted, "The same RecvBuf (GrpcWorker) request was received twice.")
	req.RequestId, req.SrcDevice = 0, "/job:worker/replica:0/task:0/device:CPU:9"
	_, err = f.RecvBuf(t.Context(), req)
	expect(t, err, status.InvalidArgument, "unknown device.")
}

// TestRecvBufTakesNoTensor requests a tensor of the step by its key, as if it were a buffer.
func TestRecvBufTakesNoTensor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.session("s")
		g := f.register("s", sendSum)
		if _, err := f.run(f.request(g, 1, map[string]float32{"x": 1})); err != nil {
			t.Fatal(err)
		}
		key := f.transfer(cpu, peer, "z")
		refused := make(chan error)
		go func() {
			_, err := f.RecvBuf(t.Context(), &pb.RecvBufRequest{
				StepId: 1, BufRendezvousKey: key, SrcDevice: cpu, SrcIncarnation: f.device.Incarnation,
			})
			refused <- err
		}()
		synctest.Wait()
		if v, err := f.recv(t.Context(), 1, key); err != nil || v != 2 {
			t.Errorf("got %v, %v; want 2", v, err)
		}
		if _, err := f.CleanupGraph(t.Context(), &pb.CleanupGraphRequest{StepId: 1}); err != nil {
			t.Fatal(err)
		}
		expect(t, <-refused, status.Aborted, "The step was cleaned up.")
	})
}

// TestGraphsWithoutAKeyHaveNoCollectives runs a collective operation that the master has not
// announced.
func TestGraphsWithoutAKeyHaveNoCollectives(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	for key, code := range map[int64]status.Code{0: status.Internal, 1: status.OK} {
		def := f.graph("c = Const() value=float[]{3}\n" +
			`y = CollectiveReduce(c) T=float group_size=1 group_key=1 instance_key=1 merge_op="Add" final_op="Id" subdiv_offsets=[0]`)
		resp, err := f.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{
			SessionHandle: "s", CreateWorkerSessionCalled: true, GraphDef: def, CollectiveGraphKey: key,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.run(f.request(resp.GetGraphHandle(), key+1, nil)); code == status.OK {
			expect(t, err, code)
			continue
		}
		expect(t, err, code, "Failed to get CollectiveExecutor from OpKernelContext for Op y")
	}
}

// TestResponsesAreKeptUntilAcknowledged repeats requests for a tensor, like a transport that has
// lost a connection.
func TestResponsesAreKeptUntilAcknowledged(t *testing.T) {
	f := newFixtureOf(t, &pb.ConfigProto{RpcOptions: &pb.RPCOptions{CacheRpcResponse: true}})
	f.session("s")
	g := f.register("s", sendSum)
	key := f.transfer(cpu, peer, "z")
	for _, end := range []struct {
		what string
		call func() error
	}{
		{"MarkRecvFinished", func() error {
			_, err := f.MarkRecvFinished(t.Context(), &pb.MarkRecvFinishedRequest{RequestId: 101})
			return err
		}},
		{"CleanupGraph", func() error {
			_, err := f.CleanupGraph(t.Context(), &pb.CleanupGraphRequest{StepId: 2})
			return err
		}},
	} {
		step := map[string]int64{"MarkRecvFinished": 1, "CleanupGraph": 2}[end.what]
		if _, err := f.run(f.request(g, step, map[string]float32{"x": 1})); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			resp, err := f.RecvTensor(t.Context(), &message.RecvTensorRequest{StepID: step, Key: key, RequestID: 100 + step})
			if err != nil || !resp.RequireAck || tensor.Value[float32](&resp.Tensor) != 2 {
				t.Fatalf("%s: got %v, %v", end.what, resp, err)
			}
			resp.Tensor.Release()
		}
		if err := end.call(); err != nil {
			t.Fatal(err)
		}
		_, err := f.RecvTensor(t.Context(), &message.RecvTensorRequest{StepID: step, Key: key, RequestID: 100 + step})
		expect(t, err, status.Aborted, "The same RecvTensor (GrpcWorker) request was received twice.")
	}
}

// TestReceiversAcknowledge runs a step over two tasks that keep their responses.
func TestReceiversAcknowledge(t *testing.T) {
	c := testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"worker": 2}, SessionDefaults: &pb.ConfigProto{RpcOptions: &pb.RPCOptions{CacheRpcResponse: true}},
	})
	s, err := c.Session(t.Context(), c.Node("worker", 0), "a = Const() value=float[]{2} device=/job:worker/task:1\nb = Identity(a) device=/job:worker/task:1\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	marked := make(chan struct{}, 1)
	c.Intercept(func(_ context.Context, call testcluster.Call) error {
		if call.Method == "MarkRecvFinished" {
			marked <- struct{}{}
		}
		return nil
	})
	if got, err := s.Run(t.Context(), nil, []string{"b:0"}); err != nil || got[0] != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	<-marked
}
