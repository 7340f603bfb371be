package server

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// quotaServer starts a server and returns a client for it.
func quotaServer(t *testing.T, opts ...Option) (*Server, attacker) {
	t.Helper()
	s, err := New(cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("127.0.0.1:0")}, Job: "ps", CPUDevices: 1}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return s, attacker{t, conn, 20 * time.Second}
}

// wantError checks the code of an error and that it contains all texts.
func wantError(t *testing.T, err error, code status.Code, texts ...string) {
	t.Helper()
	if status.CodeOf(err) != code {
		t.Errorf("got %v: %v, want %v", status.CodeOf(err), err, code)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not contain %q: %v", text, err)
		}
	}
}

const largeFill = `
n = Const() value=int32[1]{1000000}
v = Const() value=float[]{1}
p = PlaceholderWithDefault(v) shape=[]
f = Fill(n, p)
d = Const() value=int32[1]{0}
y = Sum(f, d)
`

// A step over the limit of its step, session or tenant fails, and gives back what it took.
func TestOwnersOfMemory(t *testing.T) {
	for flag, set := range map[string]func(*Limits, int64){
		"--max-step-memory":    func(l *Limits, n int64) { l.StepMemory = n },
		"--max-session-memory": func(l *Limits, n int64) { l.SessionMemory = n },
		"--max-tenant-memory":  func(l *Limits, n int64) { l.TenantMemory = n },
	} {
		l := DefaultLimits()
		set(&l, 1<<20)
		s, a := quotaServer(t, WithLimits(l))
		for range 2 {
			wantError(t, a.graph(largeFill), status.ResourceExhausted, "OOM when allocating", flag, "{{node f}}")
		}
		if err := a.graph(strings.Replace(largeFill, "1000000", "1000", 1)); err != nil {
			t.Errorf("%s: a small step fails: %v", flag, err)
		}
		label := strings.ReplaceAll(strings.TrimPrefix(flag, "--max-"), "-", "_")
		if n := s.Limited()[label]; n < 2 {
			t.Errorf("%s: %d steps are counted, want 2", flag, n)
		}
		for tenant, used := range s.quota.TenantMemory() {
			if used > 1<<20 {
				t.Errorf("%s: %d bytes of the tenant %q are left", flag, used, tenant)
			}
		}
	}
}

// What a queue holds is paid by the session, step after step.
func TestQueuesBelongToTheSession(t *testing.T) {
	l := DefaultLimits()
	l.SessionMemory = 10 << 20
	_, a := quotaServer(t, WithLimits(l))
	handle := a.textSession(`
n = Const() value=int32[1]{1000000}
v = Const() value=float[]{1}
p = PlaceholderWithDefault(v) shape=[]
f = Fill(n, p)
q = FIFOQueueV2() component_types=[float]
y = QueueEnqueueV2(q, f)
z = QueueDequeueV2(q) component_types=[float]
`)
	run := func(target string) error {
		return a.send(rpc.MethodRunStep, &pb.RunStepRequest{SessionHandle: handle, Target: []string{target}})
	}
	var err error
	n := 0
	for ; err == nil && n < 10; n++ {
		err = run("y")
	}
	wantError(t, err, status.ResourceExhausted, "--max-session-memory")
	if n < 2 {
		t.Errorf("%d elements of 4 MB fit into 10 MiB", n-1)
	}
	if err := run("z"); err != nil {
		t.Fatal(err)
	}
	if err := run("y"); err != nil {
		t.Errorf("after an element was taken: %v", err)
	}
}

func TestCountsOfSessions(t *testing.T) {
	l := DefaultLimits()
	l.Sessions, l.PartialRuns, l.Callables = 1, 2, 2
	s, a := quotaServer(t, WithLimits(l))
	handle := a.textSession("a = Placeholder() dtype=float\ny = Identity(a)\n")
	_, err := a.session(&pb.GraphDef{})
	wantError(t, err, status.ResourceExhausted, "--max-sessions")
	for i := range 3 {
		err := a.send(rpc.MethodPartialRunSetup, &pb.PartialRunSetupRequest{SessionHandle: handle, Feed: []string{"a:0"}, Fetch: []string{"y:0"}})
		if i < 2 && err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			wantError(t, err, status.ResourceExhausted, "--max-partial-runs")
		}
	}
	for i := range 3 {
		err := a.send(rpc.MethodMakeCallable, &pb.MakeCallableRequest{
			SessionHandle: handle, Options: &pb.CallableOptions{Feed: []string{"a:0"}, Fetch: []string{"y:0"}},
		})
		if i < 2 && err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			wantError(t, err, status.ResourceExhausted, "--max-callables")
		}
	}
	hits := s.Limited()
	if hits["sessions"] != 1 || hits["partial_runs"] != 1 || hits["callables"] != 1 {
		t.Errorf("hits: %v", hits)
	}
	if err := a.send(rpc.MethodCloseSession, &pb.CloseSessionRequest{SessionHandle: handle}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.session(&pb.GraphDef{}); err != nil {
		t.Errorf("after the session was closed: %v", err)
	}
}

func TestStepTime(t *testing.T) {
	l := DefaultLimits()
	l.StepTime = 50 * time.Millisecond
	_, a := quotaServer(t, WithLimits(l))
	err := a.graph("q = FIFOQueueV2() component_types=[float]\ny = QueueDequeueV2(q) component_types=[float]\n")
	wantError(t, err, status.DeadlineExceeded)
}

// Operations that the task does not run are refused where a step needs them, also in functions.
func TestOperations(t *testing.T) {
	for _, c := range []struct {
		set, denied string
		text        string
		want        []string // texts of the error; nil for none
	}{
		{"serving", "", "p = Const() value=string[]{\"/nowhere\"}\nw = WriteFile(p, p)\ny = Identity(p, ^w)\n", []string{"WriteFile", "files-write", "--ops serving", "{{node w}}"}},
		{"serving", "", "p = Const() value=string[]{\"/nowhere\"}\nw = WriteFile(p, p)\ny = Identity(p)\n", nil},
		{"training", "", "p = Const() value=string[]{\"/nowhere\"}\nw = PrintV2(p)\ny = Identity(p, ^w)\n", []string{"PrintV2", "--ops training"}},
		{"all", "MatMul", "a = Const() value=float[1,1]{2}\nb = PlaceholderWithDefault(a) shape=[1,1]\ny = MatMul(b, b)\n", []string{"MatMul", "--deny-op MatMul", "{{node y}}"}},
	} {
		var denied []string
		if c.denied != "" {
			denied = []string{c.denied}
		}
		p, err := kernel.NewPolicy(c.set, denied)
		if err != nil {
			t.Fatal(err)
		}
		_, a := quotaServer(t, WithOperations(p))
		err = a.graph(c.text)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		wantError(t, err, status.PermissionDenied, c.want...)
		// the worker refuses it as well
		wantError(t, a.register(c.text), status.PermissionDenied, c.want...)
	}
	for _, bad := range [][2]string{{"some", ""}, {"all", "NoSuchOperation"}} {
		var denied []string
		if bad[1] != "" {
			denied = []string{bad[1]}
		}
		_, err := kernel.NewPolicy(bad[0], denied)
		wantError(t, err, status.InvalidArgument)
	}
}

// A write to a variable whose value a step still holds copies it, and the owners pay for the copy.
func TestCopiesOfVariables(t *testing.T) {
	const size = 1 << 20 // of the value, in bytes
	begin := `
n = Const() value=int32[1]{%d}
e = Const() value=%s
f = Fill(n, e)
v = %s
init = %s
r = %s
z = Neg(r, ^u)
i = Const() value=int32[1]{0}
at = Const() value=int32[1,1]{0}
x = Const() value=float[1]{1}
one = Const() value=float[]{1}
begin = Const() value=int32[1]{0}
end = Const() value=int32[1]{1}
shape = Const() value=int32[1]{1}
flat = Const() value=int32[1]{-1}
`
	floats := fmt.Sprintf(begin, size/4, "float[]{0}", "VarHandleOp() dtype=float shape=[?]", "AssignVariableOp(v, f) dtype=float",
		"ReadVariableOp(v) dtype=float")
	ref := fmt.Sprintf(begin, size/4, "float[]{0}", "VariableV2() dtype=float shape=["+strconv.Itoa(size/4)+"]", "Assign(v, f)", "Reshape(v, flat)")
	for name, graph := range map[string]string{
		"ScatterAdd":                floats + "u = ResourceScatterAdd(v, i, x, ^r) dtype=float",
		"ScatterNdAdd":              floats + "u = ResourceScatterNdAdd(v, at, x, ^r)",
		"StridedSliceAssign":        floats + "u = ResourceStridedSliceAssign(v, begin, end, shape, x, ^r)",
		"SparseApplyProximal":       ref + "u = SparseApplyProximalGradientDescent(v, one, one, one, x, i, ^r)",
		"ScatterSub of a reference": ref + "u = ScatterSub(v, i, x, ^r)",
		"SdcaShrinkL1":              ref + "u = SdcaShrinkL1(v, ^r) num_features=1 l1=0.0 l2=1.0",
	} {
		for _, c := range []struct {
			limit int64
			want  status.Code
		}{{size * 3 / 2, status.ResourceExhausted}, {size * 5 / 2, status.OK}} {
			l := DefaultLimits()
			l.SessionMemory = c.limit
			_, a := quotaServer(t, WithLimits(l))
			handle := a.textSession(graph)
			run := func(target string) error {
				return a.send(rpc.MethodRunStep, &pb.RunStepRequest{SessionHandle: handle, Target: []string{target}})
			}
			if err := run("init"); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			err := run("z")
			if status.CodeOf(err) != c.want {
				t.Errorf("%s, a session of %d bytes: got %v, want %v", name, c.limit, err, c.want)
			}
			if c.want == status.ResourceExhausted {
				wantError(t, err, c.want, "--max-session-memory", "{{node u}}")
			}
		}
	}
}
