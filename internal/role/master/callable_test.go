package master_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func makeCallable(t *testing.T, s *testcluster.Session, options *pb.CallableOptions) int64 {
	t.Helper()
	resp, err := s.Node.Master.MakeCallable(t.Context(), &pb.MakeCallableRequest{SessionHandle: s.Handle, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetHandle()
}

func callableOf(fetch string, feeds ...string) *pb.CallableOptions {
	return &pb.CallableOptions{Feed: feeds, Fetch: []string{fetch}}
}

func releaseCallable(t *testing.T, s *testcluster.Session, handle int64) {
	t.Helper()
	if _, err := s.Node.Master.ReleaseCallable(t.Context(), &pb.ReleaseCallableRequest{SessionHandle: s.Handle, Handle: handle}); err != nil {
		t.Error(err)
	}
}

func runCallable(t *testing.T, s *testcluster.Session, handle int64, feeds ...float32) ([]float32, error) {
	t.Helper()
	req := &message.RunCallableRequest{Session: s.Handle, Handle: handle}
	for _, f := range feeds {
		req.Feeds = append(req.Feeds, scalar(f))
	}
	resp, err := s.Node.Master.RunCallable(t.Context(), req)
	if err != nil {
		return nil, err
	}
	var out []float32
	for i := range resp.Fetches {
		out = append(out, tensor.Value[float32](&resp.Fetches[i]))
	}
	return out, nil
}

func TestCallable(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, pieces)
	handle := makeCallable(t, s, &pb.CallableOptions{
		Feed: []string{"c:0", "a:0", "b:0"}, Fetch: []string{"abc:0", "ab:0", "abc:0"}, Target: []string{"abc"},
	})
	if handle != 0 {
		t.Errorf("handle %d, want 0", handle)
	}
	c.Calls()
	for i := range 3 {
		n := float32(i)
		got, err := runCallable(t, s, handle, 100, 10, n)
		if err != nil || len(got) != 3 || got[0] != 110+n || got[1] != 10+n || got[2] != 110+n {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if n := testcluster.Count(c.Calls(), "RegisterGraph"); n != 0 {
		t.Errorf("%d parts were registered, want none", n)
	}
}

func TestCallableMisuse(t *testing.T) {
	s := open(t, psWorker(t), pieces)
	m := s.Node.Master
	handle := makeCallable(t, s, callableOf("ab:0", "a:0", "b:0"))
	_, err := runCallable(t, s, handle, 1)
	expect(t, err, status.InvalidArgument, "has 2 feeds, and 1 were given")
	if got, err := runCallable(t, s, handle, 1, 2, 3); err != nil || got[0] != 3 {
		t.Errorf("with a feed too many: %v, %v; want 3", got, err)
	}
	_, err = runCallable(t, s, handle+1)
	expect(t, err, status.InvalidArgument, "No such callable handle: 1")
	_, err = runCallable(t, s, -1)
	expect(t, err, status.InvalidArgument, "Attempted to run callable after handle was released: -1")
	for range 2 {
		releaseCallable(t, s, handle)
	}
	_, err = runCallable(t, s, handle, 1, 2)
	expect(t, err, status.InvalidArgument, "Attempted to run callable after handle was released: 0")

	for _, tt := range []struct {
		options *pb.CallableOptions
		code    status.Code
		text    string
	}{
		{&pb.CallableOptions{Fetch: []string{"a:0"}, FetchDevices: map[string]string{"a:0": "/gpu:0"}}, status.Unimplemented, "CallableOptions::feed_devices"},
		{&pb.CallableOptions{}, status.InvalidArgument, "Must specify at least one target"},
		{&pb.CallableOptions{Feed: []string{"a:0", "a:0"}, Fetch: []string{"ab:0"}}, status.InvalidArgument, "fed more than once"},
		{&pb.CallableOptions{Fetch: []string{"ab:0"}, TensorConnection: []*pb.TensorConnection{{FromTensor: "zz:0", ToTensor: "a:0"}}},
			status.InvalidArgument, `Requested tensor connection from unknown node: "a:0".`},
		{&pb.CallableOptions{Fetch: []string{"ab:0"}, TensorConnection: []*pb.TensorConnection{{FromTensor: "a:9", ToTensor: "b:0"}}},
			status.InvalidArgument, `Requested tensor connection from unknown edge: "b:0" (actual number of outputs = 1).`},
		{&pb.CallableOptions{Fetch: []string{"ab:0"}, TensorConnection: []*pb.TensorConnection{{FromTensor: "a:0", ToTensor: "zz:0"}}},
			status.NotFound, "unable to find feed output zz:0"},
		{&pb.CallableOptions{Fetch: []string{"ab:0"}, TensorConnection: []*pb.TensorConnection{{FromTensor: "a:0", ToTensor: "b:7"}}},
			status.InvalidArgument, "FeedInputs: b:7 should have output index < 1"},
		{&pb.CallableOptions{Feed: []string{"b:0"}, Fetch: []string{"ab:0"}, TensorConnection: []*pb.TensorConnection{{FromTensor: "a:0", ToTensor: "b:0"}}},
			status.InvalidArgument, `Endpoint "b:0" fed more than once.`},
	} {
		_, err := m.MakeCallable(t.Context(), &pb.MakeCallableRequest{SessionHandle: s.Handle, Options: tt.options})
		expect(t, err, tt.code, tt.text)
	}
}

func TestCallableWithConnections(t *testing.T) {
	s := open(t, psWorker(t), pieces)
	handle := makeCallable(t, s, &pb.CallableOptions{
		Feed: []string{"a:0", "b:0"}, Fetch: []string{"abc:0"},
		TensorConnection: []*pb.TensorConnection{{FromTensor: "ab:0", ToTensor: "c:0"}},
	})
	if got, err := runCallable(t, s, handle, 1, 2); err != nil || got[0] != 6 {
		t.Errorf("got %v, %v; want 6", got, err)
	}
}

func TestCallableHasItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, psWorker(t), one+"b = TestBlock(a) device=/job:ps")
		handle := makeCallable(t, s, &pb.CallableOptions{Target: []string{"b"}, RunOptions: &pb.RunOptions{TimeoutInMs: 2000}})
		_, err := runCallable(t, s, handle)
		expect(t, err, status.DeadlineExceeded, "Operation timed out.")
	})
}

func TestReleasedCallableIsDroppedByWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		s := open(t, c, pieces)
		handle := makeCallable(t, s, callableOf("ab:0", "a:0", "b:0"))
		c.Calls()
		releaseCallable(t, s, handle)
		synctest.Wait()
		if n := testcluster.Count(c.Calls(), "DeregisterGraph"); n != 1 {
			t.Errorf("%d graphs were dropped on other tasks, want 1", n)
		}
	})
}

// A client may name as many feeds, fetches and targets as a graph may have nodes, by every method.
func TestTooManyNames(t *testing.T) {
	c := testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"ps": 1, "worker": 2}, Kernels: testcluster.Kernels(), Quota: quota.Limits{Nodes: 8},
	})
	s := open(t, c, pieces)
	feeds := []string{"a:0", "b:0"}
	fetches := slices.Repeat([]string{"ab:0"}, 6)
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s with nine names is not refused", what)
		}
		expect(t, err, status.ResourceExhausted, "The step has 9 feeds, fetches and targets", "8 (--max-graph-nodes)")
	}
	_, err := s.Run(t.Context(), testcluster.Feeds{"a:0": scalar(1), "b:0": scalar(2)}, append(fetches, "ab:0"))
	refused("RunStep", err)
	_, err = s.PartialSetup(t.Context(), feeds, fetches, "ab")
	refused("PartialRunSetup", err)
	_, err = s.Node.Master.MakeCallable(t.Context(), &pb.MakeCallableRequest{
		SessionHandle: s.Handle, Options: &pb.CallableOptions{Feed: feeds, Fetch: fetches, Target: []string{"ab"}},
	})
	refused("MakeCallable", err)
	if _, err := s.PartialSetup(t.Context(), feeds, fetches); err != nil {
		t.Errorf("eight names: %v", err)
	}
}
