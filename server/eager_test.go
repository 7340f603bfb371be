package server_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// eagerClient is a client with one context on one task.
type eagerClient struct {
	t      *testing.T
	conn   *rpc.Conn
	id     uint64
	device string
	def    *pb.ServerDef
	// devices of all tasks; nil for one made up for each
	devices []*pb.DeviceAttributes
}

// newEagerClient returns a client of the first task of a cluster of workers.
func newEagerClient(t *testing.T, conn *rpc.Conn, spec cluster.Spec, id uint64) *eagerClient {
	tasks := map[int32]string{}
	for i, address := range spec["worker"] {
		tasks[int32(i)] = address
	}
	return &eagerClient{
		t: t, conn: conn, id: id, device: "/job:worker/replica:0/task:0/device:CPU:0",
		def: &pb.ServerDef{JobName: "worker", Cluster: &pb.ClusterDef{Job: []*pb.JobDef{{Name: "worker", Tasks: tasks}}}},
	}
}

func (c *eagerClient) call(method string, req any) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	return c.conn.Invoke(ctx, method, req)
}

func (c *eagerClient) create() error {
	devices := slices.Clone(c.devices)
	for i := range c.def.GetCluster().GetJob()[0].GetTasks() {
		name := cluster.Task{Job: "worker", Index: int(i)}.String() + "/device:CPU:0"
		if c.devices == nil {
			devices = append(devices, &pb.DeviceAttributes{Name: name, DeviceType: "CPU", Incarnation: uint64(i) + 1})
		}
	}
	return c.call(rpc.MethodCreateContext, &pb.CreateContextRequest{ContextId: c.id, ServerDef: c.def, ClusterDeviceAttributes: devices})
}

func (c *eagerClient) keepAlive() error {
	return c.call(rpc.MethodKeepAlive, &pb.KeepAliveRequest{ContextId: c.id})
}

func (c *eagerClient) closeContext() error {
	return c.call(rpc.MethodCloseContext, &pb.CloseContextRequest{ContextId: c.id})
}

func (c *eagerClient) enqueue(items ...*pb.QueueItem) error {
	return c.call(rpc.MethodEnqueue, &pb.EnqueueRequest{ContextId: c.id, Queue: items})
}

func value(t *testing.T, v float32) *pb.Operation_Input {
	x := tensor.Scalar(v)
	p, err := pbconv.TensorToProto(&x)
	if err != nil {
		t.Fatal(err)
	}
	return &pb.Operation_Input{Item: &pb.Operation_Input_Tensor{Tensor: p}}
}

func (c *eagerClient) handle(op int64, output int32) *pb.RemoteTensorHandle {
	return &pb.RemoteTensorHandle{OpId: op, OutputNum: output, Device: c.device, OpDevice: c.device}
}

func (c *eagerClient) input(op int64) *pb.Operation_Input {
	return &pb.Operation_Input{Item: &pb.Operation_Input_RemoteHandle{RemoteHandle: c.handle(op, 0)}}
}

func (c *eagerClient) operation(id int64, name string, inputs ...*pb.Operation_Input) *pb.QueueItem {
	float := &pb.AttrValue{Value: &pb.AttrValue_Type{Type: pb.DataType_DT_FLOAT}}
	return &pb.QueueItem{Item: &pb.QueueItem_Operation{Operation: &pb.Operation{
		Id: id, Name: name, OpInputs: inputs, Device: c.device, Attrs: map[string]*pb.AttrValue{"T": float},
	}}}
}

func (c *eagerClient) drop(op int64) *pb.QueueItem {
	return &pb.QueueItem{Item: &pb.QueueItem_HandleToDecref{HandleToDecref: c.handle(op, 0)}}
}

// plainWorker starts a server without certificates.
func plainWorker(t *testing.T) (*server.Server, *rpc.Conn) {
	t.Helper()
	c, err := server.StartCluster(map[string]int{"worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Server("worker", 0)
	conn, err := rpc.Dial(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, conn
}

func wantError(t *testing.T, what string, err error, code status.Code, text string) {
	t.Helper()
	if status.CodeOf(err) != code || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, %v; want %v with %q", what, status.CodeOf(err), err, code, text)
	}
}

func TestEagerOperations(t *testing.T) {
	s, conn := plainWorker(t)
	c := newEagerClient(t, conn, s.Cluster(), 7)
	if err := c.create(); err != nil {
		t.Fatal(err)
	}
	// (2+3)+4, by a handle
	if err := c.enqueue(c.operation(1, "AddV2", value(t, 2), value(t, 3)), c.operation(2, "AddV2", c.input(1), value(t, 4))); err != nil {
		t.Fatal(err)
	}
	if err := c.enqueue(c.drop(1), c.drop(2)); err != nil {
		t.Error(err)
	}
	const unknown = "Unable to find the relevant tensor remote_handle: Op ID: 1, Output num: 0"
	wantError(t, "a handle that was dropped", c.enqueue(c.drop(1)), status.InvalidArgument, unknown)
	wantError(t, "an input that was dropped", c.enqueue(c.operation(3, "AddV2", c.input(1), value(t, 4))), status.InvalidArgument, unknown)
	if err := c.closeContext(); err != nil {
		t.Error(err)
	}
	wantError(t, "a closed context", c.keepAlive(), status.Aborted, "Unable to find a context_id matching the specified one (7)")
}

// Requests with mistakes fail, and the context and the server go on.
func TestHostileEagerRequests(t *testing.T) {
	s, conn := plainWorker(t)
	c := newEagerClient(t, conn, s.Cluster(), 7)
	if err := c.create(); err != nil {
		t.Fatal(err)
	}
	function := func(f *pb.FunctionDef) *pb.QueueItem {
		return &pb.QueueItem{Item: &pb.QueueItem_RegisterFunction{RegisterFunction: &pb.RegisterFunctionOp{FunctionDef: f}}}
	}
	elsewhere := c.operation(9, "AddV2", value(t, 1), value(t, 2))
	elsewhere.GetOperation().Device = "/job:worker/replica:0/task:5/device:CPU:0"
	wrongAttr := c.operation(9, "AddV2", value(t, 1), value(t, 2))
	wrongAttr.GetOperation().Attrs["T"] = &pb.AttrValue{Value: &pb.AttrValue_Type{Type: pb.DataType_DT_INT32}}
	broken := value(t, 1)
	broken.GetTensor().TensorShape = &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: 1 << 50}}}
	asFunction := c.operation(9, "Missing")
	asFunction.GetOperation().IsFunction = true
	for name, item := range map[string]*pb.QueueItem{
		"no kind":                  {},
		"no operation":             {Item: &pb.QueueItem_Operation{}},
		"an unknown operation":     c.operation(9, "NoSuchOp"),
		"an unknown function":      asFunction,
		"too few inputs":           c.operation(9, "AddV2", value(t, 1)),
		"too many inputs":          c.operation(9, "AddV2", value(t, 1), value(t, 1), value(t, 1)),
		"an input without a value": c.operation(9, "AddV2", &pb.Operation_Input{}, value(t, 1)),
		"a tensor without memory":  c.operation(9, "AddV2", broken, value(t, 1)),
		"another type":             wrongAttr,
		"another task":             elsewhere,
		"a negative operation":     c.drop(-1),
		"no handle":                {Item: &pb.QueueItem_HandleToDecref{}},
		"no tensors":               {Item: &pb.QueueItem_SendTensor{SendTensor: &pb.SendTensorOp{DeviceName: "/job:x"}}},
		"no components":            {Item: &pb.QueueItem_SendPackedHandle{SendPackedHandle: &pb.SendPackedHandleOp{}}},
		"no function":              {Item: &pb.QueueItem_RegisterFunction{}},
		"a function without name":  function(&pb.FunctionDef{Signature: &pb.OpDef{}}),
		"a function of nothing":    function(&pb.FunctionDef{Signature: &pb.OpDef{Name: "F", OutputArg: []*pb.OpDef_ArgDef{{Name: "y", Type: pb.DataType_DT_FLOAT}}}}),
		"removal of no function":   {Item: &pb.QueueItem_RemoveFunction{RemoveFunction: &pb.RemoveFunctionOp{FunctionName: "G"}}},
		"a kernel that must fail":  c.operation(9, "MatMul", value(t, 1), value(t, 2)),
	} {
		switch err := c.enqueue(item); {
		case err == nil && name != "a function of nothing":
			t.Errorf("%s: no error", name)
		case status.CodeOf(err) == status.DeadlineExceeded || status.CodeOf(err) == status.Unavailable:
			t.Errorf("%s: %v", name, err)
		}
		if err := c.enqueue(c.operation(1, "AddV2", value(t, 2), value(t, 3))); err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"a context that exists":    c.create(),
		"a view that is skipped":   c.call(rpc.MethodUpdateContext, &pb.UpdateContextRequest{ContextId: 7, ContextViewId: 9}),
		"part of no function":      c.call(rpc.MethodRunComponentFunction, &pb.RunComponentFunctionRequest{ContextId: 7}),
		"unknown operation number": c.call(rpc.MethodWaitQueueDone, &pb.WaitQueueDoneRequest{ContextId: 7, OpId: []int64{3}}),
	} {
		if err == nil && name != "a context that exists" {
			t.Errorf("%s: no error", name)
		}
	}
}

// A thousand contexts leave no goroutines and no sessions.
func TestEagerContextsLeaveNothing(t *testing.T) {
	s, conn := plainWorker(t)
	use := func(id uint64) {
		c := newEagerClient(t, conn, s.Cluster(), id)
		if err := c.create(); err != nil {
			t.Fatal(err)
		}
		if err := c.enqueue(c.operation(1, "AddV2", value(t, 2), value(t, 3))); err != nil {
			t.Fatal(err)
		}
		if err := c.closeContext(); err != nil {
			t.Fatal(err)
		}
	}
	use(1)
	before := runtime.NumGoroutine()
	for id := range uint64(1000) {
		use(id + 2)
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
	held, err := rpc.NewWorkerClient(conn, "worker").GetTask(t.Context(), &pb.GetTaskRequest{})
	if err != nil || held.GetWorkerSessions() != 0 {
		t.Errorf("%d sessions are left, %v", held.GetWorkerSessions(), err)
	}
}

// With certificates a context belongs to the client that has created it.
func TestOwnersOfEagerContexts(t *testing.T) {
	a := newAuthority(t, "train")
	s := startSecure(t, a, 2)[0]
	as := func(p trust.Principal) *eagerClient {
		return newEagerClient(t, a.dial(t, s.Address(), p), s.Cluster(), 7)
	}
	own, other, task := as(clientPrincipal("research", "alice")), as(clientPrincipal("research", "bob")), as(taskPrincipal("worker", 1))
	operator := as(trust.Principal{Role: trust.Operator, Name: "op"})
	if err := own.create(); err != nil {
		t.Fatal(err)
	}
	const missing = "Unable to find a context_id matching the specified one (7)"
	work := own.operation(1, "AddV2", value(t, 2), value(t, 3))
	wantError(t, "the owner", own.enqueue(work), status.OK, "")
	wantError(t, "a task of the cluster", task.enqueue(work), status.OK, "")
	wantError(t, "another client", other.enqueue(work), status.Aborted, missing)
	wantError(t, "another client's keep-alive", other.keepAlive(), status.Aborted, missing)
	wantError(t, "another client's context of the number", other.create(), status.InvalidArgument, "already exists")
	clearing := &pb.CreateContextRequest{ContextId: 8, ServerDef: other.def, ClearExistingContexts: true}
	wantError(t, "another client that clears", other.call(rpc.MethodCreateContext, clearing), status.OK, "")
	wantError(t, "another client that closes", other.closeContext(), status.OK, "")
	wantError(t, "the owner afterwards", own.keepAlive(), status.OK, "")
	wantError(t, "an operator's work", operator.enqueue(work), status.PermissionDenied, "")
	wantError(t, "an operator that closes", operator.closeContext(), status.OK, "")
	wantError(t, "the owner at the end", own.keepAlive(), status.Aborted, missing)
	if !slices.Contains(s.Methods(), rpc.MethodEnqueue) {
		t.Error("the service is not registered")
	}
}
