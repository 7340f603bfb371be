package master_test

import (
	"fmt"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// TestFailures fails steps, and looks at their root causes.
func TestFailures(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, one+`
		b = TestFail(a) device=/job:ps
		c = TestBlock(a) device=/job:worker/task:1
		d = TestFail(a)`)
	m := c.Node("worker", 0).Master
	for _, targets := range [][]string{{"b", "c"}, {"d"}, {"b", "c"}} {
		if _, err := s.Run(t.Context(), nil, nil, targets...); err == nil {
			t.Fatal("the step does not fail")
		}
	}
	all := m.Failures()
	if len(all) != 2 {
		t.Fatalf("got %v", all)
	}
	for i, want := range []struct {
		task, message string
		count         int64
	}{
		{"/job:ps/replica:0/task:0", "From /job:ps/replica:0/task:0:\nfailed\n\t [[{{node b}}]]", 2},
		{"/job:worker/replica:0/task:0", "From /job:worker/replica:0/task:0:\nfailed\n\t [[{{node d}}]]", 1},
	} {
		f := all[i]
		if f.GetTask() != want.task || f.GetMessage() != want.message || f.GetCount() != want.count || f.GetCode() != "INVALID_ARGUMENT" ||
			f.GetSession() != s.Handle[:8] || f.GetStep() == 0 || f.GetLastNanos() < f.GetFirstNanos() {
			t.Errorf("failure %d is %v", i, f)
		}
	}
}

// TestPlacedGraph describes the graph of a session.
func TestPlacedGraph(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, one+`
		b = TestAdd(a, a) device=/job:ps
		c = TestAdd(b, a)`)
	m := c.Node("worker", 0).Master
	g, err := m.PlacedGraph(s.Handle[:8])
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, n := range g.GetNodes() {
		got += fmt.Sprintln(n.GetName(), g.GetOps()[n.GetOp()], g.GetDevices()[n.GetDevice()], n.GetInputs())
	}
	const want = `a Const /job:worker/replica:0/task:0/device:CPU:0 []
b TestAdd /job:ps/replica:0/task:0/device:CPU:0 [0 0]
c TestAdd /job:worker/replica:0/task:0/device:CPU:0 [1 0]
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for handle, code := range map[string]status.Code{"": status.InvalidArgument, "0123": status.InvalidArgument, "0123456789": status.NotFound} {
		if _, err := m.PlacedGraph(handle); status.CodeOf(err) != code {
			t.Errorf("%q: %v", handle, err)
		}
	}
}

// TestCloseSessions closes sessions by the start of their handle.
func TestCloseSessions(t *testing.T) {
	c := psWorker(t)
	s, other := open(t, c, one), open(t, c, one)
	m := c.Node("worker", 0).Master
	for _, tt := range []struct {
		req  *pb.CloseSessionsRequest
		code status.Code
	}{
		{&pb.CloseSessionsRequest{}, status.InvalidArgument},
		{&pb.CloseSessionsRequest{Handle: s.Handle, Owner: "client a"}, status.InvalidArgument},
		{&pb.CloseSessionsRequest{Handle: s.Handle[:7]}, status.InvalidArgument},
		{&pb.CloseSessionsRequest{Owner: "client a"}, status.NotFound},
		{&pb.CloseSessionsRequest{Handle: s.Handle[:8]}, status.OK},
		{&pb.CloseSessionsRequest{Handle: s.Handle}, status.NotFound},
	} {
		resp, err := m.CloseSessions(t.Context(), tt.req)
		if status.CodeOf(err) != tt.code {
			t.Errorf("%v: %v", tt.req, err)
		}
		if err == nil && (len(resp.GetClosed()) != 1 || resp.GetClosed()[0].GetHandle() != s.Handle[:8]) {
			t.Errorf("closed %v", resp)
		}
	}
	if _, err := s.Run(t.Context(), nil, []string{"a:0"}); status.CodeOf(err) != status.Aborted {
		t.Errorf("a step of the closed session: %v", err)
	}
	if _, err := other.Run(t.Context(), nil, []string{"a:0"}); err != nil {
		t.Errorf("a step of another session: %v", err)
	}
}
