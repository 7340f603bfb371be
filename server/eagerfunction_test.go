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

// twoWorkers returns clients of both tasks of a cluster, with a context on each.
func twoWorkers(t *testing.T, config *pb.ConfigProto) []*eagerClient {
	t.Helper()
	cl, err := server.StartCluster(map[string]int{"worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	clients := make([]*eagerClient, 2)
	var devices []*pb.DeviceAttributes
	for i := range clients {
		s := cl.Server("worker", i)
		conn, err := rpc.Dial(s.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		clients[i] = newEagerClient(t, conn, s.Cluster(), 7)
		clients[i].def.TaskIndex, clients[i].def.DefaultSessionConfig = int32(i), config
		task, err := rpc.NewWorkerClient(conn, "worker").GetStatus(t.Context(), &pb.GetStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, task.GetDeviceAttributes()...)
	}
	for _, c := range clients {
		c.devices = devices
		if err := c.create(); err != nil {
			t.Fatal(err)
		}
	}
	return clients
}

// other is the second task, as nodes of functions name it.
const other = "/job:worker/task:1"

// The operation timeout of a context ends parts of functions on other tasks.
func TestEagerOperationTimeout(t *testing.T) {
	c := twoWorkers(t, &pb.ConfigProto{OperationTimeoutInMs: 50})[0]
	types := &pb.AttrValue{Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{Type: []pb.DataType{pb.DataType_DT_FLOAT}}}}
	attrs := map[string]*pb.AttrValue{"component_types": types}
	wait := &pb.FunctionDef{
		Signature: &pb.OpDef{Name: "Wait", OutputArg: []*pb.OpDef_ArgDef{floatArg("y")}, IsStateful: true},
		NodeDef: []*pb.NodeDef{
			{Name: "queue", Op: "FIFOQueueV2", Device: other, Attr: attrs},
			{Name: "take", Op: "QueueDequeueV2", Input: []string{"queue:handle:0"}, Device: other, Attr: attrs},
		},
		Ret: map[string]string{"y": "take:components:0"},
	}
	err := c.enqueue(registerFunction(wait), c.callFunction(1, "Wait"))
	wantError(t, "a queue that stays empty", err, status.DeadlineExceeded, "Deadline Exceeded")
}

// A kernel calls a function with a part on another task.
func TestNestedFunctionAcrossTasks(t *testing.T) {
	c := twoWorkers(t, nil)[0]
	add := map[string]*pb.AttrValue{"T": typeAttr(pb.DataType_DT_FLOAT)}
	across := &pb.FunctionDef{
		Signature: &pb.OpDef{Name: "Across", InputArg: []*pb.OpDef_ArgDef{floatArg("x")}, OutputArg: []*pb.OpDef_ArgDef{floatArg("y")}},
		NodeDef: []*pb.NodeDef{
			{Name: "there", Op: "AddV2", Input: []string{"x", "x"}, Device: other, Attr: add},
			{Name: "here", Op: "AddV2", Input: []string{"there:z:0", "x"}, Attr: add},
		},
		Ret: map[string]string{"y": "here:z:0"},
	}
	call := c.operation(2, "PartitionedCall", c.input(1))
	types := &pb.AttrValue{Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{Type: []pb.DataType{pb.DataType_DT_FLOAT}}}}
	call.GetOperation().Attrs = map[string]*pb.AttrValue{
		"Tin": types, "Tout": types, "f": {Value: &pb.AttrValue_Func{Func: &pb.NameAttrList{Name: "Across"}}},
	}
	if err := c.enqueue(registerFunction(across), c.operation(1, "AddV2", value(t, 1), value(t, 2))); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := c.enqueue(call); err != nil {
			t.Fatal(err)
		}
		if got := c.read(2); got != 9 {
			t.Fatalf("got %v, want three times 3", got)
		}
	}
}

// A result has the device of the node that it comes from, if only identities are between them.
func TestDeviceOfResult(t *testing.T) {
	c := twoWorkers(t, nil)[0]
	float := map[string]*pb.AttrValue{"T": typeAttr(pb.DataType_DT_FLOAT)}
	f := &pb.FunctionDef{
		Signature: &pb.OpDef{Name: "There", InputArg: []*pb.OpDef_ArgDef{floatArg("x")}, OutputArg: []*pb.OpDef_ArgDef{floatArg("y")}},
		NodeDef: []*pb.NodeDef{
			{Name: "sum", Op: "AddV2", Input: []string{"x", "x"}, Device: other, Attr: float},
			{Name: "same", Op: "Identity", Input: []string{"sum:z:0"}, Attr: float},
		},
		Ret: map[string]string{"y": "same:output:0"},
	}
	if err := c.enqueue(registerFunction(f), c.operation(1, "AddV2", value(t, 1), value(t, 2))); err != nil {
		t.Fatal(err)
	}
	req := &pb.EnqueueRequest{ContextId: c.id, Queue: []*pb.QueueItem{c.callFunction(2, "There", c.input(1))}}
	resp, err := rpc.NewWorkerClient(c.conn, "worker").Enqueue(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	const want = "/job:worker/replica:0/task:1/device:CPU:0"
	if got := resp.GetQueueResponse()[0].GetDevice(); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A dataset of the client has no content when it arrives.
func TestForeignDataset(t *testing.T) {
	s, conn := plainWorker(t)
	c := newEagerClient(t, conn, s.Cluster(), 7)
	if err := c.create(); err != nil {
		t.Fatal(err)
	}
	send := &pb.SendTensorOp{OpId: 1, DeviceName: c.device, Tensors: []*pb.TensorProto{{
		Dtype: pb.DataType_DT_VARIANT, TensorShape: &pb.TensorShapeProto{},
		VariantVal: []*pb.VariantTensorDataProto{{TypeName: "tensorflow::DatasetVariantWrapper"}},
	}}}
	err := c.enqueue(&pb.QueueItem{Item: &pb.QueueItem_SendTensor{SendTensor: send}})
	wantError(t, "a dataset", err, status.InvalidArgument, "Unable to parse tensor proto")
}
