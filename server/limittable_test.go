package server

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A limitRow is a row of the table of limits.
type limitRow struct {
	flag string
	// set makes the limit so tight that reach reaches it
	set   func(*Limits)
	reach func(attacker) error
	code  status.Code
	// test is the test that reaches the limit if reach is nil, as "folder TestName"
	test string
}

// limitTable has a row for each label of weft_limited_total. Limits of connections, of time and of
// files have tests in their packages.
var limitTable = map[string]limitRow{
	"connections":           {flag: "--max-connections", test: "internal/transport/grpch2 TestConnectionLimits"},
	"address_connections":   {flag: "--max-connections-per-address", test: "internal/transport/grpch2 TestConnectionLimits"},
	"principal_connections": {flag: "--max-connections-per-principal", test: "internal/transport/grpch2 TestConnectionsOfName"},
	"handshake":             {flag: "--handshake-timeout", test: "internal/transport/grpch2 TestSlowPeers"},
	"frame":                 {flag: "--frame-timeout", test: "internal/transport/grpch2 TestSlowPeers"},
	"idle":                  {flag: "--idle-timeout", test: "internal/transport/grpch2 TestSlowPeers"},
	"request":               {flag: "--request-timeout", test: "internal/transport/grpch2 TestSlowRequest"},
	"response":              {flag: "--response-timeout", test: "internal/transport/grpch2 TestSlowReader"},
	"keepalive":             {flag: "--keepalive-timeout", test: "internal/transport/grpch2 TestServerKeepalive"},
	"streams":               {flag: "--max-streams", test: "internal/transport/grpch2 TestStreamLimit"},
	"request_size": {flag: "--max-request-size", set: func(l *Limits) { l.RequestSize = 1000 }, reach: func(a attacker) error {
		return a.send(rpc.MethodRunStep, &pb.RunStepRequest{SessionHandle: strings.Repeat("x", 1000)})
	}},
	"graph_size": {flag: "--max-graph-size", set: func(l *Limits) { l.GraphSize = 1000 }, reach: func(a attacker) error {
		return newSession(a, &pb.GraphDef{Node: make([]*pb.NodeDef, 1000)})
	}},
	"decompression": {flag: "--max-decompression", test: "internal/transport/grpch2 TestRequestSizes"},
	"nodes":         {flag: "--max-graph-nodes", set: func(l *Limits) { l.GraphNodes = 10_000 }, reach: func(a attacker) error { return newSession(a, nodes(10_001)) }},
	"edges": {flag: "--max-graph-edges", set: func(l *Limits) { l.GraphEdges = 10_000 }, reach: func(a attacker) error {
		return newSession(a, &pb.GraphDef{Node: []*pb.NodeDef{{Name: "n", Op: "NoOp", Input: slices.Repeat([]string{"^x"}, 10_001)}}})
	}},
	"functions": {flag: "--max-graph-functions", set: func(l *Limits) { l.GraphFunctions = 10_000 }, reach: func(a attacker) error {
		g := &pb.GraphDef{Library: &pb.FunctionDefLibrary{}}
		for range 10_001 {
			g.Library.Function = append(g.Library.Function, &pb.FunctionDef{})
		}
		return newSession(a, g)
	}},
	"sessions": {flag: "--max-sessions", set: func(l *Limits) { l.Sessions = 1 }, reach: func(a attacker) error {
		return repeated(2, func() error { return newSession(a, nodes(1)) })
	}},
	"principal_sessions": {flag: "--max-sessions-per-principal", test: "server TestSessionsOfPrincipal"},
	"session_time":       {flag: "--session-ttl", test: "internal/role/master TestUnusedSessionsAreCollected"},
	"partial_runs":       {flag: "--max-partial-runs", test: "server TestCountsOfSessions"},
	"callables":          {flag: "--max-callables", test: "server TestCountsOfSessions"},
	"partial_run_time":   {flag: "--partial-run-timeout", test: "internal/role/master TestUnusedPartialRuns"},
	"step_time": {
		flag: "--max-step-time", set: func(l *Limits) { l.StepTime = 1 }, code: status.DeadlineExceeded,
		reach: func(a attacker) error {
			return a.graph("q = FIFOQueueV2() component_types=[float]\ny = QueueDequeueV2(q) component_types=[float]\n")
		},
	},
	"early_steps":      {flag: "--max-early-steps", set: func(l *Limits) { l.EarlySteps = 2 }, reach: earlySteps},
	"peer_early_steps": {flag: "--max-early-steps-per-peer", set: func(l *Limits) { l.EarlyStepsPerPeer = 2 }, reach: earlySteps},
	"trace_records":    {flag: "--max-trace-records", set: func(l *Limits) { l.TraceRecords = 1 }, reach: traced, code: status.OK},
	"step_memory":      {flag: "--max-step-memory", set: func(l *Limits) { l.StepMemory = 1 << 20 }, reach: func(a attacker) error { return a.graph(largeFill) }},
	"session_memory":   {flag: "--max-session-memory", set: func(l *Limits) { l.SessionMemory = 1 << 20 }, reach: func(a attacker) error { return a.graph(largeFill) }},
	"tenant_memory":    {flag: "--max-tenant-memory", set: func(l *Limits) { l.TenantMemory = 1 << 20 }, reach: func(a attacker) error { return a.graph(largeFill) }},
	"file_calls":       {flag: "--max-file-calls", test: "internal/format/fileio TestLimits"},
	"file_names":       {flag: "--max-file-names", test: "internal/format/fileio TestLimits"},
	"memory": {flag: "--memory-limit", reach: func(a attacker) error {
		limit := membudget.Limit()
		membudget.SetLimit(1)
		defer membudget.SetLimit(limit)
		return a.graph(strings.Replace(largeFill, "1000000", "30000000", 1))
	}},
}

// newSession creates a session with a graph.
func newSession(a attacker, g *pb.GraphDef) error {
	for i, n := range g.Node {
		if n == nil {
			g.Node[i] = &pb.NodeDef{}
		}
	}
	_, err := a.session(g)
	return err
}

// nodes returns a graph of n nodes.
func nodes(n int) *pb.GraphDef {
	g := &pb.GraphDef{}
	for i := range n {
		g.Node = append(g.Node, &pb.NodeDef{Name: fmt.Sprintf("n%d", i), Op: "NoOp"})
	}
	return g
}

func repeated(n int, f func() error) error {
	for range n {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// earlySteps asks for tensors of three steps that no master has started. It returns the error of
// the first call that does not wait.
func earlySteps(a attacker) error {
	ctx, cancel := context.WithCancel(a.t.Context())
	errs := make(chan error, 3)
	for i := range int64(3) {
		req := a.received("t", 1000+i)
		go func() { errs <- a.conn.Invoke(ctx, rpc.MethodRecvTensor, req) }()
	}
	err := <-errs
	cancel()
	_, _ = <-errs, <-errs // the others are cancelled
	return err
}

// traced runs a traced step. The trace has a note in place of the records that are left out.
func traced(a attacker) error {
	handle := a.textSession("a = Placeholder() dtype=float shape=[]\nb = Identity(a)\nc = Neg(b)\ny = Abs(c)\n")
	resp, err := rpc.NewMasterClient(a.conn, "test").RunStep(a.t.Context(), &message.RunStepRequest{
		Session: handle, Fetches: []string{"y:0"}, Options: &pb.RunOptions{TraceLevel: pb.RunOptions_FULL_TRACE},
		Feeds: []message.NamedTensor{{Name: "a:0", Tensor: tensor.Scalar(float32(1))}},
	})
	if err != nil {
		return err
	}
	defer resp.Release()
	if resp.Err == nil && !strings.Contains(fmt.Sprint(resp.Metadata), "the rest of the trace is left out") {
		a.t.Errorf("the trace has no note: %v", resp.Metadata.GetStepStats())
	}
	if resp.Err != nil {
		return resp.Err
	}
	return nil
}

// Every limit has a flag, is reached by a test, has an error that names its value and flag, is
// counted, and is in the table of docs/internals/transport.md.
func TestLimitTable(t *testing.T) {
	doc, err := os.ReadFile("../docs/internals/transport.md")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := quotaServer(t)
	if have, want := slices.Sorted(maps.Keys(limitTable)), slices.Sorted(maps.Keys(s.Limited())); !slices.Equal(have, want) {
		t.Fatalf("the table has %v, the server %v", have, want)
	}
	for label, row := range limitTable {
		if !regexp.MustCompile(`(?m)^\|.*\| .` + row.flag + `. \| .*\| .` + label + `. \|`).Match(doc) {
			t.Errorf("%s: the page has no row with %s and the label", label, row.flag)
		}
		if row.reach == nil {
			checkTestExists(t, label, row.test)
			continue
		}
		t.Run(label, func(t *testing.T) {
			l := DefaultLimits()
			if row.set != nil {
				row.set(&l)
			}
			s, a := quotaServer(t, WithLimits(l))
			a.t = t
			before := s.Limited()[label]
			err := row.reach(a)
			switch {
			case row.code == status.DeadlineExceeded:
				wantError(t, err, row.code, row.flag)
			case label == "trace_records":
				wantError(t, err, status.OK)
			default:
				wantError(t, err, status.ResourceExhausted, row.flag)
			}
			if s.Limited()[label] == before {
				t.Error("it is not counted")
			}
		})
	}
}

// checkTestExists checks that a folder has a test.
func checkTestExists(t *testing.T, label, test string) {
	t.Helper()
	dir, name, _ := strings.Cut(test, " ")
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if src, err := os.ReadFile(path); err == nil && bytes.Contains(src, []byte("func "+name+"(t *testing.T)")) {
			return
		}
	}
	t.Errorf("%s: there is no test %q", label, test)
}
