package master_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

// TestFaultsOfEveryCall makes each call of a step to one task fail or hang. The client gets an
// error that names the task, or its own timeout; nothing of the step is left; and the session works
// again as soon as the fault ends.
func TestFaultsOfEveryCall(t *testing.T) {
	const text = one + "b = TestAdd(a, a) device=/job:ps\nc = TestAdd(b, a)"
	down := status.Unavailablef("Socket closed")
	for _, tt := range []struct {
		method string
		job    string // of the task that is called
		hangs  bool
		code   status.Code
		text   string
	}{
		{"RegisterGraph", "ps", false, status.Unavailable, "From /job:ps/replica:0/task:0:\nSocket closed"},
		{"RegisterGraph", "ps", true, status.DeadlineExceeded, "Operation timed out."},
		{"RunGraph", "ps", false, status.Unavailable, "From /job:ps/replica:0/task:0:\nSocket closed"},
		{"RunGraph", "ps", true, status.DeadlineExceeded, "Operation timed out."},
		{"RecvTensor", "ps", false, status.Unavailable, "From /job:worker/replica:0/task:0:\nSocket closed"},
		{"RecvTensor", "ps", true, status.DeadlineExceeded, "Operation timed out."},
		{"CleanupGraph", "ps", false, status.OK, ""},
		{"CleanupGraph", "ps", true, status.OK, ""},
	} {
		name := tt.method + map[bool]string{true: " hangs", false: " fails"}[tt.hangs]
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := psWorker(t)
				s := open(t, c, text)
				fault := testcluster.Fail(tt.method, tt.job, 0, down)
				release := make(chan struct{})
				if tt.hangs {
					fault = testcluster.Hold(tt.method, tt.job, 0, release)
				}
				c.Intercept(fault)
				resp, err := s.Step(t.Context(), nil, []string{"c:0"}, nil, &pb.RunOptions{TimeoutInMs: 5000})
				if tt.code == status.OK && err == nil {
					resp.Tensors[0].Tensor.Release()
				} else {
					expect(t, err, tt.code, tt.text)
				}
				c.Intercept(nil)
				close(release)
				if got := run(t, s, nil, "c:0"); got[0] != 3 {
					t.Errorf("afterwards: got %v, want 3", got[0])
				}
				start := time.Now()
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("the session took %v to close", took)
				}
				// The end of the worker session also ends a step whose cleanup was lost.
				synctest.Wait()
				for _, task := range c.Spec().Tasks() {
					w := c.Node(task.Job, task.Index).Worker
					if w.NumSteps() != 0 || w.NumSessions() != 0 {
						t.Errorf("%v still knows %d steps and %d sessions", task, w.NumSteps(), w.NumSessions())
					}
				}
			})
		})
	}
}

// TestTaskRestartsBetweenAnyCalls restarts a task when a given call to it arrives. The step fails
// with Aborted, or because the connection is lost, and a new session works.
func TestTaskRestartsBetweenAnyCalls(t *testing.T) {
	const text = one + "b = TestAdd(a, a) device=/job:ps\nc = TestAdd(b, a)"
	for _, method := range []string{"CreateWorkerSession", "RegisterGraph", "RunGraph", "RecvTensor"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := psWorker(t)
				c.Intercept(testcluster.Once(method, "ps", 0, func() { c.Restart("ps", 0) }))
				s, err := c.Session(t.Context(), c.Node("worker", 0), text, nil)
				if err == nil {
					_, err = s.Step(t.Context(), nil, []string{"c:0"}, nil, &pb.RunOptions{TimeoutInMs: 5000})
				}
				if code := status.CodeOf(err); code != status.Aborted && code != status.Unavailable {
					t.Errorf("got %v: %v", code, err)
				}
				if got := run(t, open(t, c, text), nil, "c:0"); got[0] != 3 {
					t.Errorf("a new session gets %v, want 3", got[0])
				}
			})
		})
	}
}
