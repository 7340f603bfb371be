package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
)

// outcome is how a server answers a call.
type outcome int

const (
	refused outcome = iota // by the table
	unknown                // as a call for a session that does not exist
	passed                 // to the method, which may fail for other reasons
)

func (o outcome) String() string { return [...]string{"refused", "unknown", "passed"}[o] }

// outcomeOf returns the outcome of an error.
func outcomeOf(err error) outcome {
	switch {
	case status.CodeOf(err) == status.PermissionDenied:
		return refused
	case err != nil && strings.Contains(err.Error(), "Session") && strings.Contains(err.Error(), "is not found"):
		return unknown
	}
	return passed
}

// matrix has a server with TLS, and a connection of each kind of callers.
type matrix struct {
	t       *testing.T
	conns   map[string]*rpc.Conn
	session string // of alice
	worker  string // session of worker/1 on the server
}

// callers are the kinds of callers that have a certificate of the cluster.
var callers = []struct {
	name string
	p    trust.Principal
}{
	{"own", clientPrincipal("research", "alice")},
	{"other's", clientPrincipal("research", "bob")},
	{"other tenant", clientPrincipal("sales", "eve")},
	{"task", taskPrincipal("worker", 1)},
	{"other task", taskPrincipal("worker", 2)},
	{"wrong number", taskPrincipal("worker", 7)},
	{"operator", trust.Principal{Role: trust.Operator, Name: "op"}},
	{"observer", trust.Principal{Role: trust.Observer, Name: "prometheus"}},
	{"anonymous", trust.Principal{Role: trust.Anonymous}},
}

// request returns a request of a method.
func (m *matrix) request(path string) any {
	device := "/job:worker/replica:0/task:1/device:CPU:0"
	key := "/job:worker/replica:0/task:0/device:CPU:0;0000000000000001;" + device + ";x;0:0"
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "Check", "Watch":
		return &pb.GetStatusRequest{} // any empty message
	case "CreateSession":
		return &pb.CreateSessionRequest{GraphDef: &pb.GraphDef{}}
	case "ExtendSession":
		return &pb.ExtendSessionRequest{SessionHandle: m.session, GraphDef: &pb.GraphDef{}}
	case "PartialRunSetup":
		return &pb.PartialRunSetupRequest{SessionHandle: m.session}
	case "RunStep":
		return &message.RunStepRequest{Session: m.session}
	case "CloseSession":
		return &pb.CloseSessionRequest{SessionHandle: m.session}
	case "ListDevices":
		return &pb.ListDevicesRequest{SessionHandle: m.session}
	case "Reset":
		return &pb.ResetRequest{Container: []string{"c"}}
	case "MakeCallable":
		return &pb.MakeCallableRequest{SessionHandle: m.session}
	case "RunCallable":
		return &message.RunCallableRequest{Session: m.session, Handle: 1}
	case "ReleaseCallable":
		return &pb.ReleaseCallableRequest{SessionHandle: m.session}
	case "GetStatus", "GetTask", "GetCluster", "GetTopChannels", "GetServers", "GetServer", "GetServerSockets", "GetChannel", "GetSubchannel", "GetSocket",
		"ServerReflectionInfo", "Record", "GetLog", "SetLogLevel", "GetGraph", "GetScalars":
		return &pb.GetStatusRequest{} // any empty message
	case "CloseSessions":
		return &pb.CloseSessionsRequest{Handle: m.session}
	case "RecordCluster":
		return &pb.RecordClusterRequest{DurationNanos: 1}
	case "CreateWorkerSession":
		return &pb.CreateWorkerSessionRequest{SessionHandle: m.worker, MasterTask: "/job:worker/replica:0/task:1", MasterIncarnation: 1}
	case "DeleteWorkerSession":
		return &pb.DeleteWorkerSessionRequest{SessionHandle: m.worker}
	case "RegisterGraph":
		return &pb.RegisterGraphRequest{SessionHandle: m.worker, CreateWorkerSessionCalled: true, GraphDef: &pb.GraphDef{}}
	case "DeregisterGraph":
		return &pb.DeregisterGraphRequest{SessionHandle: m.worker, CreateWorkerSessionCalled: true, GraphHandle: "g"}
	case "RunGraph":
		return &message.RunGraphRequest{Session: m.worker, SessionCreated: true, GraphHandle: "g"}
	case "CleanupGraph":
		return &pb.CleanupGraphRequest{StepId: 1}
	case "CleanupAll":
		return &pb.CleanupAllRequest{Container: []string{"c"}}
	case "RecvTensor":
		return &message.RecvTensorRequest{StepID: 1, Key: key}
	case "MarkRecvFinished":
		return &pb.MarkRecvFinishedRequest{RequestId: 1}
	case "Logging":
		return &pb.LoggingRequest{}
	case "Tracing":
		return &pb.TracingRequest{}
	case "RecvBuf":
		return &pb.RecvBufRequest{StepId: 1, BufRendezvousKey: "b", SrcDevice: "/job:worker/replica:0/task:0/device:CPU:0", DstDevice: device}
	case "GetStepSequence":
		return &pb.GetStepSequenceRequest{}
	case "CompleteGroup":
		return &pb.CompleteGroupRequest{GroupKey: 1, GroupSize: 1, DeviceType: "CPU", DeviceAttributes: &pb.DeviceAttributes{Name: device, DeviceType: "CPU"}}
	case "CompleteInstance":
		return &pb.CompleteInstanceRequest{GroupKey: 1, GroupSize: 1, InstanceKey: 1, Device: device}
	}
	m.t.Fatalf("the test has no request of %s", path)
	return nil
}

// want returns what the rule of a method says about a caller.
func want(rule trust.Rule, method, caller string) outcome {
	switch rule {
	case trust.Never, trust.OpenOnly:
		return refused
	case trust.Own, trust.OwnNamed:
		if caller != "own" {
			return unknown
		}
	case trust.Master:
		// the answers to these say nothing about an object of another master
		silent := strings.HasSuffix(method, "/DeleteWorkerSession") || strings.HasSuffix(method, "/CleanupGraph")
		if caller != "task" && !silent {
			return unknown
		}
	case trust.Receiver:
		if caller != "task" && !strings.HasSuffix(method, "/MarkRecvFinished") {
			return refused
		}
	case trust.Member, trust.InName:
		if caller != "task" {
			return refused
		}
	case trust.Always, trust.Tenant, trust.OfTenant:
	}
	return passed
}

func newMatrix(t *testing.T, opts ...server.Option) *matrix {
	a := newAuthority(t, "train")
	s := startSecure(t, a, 3, append(opts, server.WithOpenHealth())...)[0]
	m := &matrix{t: t, conns: map[string]*rpc.Conn{}}
	for _, c := range callers {
		if c.p.Role != trust.Anonymous {
			m.conns[c.name] = a.dial(t, s.Address(), c.p)
		}
	}
	m.conns["anonymous"] = dialWithout(t, s.Address())
	m.renew()
	return m
}

// renew makes the sessions that calls may have closed.
func (m *matrix) renew() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 20*time.Second)
	defer cancel()
	resp, err := rpc.NewMasterClient(m.conns["own"], "master").CreateSession(ctx, &pb.CreateSessionRequest{
		GraphDef: &pb.GraphDef{}, Config: &pb.ConfigProto{DeviceFilters: []string{"/job:worker/task:0"}},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.session = resp.GetSessionHandle()
	m.worker = "session of worker 1"
	_, err = rpc.NewWorkerClient(m.conns["task"], "worker").CreateWorkerSession(ctx, &pb.CreateWorkerSessionRequest{
		SessionHandle: m.worker, MasterTask: "/job:worker/replica:0/task:1", MasterIncarnation: 1,
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// call makes a call and returns its outcome.
func (m *matrix) call(path, caller string) (outcome, error) {
	timeout := 5 * time.Second
	if strings.HasSuffix(path, "/Watch") {
		timeout = 50 * time.Millisecond // it lasts until the caller ends it
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), timeout)
	defer cancel()
	err := m.conns[caller].Invoke(ctx, path, m.request(path))
	return outcomeOf(err), err
}

// methods are the rows that the server serves.
func methods(t *testing.T) []*trust.Method {
	t.Helper()
	served := rpcPaths(t)
	var out []*trust.Method
	for i := range trust.Methods {
		if slices.Contains(served, trust.Methods[i].Path) {
			out = append(out, &trust.Methods[i])
		}
	}
	return out
}

func rpcPaths(t *testing.T) []string {
	t.Helper()
	a := newAuthority(t, "train")
	return startSecure(t, a, 1)[0].Methods()
}

// TestEveryMethodHasARow compares the methods of a server with the table.
func TestEveryMethodHasARow(t *testing.T) {
	for _, path := range rpcPaths(t) {
		if trust.Row(path) == nil {
			t.Errorf("%s has no row in the table of package trust: no role may call it", path)
		}
	}
	if n := len(methods(t)); n < 28 {
		t.Errorf("the server serves %d methods of the table", n)
	}
}

// TestMatrix makes a call of every method by every kind of callers, and compares the answer with
// the table.
func TestMatrix(t *testing.T) {
	m := newMatrix(t)
	for _, method := range methods(t) {
		if strings.Contains(method.Path, "eager") {
			continue // package eager tests its contexts
		}
		for _, c := range callers {
			rule := method.Rules[c.p.Role]
			expected := want(rule, method.Path, c.name)
			if c.name == "wrong number" {
				expected = refused
			}
			if c.p.Role == trust.Anonymous && rule == trust.OpenOnly {
				expected = passed
			}
			if got, err := m.call(method.Path, c.name); got != expected {
				t.Errorf("%s by %s: %v (%v), want %v", method.Name(), c.name, got, err, expected)
			}
			if closes := strings.Contains("/CloseSessions/Reset/DeleteWorkerSession", method.Path[strings.LastIndexByte(method.Path, '/'):]); closes {
				m.renew()
			}
		}
	}
}

// TestMatrixNoticesChanges changes each cell of the table that says whether a role may call a
// method at all, and checks that the server then answers otherwise.
func TestMatrixNoticesChanges(t *testing.T) {
	m := newMatrix(t)
	byRole := map[trust.Role]string{trust.Client: "own", trust.Task: "task", trust.Operator: "operator", trust.Observer: "observer", trust.Anonymous: "anonymous"}
	for _, method := range methods(t) {
		if strings.Contains(method.Path, "eager") {
			continue
		}
		for role, caller := range byRole {
			before := method.Rules[role]
			was, err := m.call(method.Path, caller)
			if before == trust.Never || before == trust.OpenOnly {
				method.Rules[role] = trust.Always
			} else {
				method.Rules[role] = trust.Never
			}
			if before == trust.OpenOnly {
				method.Rules[role] = trust.Never
			}
			got, changedErr := m.call(method.Path, caller)
			method.Rules[role] = before
			if (got == refused) == (was == refused) && !(got == refused && changedErr.Error() != err.Error()) {
				t.Errorf("%s by %v: %v before and %v after the change (%v, %v)", method.Name(), role, was, got, err, changedErr)
			}
			if strings.Contains("/CloseSessions/Reset/DeleteWorkerSession", method.Path[strings.LastIndexByte(method.Path, '/'):]) {
				m.renew()
			}
		}
	}
}

// TestRefusalsAreAudited checks that each refused call has one line in the audit log.
func TestRefusalsAreAudited(t *testing.T) {
	var out bytes.Buffer
	l, err := server.OpenAuditLog("stderr", &out, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	m := newMatrix(t, server.WithAudit(l))
	n := 0
	for _, c := range callers {
		path := "/tensorflow.WorkerService/RunGraph"
		if got, _ := m.call(path, c.name); got == refused {
			n++
		}
	}
	lines := strings.Count(out.String(), `"event":"call refused"`)
	if n < 6 || lines != n {
		t.Errorf("%d lines for %d refused calls:\n%s", lines, n, &out)
	}
	for _, text := range []string{`"principal":"client research/alice"`, `"tenant":"research"`, `"role":"observer"`, `"code":"PERMISSION_DENIED"`} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%s is missing:\n%s", text, &out)
		}
	}
}

// TestSessionsAreAudited checks the lines about sessions and resets. They show the first characters
// of a handle only.
func TestSessionsAreAudited(t *testing.T) {
	var out bytes.Buffer
	l, err := server.OpenAuditLog("stderr", &out, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	m := newMatrix(t, server.WithAudit(l))
	first := m.session
	if _, err := m.call("/tensorflow.MasterService/CloseSession", "own"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.call("/tensorflow.MasterService/CloseSession", "other's"); err == nil {
		t.Fatal("a session was closed by another client")
	}
	if _, err := m.call("/tensorflow.MasterService/Reset", "operator"); err != nil {
		t.Fatal(err)
	}
	m.renew()
	if _, err := m.call("/weft.v1.Inspection/CloseSessions", "other's"); status.CodeOf(err) != status.NotFound {
		t.Fatalf("another client gets %v", err)
	}
	if _, err := m.call("/weft.v1.Inspection/CloseSessions", "operator"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	short := `"session":"` + first[:8] + `"`
	for i, want := range [][]string{
		{`"event":"session made"`, `"principal":"client research/alice"`, short, `"code":"OK"`},
		{`"event":"session closed"`, `"principal":"client research/alice"`, short, `"code":"OK"`},
		{`"event":"session closed"`, `"principal":"client research/bob"`, short, `"code":"ABORTED"`},
		{`"event":"reset"`, `"role":"operator"`, `"code":"OK"`},
		{`"event":"session made"`, `"code":"OK"`},
		{`"event":"session closed"`, `"principal":"client research/bob"`, `"code":"NOT_FOUND"`},
		{`"event":"session closed"`, `"role":"operator"`, `"code":"OK"`, `"reason":"CloseSessions"`},
	} {
		for _, text := range want {
			if i >= len(lines) || !strings.Contains(lines[i], text) {
				t.Errorf("line %d lacks %s:\n%s", i, text, &out)
			}
		}
	}
	if strings.Contains(out.String(), m.session) || strings.Contains(out.String(), first) {
		t.Errorf("the log has the handle of a session:\n%s", &out)
	}
}

// TestForgedMaster checks that a task that names another master ends none of its sessions.
func TestForgedMaster(t *testing.T) {
	m := newMatrix(t)
	_, err := rpc.NewWorkerClient(m.conns["other task"], "worker").CreateWorkerSession(t.Context(), &pb.CreateWorkerSessionRequest{
		SessionHandle: "mine", MasterTask: "/job:worker/replica:0/task:1", MasterIncarnation: 2,
	})
	if status.CodeOf(err) != status.PermissionDenied {
		t.Errorf("got %v", err)
	}
	if got, err := m.call("/tensorflow.WorkerService/RegisterGraph", "task"); got != passed {
		t.Errorf("the session of the master has ended: %v", err)
	}
	_, err = rpc.NewWorkerClient(m.conns["other task"], "worker").CreateWorkerSession(t.Context(), &pb.CreateWorkerSessionRequest{
		SessionHandle: m.worker, MasterTask: "/job:worker/replica:0/task:2", MasterIncarnation: 2,
	})
	if status.CodeOf(err) != status.PermissionDenied {
		t.Errorf("a session with the handle of another master: %v", err)
	}
}

// TestSessionsOfPrincipal checks that a client reaches its own limit on sessions, and no other
// client does.
func TestSessionsOfPrincipal(t *testing.T) {
	limits := server.DefaultLimits()
	limits.SessionsPerPrincipal = 1
	m := newMatrix(t, server.WithLimits(limits)) // makes the first session of "own"
	for caller, want := range map[string]status.Code{"own": status.ResourceExhausted, "other's": status.OK} {
		_, err := rpc.NewMasterClient(m.conns[caller], "master").CreateSession(t.Context(), &pb.CreateSessionRequest{
			GraphDef: &pb.GraphDef{}, Config: &pb.ConfigProto{DeviceFilters: []string{"/job:worker/task:0"}},
		})
		if status.CodeOf(err) != want || err != nil && !strings.Contains(err.Error(), "(1, set by --max-sessions-per-principal)") {
			t.Errorf("%s: got %v, want %v", caller, err, want)
		}
	}
}

// TestHandlesCannotBeGuessed looks at the length of handles.
func TestHandlesCannotBeGuessed(t *testing.T) {
	m := newMatrix(t)
	first := m.session
	m.renew()
	if len(first) != 32 || first == m.session {
		t.Errorf("the handles are %s and %s", first, m.session)
	}
}
