package weft

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// fakeMaster records requests and nodes. The value of each fetch is its name.
type fakeMaster struct {
	rpc.Master // nil: the tests call no other methods

	mu    sync.Mutex
	nodes []string // guarded by mu
	calls []string // guarded by mu
	steps []*message.RunStepRequest
	step  func(context.Context, *message.RunStepRequest) (*message.RunStepResponse, error)
}

func (m *fakeMaster) called(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, name)
}

func (m *fakeMaster) addNodes(def *pb.GraphDef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range def.GetNode() {
		m.nodes = append(m.nodes, n.GetName())
	}
}

func (m *fakeMaster) CreateSession(_ context.Context, req *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	m.called("CreateSession")
	m.addNodes(req.GetGraphDef())
	return &pb.CreateSessionResponse{SessionHandle: "h", GraphVersion: 7}, nil
}

func (m *fakeMaster) ExtendSession(_ context.Context, req *pb.ExtendSessionRequest) (*pb.ExtendSessionResponse, error) {
	m.called("ExtendSession")
	if req.GetSessionHandle() != "h" || req.GetCurrentGraphVersion() != 7 {
		return nil, status.Abortedf("Current version is 7 but caller expected %d.", req.GetCurrentGraphVersion())
	}
	m.addNodes(req.GetGraphDef())
	return &pb.ExtendSessionResponse{NewGraphVersion: 7}, nil
}

func (m *fakeMaster) CloseSession(context.Context, *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error) {
	m.called("CloseSession")
	return &pb.CloseSessionResponse{}, nil
}

func (m *fakeMaster) RunStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	m.called("RunStep")
	m.mu.Lock()
	kept := *req // copied because the request is borrowed
	kept.Feeds = slices.Clone(req.Feeds)
	m.steps = append(m.steps, &kept)
	m.mu.Unlock()
	if m.step != nil {
		return m.step(ctx, req)
	}
	resp := &message.RunStepResponse{}
	for _, name := range slices.Backward(req.Fetches) {
		named := func(t message.NamedTensor) bool { return t.Name == name }
		// each name once, as in responses of TensorFlow's masters
		if !slices.ContainsFunc(resp.Tensors, named) {
			resp.Tensors = append(resp.Tensors, message.NamedTensor{Name: name, Tensor: tensor.Scalar(name)})
		}
	}
	return resp, nil
}

// start registers a master and returns its target, and a graph of nodes a and b with two outputs
// each.
func start(t *testing.T, m rpc.Master) (string, *graph.Graph) {
	target := "test:" + t.Name()
	t.Cleanup(rpc.RegisterTarget(target, func(*pb.ConfigProto, *slog.Logger) (rpc.Master, func(context.Context), error) {
		return m, func(context.Context) {}, nil
	}))
	g := graph.New(twoOuts{})
	add(t, g, "a")
	add(t, g, "b")
	return target, g
}

// twoOuts is a Lookup of one operation, with two outputs.
type twoOuts struct{}

func (twoOuts) LookupOp(name string) (*opdef.Op, bool) {
	def := opdef.Def{Name: name, Doc: "x", Out: []string{"x: float", "y: int32"}}
	op, err := def.Parse()
	return op, err == nil && name == "Two"
}

func add(t *testing.T, g *graph.Graph, name string) *graph.Node {
	n, err := g.Add(name, "Two", nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newSession(t *testing.T, target string, g *graph.Graph, opts ...SessionOption) *Session {
	s, err := NewSession(target, g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestFirstCallCreatesSession(t *testing.T) {
	m := &fakeMaster{}
	target, g := start(t, m)
	unused, err := NewSession(target, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := unused.Close(); err != nil {
		t.Fatal(err)
	}
	s := newSession(t, target, g)
	for range 2 {
		if _, err := s.Run(t.Context(), nil, []graph.Output{g.Node("a").Out(0)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	add(t, g, "c")
	for range 2 {
		if _, err := s.Run(t.Context(), nil, nil, []*graph.Node{g.Node("c")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"CreateSession", "RunStep", "RunStep", "ExtendSession", "RunStep", "RunStep", "CloseSession"}; !slices.Equal(m.calls, want) {
		t.Errorf("got calls %q, want %q", m.calls, want)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(m.nodes, want) {
		t.Errorf("got nodes %q, want %q", m.nodes, want)
	}
}

func TestRunRequest(t *testing.T) {
	m := &fakeMaster{}
	target, g := start(t, m)
	a, b := g.Node("a"), g.Node("b")
	s := newSession(t, target, g)
	fetches := []graph.Output{a.Out(1), b.Out(0), a.Out(1), a.Out(0)}
	got, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{b.Out(1): tensor.Scalar(int32(5))}, fetches, []*graph.Node{b})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a:1", "b:0", "a:1", "a:0"} {
		if v := tensor.Value[string](&got[i]); v != want {
			t.Errorf("fetch %d is the value of %s, want %s", i, v, want)
		}
	}
	req := m.steps[0]
	if len(req.Feeds) != 1 || req.Feeds[0].Name != "b:1" || !slices.Equal(req.Targets, []string{"b"}) ||
		!req.StoreErrorsInBody || req.RequestID != 0 || req.Session != "h" || req.Options != nil {
		t.Errorf("got request %+v", req)
	}
}

// TestFeedsAreCopied checks that changes of the memory of a feed after the call do not affect
// values that the step has kept, and that the session releases the feed.
func TestFeedsAreCopied(t *testing.T) {
	var kept tensor.Tensor
	m := &fakeMaster{step: func(_ context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
		kept = req.Feeds[0].Tensor.Retain()
		return &message.RunStepResponse{}, nil
	}}
	target, g := start(t, m)
	s := newSession(t, target, g)
	mine := []float32{1}
	feeds := map[graph.Output]tensor.Tensor{g.Node("a").Out(0): tensor.Vector(mine...)}
	if _, err := s.Run(t.Context(), feeds, nil, []*graph.Node{g.Node("b")}); err != nil {
		t.Fatal(err)
	}
	mine[0] = 2
	if v := tensor.Value[float32](&kept); v != 1 {
		t.Errorf("the step kept %v", v)
	}
	if !kept.Exclusive() {
		t.Error("the session kept a reference")
	}
}

func TestRunOptions(t *testing.T) {
	m := &fakeMaster{step: func(ctx context.Context, _ *message.RunStepRequest) (*message.RunStepResponse, error) {
		if _, ok := ctx.Deadline(); ok {
			t.Error("the client also enforces the limit of a step that runs in process")
		}
		return nil, status.DeadlineExceededf("over")
	}}
	target, g := start(t, m)
	s := newSession(t, target, g)
	_, err := s.Run(t.Context(), nil, nil, []*graph.Node{g.Node("a")}, WithStepTimeout(5*time.Millisecond))
	if status.CodeOf(err) != status.DeadlineExceeded {
		t.Errorf("got error %v", err)
	}
	if got := m.steps[0].Options.GetTimeoutInMs(); got != 5 {
		t.Errorf("got timeout %d ms", got)
	}
	m.step = func(context.Context, *message.RunStepRequest) (*message.RunStepResponse, error) {
		stats := &pb.NodeExecStats{NodeName: "a", TimelineLabel: "a = Two()", AllStartMicros: 3, AllEndRelMicros: 4}
		return &message.RunStepResponse{Metadata: &pb.RunMetadata{
			StepStats:       &pb.StepStats{DevStats: []*pb.DeviceStepStats{{Device: "d", NodeStats: []*pb.NodeExecStats{stats}}}},
			PartitionGraphs: []*pb.GraphDef{{Node: []*pb.NodeDef{{Name: "a", Op: "Two"}}}},
		}}, nil
	}
	traced, err := s.RunTraced(t.Context(), Step{Targets: []*graph.Node{g.Node("a")}}, nil, WithPartitionGraphs(), WithStepTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	want := NodeStats{Device: "d", Node: "a", Label: "a = Two()", Start: time.UnixMicro(3), Took: 4 * time.Microsecond}
	if got := traced.Metadata.Nodes(); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v", got)
	}
	if got, err := traced.Metadata.PartitionGraphs(); err != nil || len(got) != 1 || got[0].Nodes[0].Name != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
	if o := m.steps[1].Options; o.GetTraceLevel() != pb.RunOptions_FULL_TRACE || o.GetTimeoutInMs() != 60000 || !o.GetOutputPartitionGraphs() {
		t.Errorf("got options %v", o)
	}
}

func TestStepErrors(t *testing.T) {
	m := &fakeMaster{}
	target, g := start(t, m)
	s := newSession(t, target, g)
	a := []*graph.Node{g.Node("a")}
	body := status.NotFoundf("in the body")
	m.step = func(context.Context, *message.RunStepRequest) (*message.RunStepResponse, error) {
		return &message.RunStepResponse{Err: body}, nil
	}
	if _, err := s.Run(t.Context(), nil, nil, a); !errors.Is(err, body) {
		t.Errorf("got error %v", err)
	}
	m.step = func(context.Context, *message.RunStepRequest) (*message.RunStepResponse, error) {
		return &message.RunStepResponse{}, nil
	}
	if _, err := s.Run(t.Context(), nil, []graph.Output{a[0].Out(0)}, nil); status.CodeOf(err) != status.Internal {
		t.Errorf("missing value: got error %v", err)
	}
	for _, call := range []func() error{
		func() error { _, err := s.Run(t.Context(), nil, []graph.Output{{}}, nil); return err },
		func() error { _, err := s.Run(t.Context(), nil, nil, []*graph.Node{nil}); return err },
		func() error {
			_, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{{}: tensor.Scalar(true)}, nil, a)
			return err
		},
		func() error {
			_, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{a[0].Out(0): {}}, nil, a)
			return err
		},
		func() error { _, err := s.Prepare(t.Context(), Step{Fetches: []graph.Output{{}}}); return err },
		func() error { _, err := s.StartPartial(t.Context(), Step{Feeds: []graph.Output{{}}}); return err },
	} {
		if err := call(); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("zero value: got error %v", err)
		}
	}
}

func TestConcurrentCallsCreateOneSession(t *testing.T) {
	m := &fakeMaster{}
	target, g := start(t, m)
	s := newSession(t, target, g)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := s.Run(t.Context(), nil, []graph.Output{g.Node("a").Out(0)}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(m.calls); n != 21 {
		t.Errorf("got %d calls", n)
	}
}

// blockedMaster waits in CreateSession until the context ends.
type blockedMaster struct {
	rpc.Master
	waiting chan struct{}
}

func (m blockedMaster) CreateSession(ctx context.Context, _ *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	close(m.waiting)
	<-ctx.Done()
	return nil, status.FromContext(ctx, "waiting for tasks")
}

func TestCloseDuringStart(t *testing.T) {
	m := blockedMaster{waiting: make(chan struct{})}
	target, g := start(t, m)
	s := newSession(t, target, g)
	var wg sync.WaitGroup
	for range 2 { // one call creates the session, the other waits for it
		wg.Go(func() {
			_, err := s.Run(t.Context(), nil, nil, []*graph.Node{g.Node("a")})
			if status.CodeOf(err) != status.FailedPrecondition {
				t.Errorf("got error %v", err)
			}
		})
	}
	<-m.waiting
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	_, err := s.Run(t.Context(), nil, nil, nil)
	if !errors.Is(err, errClosed) || !strings.HasPrefix(err.Error(), "session_test.go:") {
		t.Errorf("after Close: got error %v", err)
	}
}

func TestTargets(t *testing.T) {
	for target, want := range map[string]status.Code{
		"grpc://localhost:2222": status.OK, "grpc://[::1]:2222": status.OK, "": status.NotFound, "elsewhere": status.NotFound,
		"localhost:2222": status.NotFound, "http://localhost:2222": status.NotFound, "grpc://localhost": status.InvalidArgument,
		"grpc://a/b:1": status.InvalidArgument, "grpc://localhost:99999999": status.InvalidArgument,
	} {
		s, err := NewSession(target, graph.New(twoOuts{}))
		if status.CodeOf(err) != want {
			t.Errorf("%q: got error %v, want %v", target, err, want)
		}
		if err == nil {
			s.Close()
		}
	}
}

func TestOptions(t *testing.T) {
	config := []byte{0x38, 1} // allow_soft_placement
	s, err := NewSession("grpc://localhost:1", graph.New(twoOuts{}), WithDeviceFilters("/job:ps", "/job:worker/task:1"), WithConfig(config),
		WithPlacementLog(), WithIsolation(), WithCPUDevices(3), WithNetwork(), WithTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := s.settings.config
	if !c.AllowSoftPlacement || !c.LogDevicePlacement || !c.IsolateSessionState || c.DeviceCount["CPU"] != 3 || len(c.DeviceFilters) != 2 ||
		!c.RpcOptions.UseRpcForInprocessMaster || c.OperationTimeoutInMs != 1000 {
		t.Errorf("got %v", c)
	}
	if _, err := NewSession("grpc://localhost:1", graph.New(twoOuts{}), WithConfig([]byte{0xff})); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("got error %v", err)
	}
}

// TestWaitIsLogged checks that a session without WithLogger logs warnings to the default logger
// while it waits.
func TestWaitIsLogged(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default() //nolint:forbidigo // restored by Cleanup
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	synctest.Test(t, func(t *testing.T) {
		s, err := NewSession("grpc://absent:2222", graph.New(twoOuts{}))
		if err != nil {
			t.Fatal(err)
		}
		stop := s.logWhileWaiting()
		<-time.After(2*waitLogInterval + time.Second)
		stop()
	})
	if got := out.String(); strings.Count(got, "level=WARN msg=\"still waiting") != 2 || !strings.Contains(got, "target=grpc://absent:2222") {
		t.Errorf("logged %q, want two warnings with the target", got)
	}
}

// TestFeedsAreCheckedWithoutShapeFunctions checks that the client compares feeds with the type and
// shape attributes of placeholders even if the program links no shape functions.
func TestFeedsAreCheckedWithoutShapeFunctions(t *testing.T) {
	target, _ := start(t, &fakeMaster{})
	g := graph.New(opdef.NewTable([]opdef.Def{
		{Name: "Placeholder", Out: []string{"output: dtype"}, Attrs: []string{"dtype: type", "shape: shape = <unknown>"}},
	}))
	n, err := g.Add("x", "Placeholder", opdef.Attrs{"dtype": tensor.Float32, "shape": tensor.MakePartial(2)})
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, target, g)
	run := func(v tensor.Tensor) error {
		_, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{n.Out(0): v}, nil, []*graph.Node{n})
		return err
	}
	if err := run(tensor.Vector[float32](1, 2)); err != nil {
		t.Error(err)
	}
	for want, v := range map[string]tensor.Tensor{
		"Cannot feed value of shape (3,) for Tensor x:0, which has shape (2,)":     tensor.Vector[float32](1, 2, 3),
		"Cannot feed value of type float64 for Tensor x:0, which has type float32": tensor.Vector[float64](1, 2),
	} {
		if err := run(v); status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
