package worker

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func recordsWorker(t *testing.T) *Worker {
	w := New(Config{Task: cluster.Task{Job: "worker"}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(w.Close)
	return w
}

// noMemoryLeft lets the process have no memory until the returned function is called.
func noMemoryLeft() (restore func()) {
	limit := membudget.Limit()
	membudget.SetLimit(1)
	membudget.Take(1 << 20) // reads that there is nothing left
	return func() { membudget.SetLimit(limit) }
}

func wantExhausted(t *testing.T, err error) {
	t.Helper()
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("the error is %v", err)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	w := recordsWorker(t)
	create := func(handle, master string, devices ...string) error {
		req := &pb.CreateWorkerSessionRequest{SessionHandle: handle, MasterTask: master}
		for _, d := range devices {
			req.ClusterDeviceAttributes = append(req.ClusterDeviceAttributes, &pb.DeviceAttributes{Name: d})
		}
		_, err := w.CreateWorkerSession(t.Context(), req)
		return err
	}
	if err := create(strings.Repeat("x", maxName), "/job:worker/replica:0/task:0"); err != nil {
		t.Error(err)
	}
	long := strings.Repeat("x", maxName+1)
	for _, err := range []error{create(long, ""), create("s", long), create("s", "", "/job:"+long+"/replica:0/task:0/device:CPU:0")} {
		if status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("a long name: %v", err)
		}
	}
	restore := noMemoryLeft()
	err := create("s", "")
	restore()
	wantExhausted(t, err)
	if err == nil || !strings.Contains(err.Error(), "session s") || !strings.Contains(err.Error(), "--memory-limit") {
		t.Errorf("without memory: %v", err)
	}
	wantExhausted(t, checkCount(maxSessions))
	if n := w.NumSessions(); n != 1 {
		t.Errorf("%d sessions exist", n)
	}
}

func TestGraphsAreBounded(t *testing.T) {
	w := recordsWorker(t)
	restore := noMemoryLeft()
	_, err := w.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{GraphDef: &pb.GraphDef{}})
	restore()
	wantExhausted(t, err)
	_, err = w.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{SessionHandle: strings.Repeat("x", maxName+1)})
	if status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a long handle: %v", err)
	}
	s := newSession("", w.Task, nil, nil)
	for range maxSharedGraphs {
		if _, err := s.add(nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.add(nil)
	wantExhausted(t, err)
}

// The steps of a session are charged once there are many. What ends a step ends its count.
func TestStepsAreCharged(t *testing.T) {
	s := newSteps(nil, nil)
	many, few := newSession("many", cluster.Task{}, nil, nil), newSession("few", cluster.Task{}, nil, nil)
	begin := func(id int64, of *session) error {
		r := &run{session: of}
		st, err := s.begin(id, r)
		if err == nil {
			s.finish(st, r)
		}
		return err
	}
	for i := range int64(maxUncharged) {
		if err := begin(i, many); err != nil {
			t.Fatal(err)
		}
	}
	defer noMemoryLeft()()
	wantExhausted(t, begin(maxUncharged, many))
	for _, err := range []error{begin(1, many), begin(maxUncharged+1, few)} {
		if err != nil {
			t.Errorf("a step that exists, and one of another session: %v", err)
		}
	}
	s.cleanup(0)
	if err := begin(maxUncharged, many); err != nil {
		t.Errorf("after another step has ended: %v", err)
	}
	s.endSession(many, status.Abortedf("ended"))
	if many.steps != 0 || few.steps != 1 {
		t.Errorf("%d and %d steps are counted", many.steps, few.steps)
	}
	s.close(status.Abortedf("closed"))
}

// Steps without a session of their own end when they have been idle long enough.
func TestIdleSteps(t *testing.T) {
	s := newSteps(nil, nil)
	defer s.close(status.Abortedf("closed"))
	legacy, own := newSession("", cluster.Task{}, nil, nil), newSession("s", cluster.Task{}, nil, nil)
	begin := func(id int64, of *session) (*step, *run) {
		r := &run{session: of}
		st, err := s.begin(id, r)
		if err != nil {
			t.Fatal(err)
		}
		return st, r
	}
	const idle, running, again, held, other = 1, 2, 3, 4, 5
	s.finish(begin(idle, legacy))
	st, r := begin(running, legacy)
	s.finish(begin(again, legacy))
	keeps, keepsRun := begin(held, legacy)
	x := tensor.Scalar[float32](1)
	if err := keeps.table.SendText("a;0000000000000001;b;x;0:0", x, false); err != nil {
		t.Fatal(err)
	}
	s.finish(keeps, keepsRun)
	s.finish(begin(other, own))
	sweep := func(n int, want ...int64) {
		t.Helper()
		for range n {
			s.sweep()
		}
		for id := int64(1); id <= other; id++ {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == id
			}
			if s.has(id) != wanted {
				t.Errorf("step %d exists: %v", id, !wanted)
			}
		}
	}
	sweep(idleSweeps, idle, running, again, held, other)
	s.finish(begin(again, legacy))
	sweep(1, running, again, held, other)
	s.finish(st, r)
	sweep(idleSweeps, running, held, other)
	sweep(1, held, other)
	sweep(heldSweeps, other)
	s.mu.Lock()
	if s.sweeper != nil {
		t.Error("sweeps go on without steps")
	}
	s.mu.Unlock()
}

func TestStepSequenceIsBounded(t *testing.T) {
	w := recordsWorker(t)
	_, err := w.GetStepSequence(t.Context(), &pb.GetStepSequenceRequest{GraphKey: make([]int64, maxSequences+1)})
	wantExhausted(t, err)
	if _, err := w.GetStepSequence(t.Context(), &pb.GetStepSequenceRequest{GraphKey: make([]int64, maxSequences)}); err != nil {
		t.Error(err)
	}
}
