package server_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// chain returns a function of n additions of its argument.
func chain(name string, n int) *pb.FunctionDef {
	f := &pb.FunctionDef{
		Signature: &pb.OpDef{Name: name, InputArg: []*pb.OpDef_ArgDef{floatArg("x")}, OutputArg: []*pb.OpDef_ArgDef{floatArg("y")}},
	}
	last := "x"
	for i := range n {
		node := fmt.Sprintf("n%d", i)
		f.NodeDef = append(f.NodeDef, &pb.NodeDef{
			Name: node, Op: "AddV2", Input: []string{last, "x"}, Attr: map[string]*pb.AttrValue{"T": typeAttr(pb.DataType_DT_FLOAT)},
		})
		last = node + ":z:0"
	}
	f.Ret = map[string]string{"y": last}
	return f
}

// recursive returns a function that calls another one, which may be itself.
func recursive(name, callee string) *pb.FunctionDef {
	return &pb.FunctionDef{
		Signature: &pb.OpDef{Name: name, InputArg: []*pb.OpDef_ArgDef{floatArg("x")}, OutputArg: []*pb.OpDef_ArgDef{floatArg("y")}},
		NodeDef:   []*pb.NodeDef{{Name: "call", Op: callee, Input: []string{"x"}}},
		Ret:       map[string]string{"y": "call:y:0"},
	}
}

// Requests for things that belong to others, or that are huge or endless, fail or end, and the
// server goes on.
func TestHostileEagerWork(t *testing.T) {
	s, conn := plainWorker(t)
	c, other := newEagerClient(t, conn, s.Cluster(), 7), newEagerClient(t, conn, s.Cluster(), 8)
	for _, c := range []*eagerClient{c, other} {
		if err := c.create(); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.enqueue(other.operation(1, "AddV2", value(t, 2), value(t, 3))); err != nil {
		t.Fatal(err)
	}
	negative := &pb.RemoteTensorHandle{OpId: 1, OutputNum: -1, Device: c.device, OpDevice: c.device}
	component := c.callFunction(4, "Missing")
	component.GetOperation().IsComponentFunction = true
	var endless []*pb.QueueItem
	for i := range 20_000 {
		endless = append(endless, &pb.QueueItem{Item: &pb.QueueItem_CleanupFunction{CleanupFunction: &pb.CleanupFunctionOp{StepId: int64(-i)}}})
	}
	wide := &pb.SendPackedHandleOp{OpId: 20, Handles: slices.Repeat([]*pb.SendPackedHandleOp_Handle{
		{Item: &pb.SendPackedHandleOp_Handle_RemoteHandle{RemoteHandle: c.handle(1, 0)}},
	}, 5000)}
	deep := value(t, 1)
	for name, test := range map[string]struct {
		items []*pb.QueueItem
		fails bool
	}{
		"a handle of another context":      {[]*pb.QueueItem{c.operation(3, "AddV2", c.input(1), c.input(1))}, true},
		"a handle of another context goes": {[]*pb.QueueItem{c.drop(1)}, true},
		"a negative output": {[]*pb.QueueItem{c.operation(3, "AddV2", &pb.Operation_Input{
			Item: &pb.Operation_Input_RemoteHandle{RemoteHandle: negative},
		}, value(t, 1))}, true},
		"a packed handle of many values":      {[]*pb.QueueItem{{Item: &pb.QueueItem_SendPackedHandle{SendPackedHandle: wide}}}, true},
		"a component that is enqueued":        {[]*pb.QueueItem{component}, true},
		"the lasting step of another context": {[]*pb.QueueItem{{Item: &pb.QueueItem_CleanupFunction{CleanupFunction: &pb.CleanupFunctionOp{StepId: 8}}}}, false},
		"an endless queue":                    {endless, false},
		"a function of many nodes":            {[]*pb.QueueItem{registerFunction(chain("Long", 20_000)), c.callFunction(5, "Long", value(t, 1))}, false},
		"a function that calls itself":        {[]*pb.QueueItem{registerFunction(recursive("Self", "Self")), c.callFunction(6, "Self", value(t, 1))}, true},
		"functions that call each other": {[]*pb.QueueItem{
			registerFunction(recursive("Ping", "Pong")), registerFunction(recursive("Pong", "Ping")), c.callFunction(6, "Ping", value(t, 1)),
		}, true},
		"an operation number that is used twice": {[]*pb.QueueItem{
			c.operation(7, "AddV2", deep, deep), c.operation(7, "AddV2", deep, deep), c.drop(7),
		}, false},
	} {
		err := c.enqueue(test.items...)
		if (err != nil) != test.fails || status.CodeOf(err) == status.Unavailable || status.CodeOf(err) == status.DeadlineExceeded {
			t.Errorf("%s: %v", name, err)
		}
		if err := other.enqueue(other.operation(2, "AddV2", other.input(1), value(t, 3))); err != nil {
			t.Fatalf("after %s the other context fails: %v", name, err)
		}
	}
	if got := other.read(1); got != 5 {
		t.Errorf("the value of the other context is %v", got)
	}
	big := newEagerClient(t, conn, s.Cluster(), 9)
	for i := range int32(20_000) {
		big.def.Cluster.Job[0].Tasks[i] = fmt.Sprintf("127.0.0.1:%d", 1+i)
	}
	if err := big.create(); err != nil {
		t.Errorf("a cluster of many tasks: %v", err)
	}
	wrongTask := newEagerClient(t, conn, s.Cluster(), 10)
	wrongTask.def.TaskIndex = 12
	if err := wrongTask.create(); err == nil {
		t.Error("a context for a task that is not in its cluster was created")
	}
	empty := &pb.CreateContextRequest{ContextId: 11}
	if err := c.call(rpc.MethodCreateContext, empty); err != nil && status.CodeOf(err) == status.Internal {
		t.Errorf("a context without a cluster: %v", err)
	}
}

// held returns the memory in use after a collection, in bytes.
func held() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Contexts leave no memory: neither values nor functions and what was compiled for them.
func TestEagerContextsLeaveNoMemory(t *testing.T) {
	s, conn := plainWorker(t)
	use := func(id uint64) {
		c := newEagerClient(t, conn, s.Cluster(), id)
		if err := c.create(); err != nil {
			t.Fatal(err)
		}
		shape := &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: 4096}}}
		block := &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, TensorShape: shape, TensorContent: make([]byte, 4*4096)}
		send := &pb.SendTensorOp{OpId: 1, DeviceName: c.device, Tensors: []*pb.TensorProto{block}}
		err := c.enqueue(registerFunction(chain("Long", 50)), &pb.QueueItem{Item: &pb.QueueItem_SendTensor{SendTensor: send}},
			c.callFunction(2, "Long", c.input(1)))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.closeContext(); err != nil {
			t.Fatal(err)
		}
	}
	for id := range uint64(100) {
		use(id + 1)
	}
	goroutines, before := runtime.NumGoroutine(), held()
	for id := range uint64(1000) {
		use(id + 1000)
	}
	if after := held(); after > before+4<<20 {
		t.Errorf("%d MiB before, %d MiB after", before>>20, after>>20)
	}
	if after := runtime.NumGoroutine(); after > goroutines+10 {
		t.Errorf("%d goroutines before, %d after", goroutines, after)
	}
}

// The context of a client that has vanished ends after its keep-alive, with the calls in it.
func TestVanishedEagerClient(t *testing.T) {
	s, conn := plainWorker(t)
	c := newEagerClient(t, conn, s.Cluster(), 7)
	req := &pb.CreateContextRequest{ContextId: c.id, ServerDef: c.def, KeepAliveSecs: 1}
	if err := c.call(rpc.MethodCreateContext, req); err != nil {
		t.Fatal(err)
	}
	queue := &pb.FunctionDef{
		Signature: &pb.OpDef{Name: "Wait", OutputArg: []*pb.OpDef_ArgDef{floatArg("y")}, IsStateful: true},
	}
	attrs := map[string]*pb.AttrValue{"component_types": {Value: &pb.AttrValue_List{
		List: &pb.AttrValue_ListValue{Type: []pb.DataType{pb.DataType_DT_FLOAT}},
	}}}
	queue.NodeDef = []*pb.NodeDef{
		{Name: "queue", Op: "FIFOQueueV2", Attr: attrs},
		{Name: "take", Op: "QueueDequeueV2", Input: []string{"queue:handle:0"}, Attr: attrs},
	}
	queue.Ret = map[string]string{"y": "take:components:0"}
	if err := c.enqueue(registerFunction(queue)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.enqueue(c.callFunction(1, "Wait")) }()
	select {
	case err := <-ended:
		if err == nil {
			t.Errorf("the call ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the call goes on")
	}
	wantError(t, "the context", c.keepAlive(), status.Aborted, "Unable to find a context_id")
	task, err := rpc.NewWorkerClient(conn, "worker").GetTask(t.Context(), &pb.GetTaskRequest{})
	if err != nil || task.GetWorkerSessions() != 0 {
		t.Errorf("%d sessions are left, %v", task.GetWorkerSessions(), err)
	}
}
