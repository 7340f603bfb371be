package master_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

const one = "a = Const() value=float[]{1}\n"

func TestCloseOnce(t *testing.T) {
	s := open(t, psWorker(t), one)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, s.Close(t.Context()), status.Aborted, "Session "+s.Handle+" is not found. Possibly, this master has restarted.")
	_, err := s.Run(t.Context(), nil, []string{"a:0"})
	expect(t, err, status.Aborted, "Session "+s.Handle+" is not found.")
	expect(t, s.Extend(t.Context(), one, 0), status.Aborted, "is not found.")
	_, err = s.PartialSetup(t.Context(), nil, []string{"a:0"})
	expect(t, err, status.Aborted, "is not found.")
}

func TestSessionIsMadeAndDroppedOnEveryTask(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, "")
	calls := c.Calls()
	for _, method := range []string{"GetStatus", "CreateWorkerSession"} {
		if got := testcluster.Count(calls, method); got != 2 {
			t.Errorf("%d %s calls, want 2", got, method)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := testcluster.Count(c.Calls(), "DeleteWorkerSession"); got != 2 {
		t.Errorf("%d DeleteWorkerSession calls, want 2", got)
	}
}

func TestGraphsThatCannotBe(t *testing.T) {
	c := psWorker(t)
	def := func(nodes ...*pb.NodeDef) *pb.GraphDef { return &pb.GraphDef{Node: nodes} }
	for _, tt := range []struct {
		graph *pb.GraphDef
		code  status.Code
		text  string
	}{
		{def(&pb.NodeDef{Name: "a b!", Op: "NoOp"}), status.InvalidArgument, "Illegal op name 'a b!'"},
		{def(&pb.NodeDef{Name: "a", Op: "NoOp", Input: []string{"b b"}}), status.InvalidArgument, "Illegal op input name"},
		{def(&pb.NodeDef{Name: "a", Op: "NoOp", Input: []string{"^zz"}}), status.InvalidArgument, "Unknown input node '^zz'"},
		{def(&pb.NodeDef{Name: "a", Op: "Foo"}), status.NotFound, "Op type not registered 'Foo'"},
		{def(&pb.NodeDef{Name: "a", Op: "NoOp"}, &pb.NodeDef{Name: "a", Op: "NoOp"}), status.InvalidArgument, "Node 'a' is not unique"},
		{def(&pb.NodeDef{Name: "a", Op: "NoOp", Device: "/job:ps/task:7"}), status.InvalidArgument, "was explicitly assigned to"},
		{&pb.GraphDef{Versions: &pb.VersionDef{Producer: 99999, MinConsumer: 99999}}, status.InvalidArgument, "min consumer version 99999 above current version"},
	} {
		_, err := c.Node("worker", 0).Master.CreateSession(t.Context(), &pb.CreateSessionRequest{GraphDef: tt.graph})
		expect(t, err, tt.code, tt.text)
	}
}

func TestConfigsThatAreRejected(t *testing.T) {
	c := psWorker(t)
	for _, tt := range []struct {
		config *pb.ConfigProto
		text   string
	}{
		{&pb.ConfigProto{UsePerSessionThreads: true}, "Distributed session does not support session thread pool options."},
		{&pb.ConfigProto{SessionInterOpThreadPool: []*pb.ThreadPoolOptionProto{{}}}, "Distributed session does not support session thread pool options."},
		{&pb.ConfigProto{DeviceFilters: []string{"garbage"}}, "garbage"},
	} {
		_, err := c.Session(t.Context(), c.Node("worker", 0), one, tt.config)
		expect(t, err, status.InvalidArgument, tt.text)
	}
	_, err := c.Node("worker", 0).Master.Reset(t.Context(), &pb.ResetRequest{DeviceFilters: []string{"garbage"}})
	expect(t, err, status.InvalidArgument, "garbage")
}

func TestExtend(t *testing.T) {
	s := open(t, psWorker(t), one)
	text := one
	for i, name := range []string{"b", "c", "d"} {
		text += name + " = TestAdd(a, a)\n"
		if err := s.Extend(t.Context(), text, i+1); err != nil {
			t.Fatal(err)
		}
		if s.Version != int64(i+1) {
			t.Errorf("version %d, want %d", s.Version, i+1)
		}
		if got := run(t, s, nil, name+":0"); got[0] != 2 {
			t.Errorf("%s is %v, want 2", name, got[0])
		}
	}
	if err := s.Extend(t.Context(), "", 0); err != nil || s.Version != 4 {
		t.Errorf("an empty extension: version %d, %v; want 4", s.Version, err)
	}
	expect(t, s.Extend(t.Context(), one, 0), status.InvalidArgument,
		"GraphDef argument to Extend includes node 'a', which was created by a previous call to Create or Extend in this session.")
	for _, stale := range []int64{3, 5} {
		s.Version = stale
		expect(t, s.Extend(t.Context(), "", 0), status.Aborted, "Current version is 4 but caller expected")
	}
}

// TestNoMemoryToExtend extends a large graph by nothing, which copies it.
func TestNoMemoryToExtend(t *testing.T) {
	text := one
	for i := range 1000 {
		text += fmt.Sprintf("n%d = TestAdd(a, a)\n", i)
	}
	s := open(t, psWorker(t), text)
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1 << 20)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	expect(t, s.Extend(ctx, "", 0), status.ResourceExhausted, "There is not enough memory to extend a graph of 1001 nodes")
}

func TestExtensionThatFailsChangesNothing(t *testing.T) {
	s := open(t, psWorker(t), one)
	expect(t, s.Extend(t.Context(), one+"b = Identity(a)\nc = Identity(b) device=/job:ps/task:9", 1), status.InvalidArgument,
		"was explicitly assigned to")
	if err := s.Extend(t.Context(), one+"b = TestAdd(a, a)", 1); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, nil, "b:0"); got[0] != 2 {
		t.Errorf("got %v, want 2", got[0])
	}
}

func TestConcurrentExtensionsHaveOneWinner(t *testing.T) {
	s := open(t, psWorker(t), one)
	var wg sync.WaitGroup
	codes := make([]status.Code, 8)
	for i := range codes {
		wg.Go(func() {
			mine := *s
			codes[i] = status.CodeOf(mine.Extend(t.Context(), one+"b = TestAdd(a, a)", 1))
		})
	}
	wg.Wait()
	won := 0
	for _, code := range codes {
		switch code {
		case status.OK:
			won++
		case status.Aborted:
		default:
			t.Errorf("unexpected %v", code)
		}
	}
	if won != 1 {
		t.Errorf("%d extensions succeeded, want 1", won)
	}
}

func TestExtendDuringSteps(t *testing.T) {
	s := open(t, psWorker(t), one+"b = TestAdd(a, a) device=/job:ps\n")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				if got, err := s.Run(t.Context(), nil, []string{"b:0"}); err != nil || got[0] != 2 {
					t.Errorf("got %v, %v; want 2", got, err)
				}
			}
		})
	}
	for range 20 {
		if err := s.Extend(t.Context(), "", 0); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

func TestNodesWithStateStayWhereTheyAre(t *testing.T) {
	c := psWorker(t)
	const v = "v = TestVar() device=/job:ps\n"
	s := open(t, c, v)
	run(t, s, nil, "v:0")
	if err := s.Extend(t.Context(), v+"w = TestAdd(v, v) device=/job:worker/task:1", 1); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, nil, "w:0"); got[0] != 4 {
		t.Errorf("got %v, want 4", got[0])
	}
}

func TestListDevices(t *testing.T) {
	c := testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"ps": 1, "worker": 1}, CPUDevices: 2, Kernels: testcluster.Kernels(),
	})
	m := c.Node("worker", 0).Master
	all, err := m.ListDevices(t.Context(), &pb.ListDevicesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"/job:worker/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:1"}
	ps := []string{"/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:1"}
	if got := deviceNames(all.LocalDevice); !slices.Equal(got, own) {
		t.Errorf("local devices %v, want %v", got, own)
	}
	if got := deviceNames(all.RemoteDevice); !slices.Equal(got, ps) {
		t.Errorf("remote devices %v, want %v", got, ps)
	}
	s := open(t, c, "")
	of, err := m.ListDevices(t.Context(), &pb.ListDevicesRequest{SessionHandle: s.Handle})
	if err != nil || len(of.RemoteDevice) > 0 || !slices.Equal(deviceNames(of.LocalDevice), append(own, ps...)) {
		t.Errorf("devices of the session: %v, %v; want all to be local", of, err)
	}
	_, err = m.ListDevices(t.Context(), &pb.ListDevicesRequest{SessionHandle: "zz"})
	expect(t, err, status.InvalidArgument, "Session zz is not found.")
}

func deviceNames(attrs []*pb.DeviceAttributes) []string {
	var out []string
	for _, a := range attrs {
		out = append(out, a.Name)
	}
	return out
}

func TestDeviceFilters(t *testing.T) {
	c := psWorker(t)
	c.Stop("worker", 1) // the session does not need it
	s := openWith(t, c, "v = TestVar() device=/job:ps", &pb.ConfigProto{DeviceFilters: []string{"/job:ps", "/job:worker/task:0"}})
	run(t, s, nil, "v:0")
	of, err := s.Node.Master.ListDevices(t.Context(), &pb.ListDevicesRequest{SessionHandle: s.Handle})
	if err != nil || len(of.LocalDevice) != 2 {
		t.Errorf("devices %v, %v; want 2", of, err)
	}
	// The master's own task is always listed, even if no filter matches it.
	open := openWith(t, c, one, &pb.ConfigProto{DeviceFilters: []string{"/job:nobody"}})
	run(t, open, nil, "a:0")
	_, err = c.Session(t.Context(), c.Node("worker", 0), "a = NoOp() device=/job:worker/task:1",
		&pb.ConfigProto{DeviceFilters: []string{"/job:ps"}})
	expect(t, err, status.InvalidArgument, "/job:worker/task:1")
}

func TestReset(t *testing.T) {
	c := psWorker(t)
	const text = `v = TestVar() device=/job:ps`
	a, b := open(t, c, text), open(t, c, text)
	run(t, a, nil, "v:0")
	run(t, b, nil, "v:0")
	if _, err := a.Node.Master.Reset(t.Context(), &pb.ResetRequest{Container: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*testcluster.Session{a, b} {
		_, err := s.Run(t.Context(), nil, []string{"v:0"})
		expect(t, err, status.Aborted, "Session "+s.Handle+" is not found.")
	}
	if got := run(t, open(t, c, text), nil, "v:0"); got[0] != 3 {
		t.Errorf("got %v after another container was cleared, want 3", got[0])
	}
	if _, err := a.Node.Master.Reset(t.Context(), &pb.ResetRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := run(t, open(t, c, text), nil, "v:0"); got[0] != 1 {
		t.Errorf("got %v after the containers were cleared, want 1", got[0])
	}
}

func TestPlacementIsLogged(t *testing.T) {
	c := psWorker(t)
	s := openWith(t, c, one+"b = TestAdd(a, a) device=/job:ps", &pb.ConfigProto{LogDevicePlacement: true})
	want := []string{
		"a: (Const): /job:", "b: (TestAdd): /job:ps/replica:0/task:0/device:CPU:0\n",
	}
	for _, line := range want {
		if got := s.Node.Placement.String(); !strings.Contains(got, line) {
			t.Errorf("the log is %q, want %q in it", got, line)
		}
	}
}

// A session whose step runs is used, for days if need be: a program may wait in a step for the end
// of a training.
func TestUnusedSessionsAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testcluster.New(t, testcluster.Options{
			Jobs: map[string]int{"worker": 1}, Kernels: testcluster.Kernels(), SessionTTL: time.Minute,
		})
		s, busy := open(t, c, one), open(t, c, one+"b = TestBlock(a)\n")
		used, stuck := open(t, c, one), make(chan error)
		go func() {
			_, err := busy.Run(t.Context(), nil, nil, "b")
			stuck <- err
		}()
		for range 4 {
			<-time.After(30 * time.Second)
			run(t, used, nil, "a:0")
		}
		_, err := s.Run(t.Context(), nil, []string{"a:0"})
		expect(t, err, status.Aborted, "Session "+s.Handle+" is not found.")
		run(t, used, nil, "a:0")
		select {
		case err := <-stuck:
			t.Errorf("a session in use was closed: %v", err)
		default:
		}
		if err := busy.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-stuck //nolint:errcheck // the step fails with its session
	})
}

func TestSessionDefaults(t *testing.T) {
	c := testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"worker": 1}, Kernels: testcluster.Kernels(),
		SessionDefaults: &pb.ConfigProto{AllowSoftPlacement: true, LogDevicePlacement: true},
	})
	s := openWith(t, c, "a = Const() value=float[]{1} device=/cpu:7", &pb.ConfigProto{IsolateSessionState: true})
	if got := s.Node.Placement.String(); !strings.Contains(got, "a: (Const): /job:worker/replica:0/task:0/device:CPU:0") {
		t.Errorf("the placement is %q: the defaults were not taken", got)
	}
}

func TestSessionsThatAreNeverClosed(t *testing.T) {
	c := psWorker(t)
	for range 200 {
		run(t, open(t, c, one), nil, "a:0")
	}
	c.Restart("worker", 0)
	open(t, c, one) // its master has another incarnation: the others drop what the old one has left
	if got := c.Node("ps", 0).Worker.NumSessions(); got != 1 {
		t.Errorf("%d sessions on the parameter server, want 1", got)
	}
}

// logs returns a logger and a function that returns its text.
func logs() (*slog.Logger, func() string) {
	var mu sync.Mutex
	var b bytes.Buffer
	w := writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(p)
	})
	return slog.New(slog.NewTextHandler(w, nil)), func() string {
		mu.Lock()
		defer mu.Unlock()
		return b.String()
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
