package server_test

import (
	"context"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const clientDevice = "/job:client/replica:0/task:0/device:CPU:0"

func textAttr(s string) *pb.AttrValue { return &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(s)}} }

func typeAttr(t pb.DataType) *pb.AttrValue { return &pb.AttrValue{Value: &pb.AttrValue_Type{Type: t}} }

// read returns the value behind a handle as clients do: with _Send, and RecvTensor in the step of
// the context.
func (c *eagerClient) read(op int64) float32 {
	c.t.Helper()
	const name = "read"
	w := rpc.NewWorkerClient(c.conn, "worker")
	task, err := w.GetStatus(c.t.Context(), &pb.GetStatusRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	incarnation := task.GetDeviceAttributes()[0].GetIncarnation()
	send := c.operation(0, "_Send", c.input(op))
	attrs := send.GetOperation().Attrs
	attrs["tensor_name"], attrs["send_device"], attrs["recv_device"] = textAttr(name), textAttr(c.device), textAttr(clientDevice)
	attrs["send_device_incarnation"] = &pb.AttrValue{Value: &pb.AttrValue_I{I: int64(incarnation)}}
	attrs["client_terminated"] = &pb.AttrValue{Value: &pb.AttrValue_B{}}
	if err := c.enqueue(send); err != nil {
		c.t.Fatal(err)
	}
	key := kernel.NewKey(c.device, incarnation, clientDevice, name)
	resp, err := w.RecvTensor(c.t.Context(), &message.RecvTensorRequest{
		StepID: int64(c.id), Key: key.At(kernel.FrameIter{}),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Tensor.Release()
	return tensor.Values[float32](&resp.Tensor)[0]
}

// call returns a queue item that calls a function.
func (c *eagerClient) callFunction(id int64, name string, inputs ...*pb.Operation_Input) *pb.QueueItem {
	item := c.operation(id, name, inputs...)
	item.GetOperation().IsFunction, item.GetOperation().Attrs = true, nil
	return item
}

func registerFunction(f *pb.FunctionDef) *pb.QueueItem {
	return &pb.QueueItem{Item: &pb.QueueItem_RegisterFunction{RegisterFunction: &pb.RegisterFunctionOp{FunctionDef: f}}}
}

func floatArg(name string) *pb.OpDef_ArgDef {
	return &pb.OpDef_ArgDef{Name: name, Type: pb.DataType_DT_FLOAT}
}

// A function takes the component of a packed argument that is on the device of its node.
func TestPackedHandle(t *testing.T) {
	s, conn := plainWorker(t)
	c := newEagerClient(t, conn, s.Cluster(), 7)
	if err := c.create(); err != nil {
		t.Fatal(err)
	}
	const composite = "/job:client/replica:0/task:0/device:COMPOSITE:0"
	double := &pb.FunctionDef{
		Signature: &pb.OpDef{Name: "Double", InputArg: []*pb.OpDef_ArgDef{floatArg("x")}, OutputArg: []*pb.OpDef_ArgDef{floatArg("y")}},
		NodeDef: []*pb.NodeDef{{
			Name: "sum", Op: "AddV2", Input: []string{"x", "x"}, Attr: map[string]*pb.AttrValue{"T": typeAttr(pb.DataType_DT_FLOAT)},
		}},
		Ret: map[string]string{"y": "sum:z:0"},
	}
	component := &pb.RemoteTensorHandle{OpId: 1, Device: c.device, OpDevice: c.device}
	pack := func(id int64, device string) *pb.QueueItem {
		return &pb.QueueItem{Item: &pb.QueueItem_SendPackedHandle{SendPackedHandle: &pb.SendPackedHandleOp{
			OpId: id, DeviceName: composite, Handles: []*pb.SendPackedHandleOp_Handle{
				{Item: &pb.SendPackedHandleOp_Handle_LocalHandle{LocalHandle: &pb.SendPackedHandleOp_LocalTensorHandle{
					Tensor: value(t, 5).GetTensor(), Device: device,
				}}},
				{Item: &pb.SendPackedHandleOp_Handle_RemoteHandle{RemoteHandle: component}},
			},
		}}}
	}
	packed := func(id int64) *pb.Operation_Input {
		h := &pb.RemoteTensorHandle{OpId: id, Device: c.device, OpDevice: composite}
		return &pb.Operation_Input{Item: &pb.Operation_Input_RemoteHandle{RemoteHandle: h}}
	}
	err := c.enqueue(registerFunction(double), c.operation(1, "AddV2", value(t, 1), value(t, 2)), pack(2, clientDevice),
		c.callFunction(3, "Double", packed(2)), c.callFunction(4, "Double", packed(2)))
	if err != nil {
		t.Fatal(err)
	}
	for id := int64(3); id <= 4; id++ {
		if got := c.read(id); got != 6 {
			t.Errorf("call %d: got %v, want twice the 3 of this device", id, got)
		}
	}
	component = &pb.RemoteTensorHandle{OpId: 1, Device: clientDevice, OpDevice: clientDevice}
	wantError(t, "a component of an unknown task", c.enqueue(pack(5, clientDevice)), status.InvalidArgument, "unknown device")
	component = &pb.RemoteTensorHandle{OpId: 99, Device: c.device, OpDevice: c.device}
	wantError(t, "a component that does not exist", c.enqueue(pack(5, clientDevice)), status.InvalidArgument, "Unable to find")
	wantError(t, "a packed input of an operation", c.enqueue(c.operation(6, "AddV2", packed(2), value(t, 1))), status.InvalidArgument, "")
}

// The operation timeout of a context ends parts of functions on other tasks.
func TestEagerOperationTimeout(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cl.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	conns := make([]*eagerClient, 2)
	for i := range conns {
		s := cl.Server("worker", i)
		conn, err := rpc.Dial(s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = newEagerClient(t, conn, s.Cluster(), 7)
		conns[i].def.TaskIndex = int32(i)
		conns[i].def.DefaultSessionConfig = &pb.ConfigProto{OperationTimeoutInMs: 50}
		if err := conns[i].create(); err != nil {
			t.Fatal(err)
		}
	}
	const other = "/job:worker/task:1"
	types := &pb.AttrValue{Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{Type: []pb.DataType{pb.DataType_DT_FLOAT}}}}
	wait := &pb.FunctionDef{
		Signature: &pb.OpDef{Name: "Wait", OutputArg: []*pb.OpDef_ArgDef{floatArg("y")}, IsStateful: true},
		NodeDef: []*pb.NodeDef{
			{Name: "queue", Op: "FIFOQueueV2", Device: other, Attr: map[string]*pb.AttrValue{"component_types": types}},
			{Name: "take", Op: "QueueDequeueV2", Input: []string{"queue:handle:0"}, Device: other, Attr: map[string]*pb.AttrValue{"component_types": types}},
		},
		Ret: map[string]string{"y": "take:components:0"},
	}
	err = conns[0].enqueue(registerFunction(wait), conns[0].callFunction(1, "Wait"))
	wantError(t, "a queue that stays empty", err, status.DeadlineExceeded, "Deadline Exceeded")
}
