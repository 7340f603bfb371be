package worker_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	caller "github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestSessions(t *testing.T) {
	f := newFixture(t)
	_, err := f.CreateWorkerSession(t.Context(), &pb.CreateWorkerSessionRequest{})
	expect(t, err, status.InvalidArgument, "Session must be non-empty.")
	f.session("s")
	g := f.register("s", addOne)
	f.session("s") // the second call changes nothing
	if _, err := f.run(f.request(g, 1, map[string]float32{"x": 1}, "y")); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := f.DeleteWorkerSession(t.Context(), &pb.DeleteWorkerSessionRequest{SessionHandle: "s"}); err != nil {
			t.Error(err)
		}
	}
	_, err = f.run(f.request(g, 2, map[string]float32{"x": 1}, "y"))
	expectRestarted(t, err)
	_, err = f.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{SessionHandle: "s", CreateWorkerSessionCalled: true})
	expectRestarted(t, err)
	_, err = f.DeregisterGraph(t.Context(), &pb.DeregisterGraphRequest{SessionHandle: "s", CreateWorkerSessionCalled: true, GraphHandle: g})
	expectRestarted(t, err)
}

// expectRestarted checks the error by which a master recognizes a task that has lost its session.
func expectRestarted(t *testing.T, err error) {
	t.Helper()
	expect(t, err, status.Aborted,
		`Session handle is not found: s. Possibly this worker ("/job:worker/replica:0/task:0") just restarted.`)
	if _, ok := status.From(err).Payloads[status.PayloadWorkerRestarted]; !ok {
		t.Error("the payload is missing")
	}
}

func TestSessionsOfAnEarlierMasterAreDropped(t *testing.T) {
	f := newFixture(t)
	create := func(handle, master string, incarnation int64) {
		t.Helper()
		if _, err := f.CreateWorkerSession(t.Context(), &pb.CreateWorkerSessionRequest{
			SessionHandle: handle, MasterTask: master, MasterIncarnation: incarnation,
		}); err != nil {
			t.Fatal(err)
		}
	}
	create("a", "/job:worker/replica:0/task:1", 1)
	create("b", "/job:worker/replica:0/task:1", 1)
	create("c", "/job:worker/replica:0/task:2", 1)
	create("d", "", 7)
	if got := f.NumSessions(); got != 4 {
		t.Errorf("%d sessions, want 4", got)
	}
	if _, err := f.CreateWorkerSession(caller.WithStranger(t.Context()), &pb.CreateWorkerSessionRequest{
		SessionHandle: "f", MasterTask: "/job:worker/replica:0/task:2", MasterIncarnation: 3,
	}); err != nil || f.NumSessions() != 5 {
		t.Errorf("a caller that is no task: %d sessions, want 5; %v", f.NumSessions(), err)
	}
	f.DeleteWorkerSession(t.Context(), &pb.DeleteWorkerSessionRequest{SessionHandle: "f"}) //nolint:errcheck // the next count shows it
	create("e", "/job:worker/replica:0/task:1", 2)
	if got := f.NumSessions(); got != 3 {
		t.Errorf("%d sessions after a master has restarted, want 3", got)
	}
}

// A task knows its own master, so no other can end that master's sessions by its name.
func TestOwnMasterHasOneIncarnation(t *testing.T) {
	f := newFixture(t)
	own := &pb.CreateWorkerSessionRequest{SessionHandle: "a", MasterTask: f.Task.String(), MasterIncarnation: int64(f.Devices[0].Incarnation)}
	if _, err := f.CreateWorkerSession(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	_, err := f.CreateWorkerSession(t.Context(), &pb.CreateWorkerSessionRequest{
		SessionHandle: "b", MasterTask: f.Task.String(), MasterIncarnation: own.MasterIncarnation + 1,
	})
	expect(t, err, status.PermissionDenied, `the incarnation of the master "/job:worker/replica:0/task:0" is not `)
	if got := f.NumSessions(); got != 1 {
		t.Errorf("%d sessions, want 1", got)
	}
}

func TestMastersWithoutSessions(t *testing.T) {
	f := newFixture(t)
	g := f.register("", addOne)
	req := f.request(g, 1, map[string]float32{"x": 1}, "y")
	req.Session, req.SessionCreated = "anything", false
	if got, err := f.run(req); err != nil || got[0] != 2 {
		t.Errorf("got %v, %v; want 2", got, err)
	}
	if _, err := f.DeregisterGraph(t.Context(), &pb.DeregisterGraphRequest{SessionHandle: "other", GraphHandle: g}); err != nil {
		t.Error(err)
	}
	_, err := f.run(req)
	expect(t, err, status.Aborted, "Graph handle is not found: "+g)
}

func TestIsolatedSessionsHaveTheirOwnState(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	_, err := f.CreateWorkerSession(t.Context(), &pb.CreateWorkerSessionRequest{SessionHandle: "own", IsolateSessionState: true})
	if err != nil {
		t.Fatal(err)
	}
	const text = "v = TestVar()\nfetch y v"
	shared, own := f.register("s", text), f.register("own", text)
	for i, tt := range []struct {
		session, graph string
		want           float32
	}{{"s", shared, 1}, {"own", own, 1}, {"s", shared, 2}} {
		req := f.request(tt.graph, int64(i), nil, "y")
		req.Session = tt.session
		if got, err := f.run(req); err != nil || got[0] != tt.want {
			t.Errorf("session %s: got %v, %v; want %v", tt.session, got, err, tt.want)
		}
	}
	if _, err := f.CleanupAll(t.Context(), &pb.CleanupAllRequest{}); err != nil {
		t.Fatal(err)
	}
	if got, err := f.run(f.request(shared, 10, nil, "y")); err != nil || got[0] != 1 {
		t.Errorf("after CleanupAll: got %v, %v; want 1", got, err)
	}
}

// heldFile is a resource that must be closed when nothing refers to it.
type heldFile struct{ closed chan<- bool }

func (*heldFile) TypeName() string { return "file" }

func (h *heldFile) Close() { h.closed <- true }

// TestIsolatedSessionsCloseTheirResources ends a session with private resources.
func TestIsolatedSessionsCloseTheirResources(t *testing.T) {
	closed := make(chan bool, 2)
	hold := testcluster.Op("TestHold", nil, []string{"y: float"}, kernel.Stateless(func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar[float32](1))
		return kernel.CreateResource(c.Device.Resources, "", "held", &heldFile{closed})
	}))
	c := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 2}, Kernels: testcluster.Kernels(hold)})
	n := c.Node("worker", 0)
	f := &fixture{t, n.Worker, c, n.Devices[0]}
	for _, isolate := range []bool{false, true} {
		req := &pb.CreateWorkerSessionRequest{SessionHandle: "s", IsolateSessionState: isolate}
		if _, err := f.CreateWorkerSession(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if _, err := f.run(f.request(f.register("s", "v = TestHold()\nfetch y v"), 1, nil, "y")); err != nil {
			t.Fatal(err)
		}
		if _, err := f.DeleteWorkerSession(t.Context(), &pb.DeleteWorkerSessionRequest{SessionHandle: "s"}); err != nil {
			t.Fatal(err)
		}
		if len(closed) > 0 != isolate {
			t.Errorf("isolated %t: %d resources are closed", isolate, len(closed))
		}
	}
}

func TestClustersOfSessions(t *testing.T) {
	f := newFixture(t)
	create := func(handle string, def *pb.ServerDef) error {
		_, err := f.CreateWorkerSession(t.Context(), &pb.CreateWorkerSessionRequest{SessionHandle: handle, ServerDef: def})
		return err
	}
	job := &pb.JobDef{Name: "store", Tasks: map[int32]string{5: f.cluster.Spec()["worker"][0]}}
	if err := create("s", &pb.ServerDef{Cluster: &pb.ClusterDef{Job: []*pb.JobDef{job}}, JobName: "store", TaskIndex: 5}); err != nil {
		t.Fatal(err)
	}
	def := f.graph("a = Const() value=float[]{1}")
	register := func(device string) error {
		def.Node[0].Device = device
		_, err := f.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{SessionHandle: "s", CreateWorkerSessionCalled: true, GraphDef: def})
		return err
	}
	if err := register("/job:store/replica:0/task:5/device:CPU:0"); err != nil {
		t.Error(err)
	}
	expect(t, register(cpu), status.InvalidArgument, cpu+" unknown device.")
	expect(t, create("t", &pb.ServerDef{Cluster: &pb.ClusterDef{Job: []*pb.JobDef{job, job}}}), status.InvalidArgument,
		"Duplicate job ID in cluster specification")
	_, err := f.CreateWorkerSession(t.Context(), &pb.CreateWorkerSessionRequest{
		SessionHandle: "u", ClusterDeviceAttributes: []*pb.DeviceAttributes{{Name: "garbage"}},
	})
	expect(t, err, status.InvalidArgument, `Invalid device name in cluster_device_attributes: "garbage"`)
}

func TestUnusedIsToldOfTheLastSession(t *testing.T) {
	f := newFixture(t)
	told := 0
	f.Unused = func() { told++ }
	f.session("a")
	f.session("b")
	for i, handle := range []string{"a", "none", "b", "b"} {
		if _, err := f.DeleteWorkerSession(t.Context(), &pb.DeleteWorkerSessionRequest{SessionHandle: handle}); err != nil {
			t.Error(err)
		}
		if want := i / 2; told != want {
			t.Errorf("told %d times after session %s was deleted, want %d", told, handle, want)
		}
	}
}
