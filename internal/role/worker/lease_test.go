package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

// A session ends on a worker after its master, or the request that ends it, has been lost. It does
// not end because it is idle.
func TestLeases(t *testing.T) {
	const timeout = 10 * time.Minute
	master := cluster.Task{Job: "worker", Index: 1}
	toMaster := func(call testcluster.Call) bool { return call.Method == "ListDevices" }
	down := status.Unavailablef("Socket closed")
	block := func(blocked func(testcluster.Call) bool) testcluster.Interceptor {
		return func(_ context.Context, call testcluster.Call) error {
			if blocked(call) {
				return down
			}
			return nil
		}
	}
	for name, tt := range map[string]struct {
		before testcluster.Interceptor // during an hour without a step
		close  bool                    // the client closes the session
		stop   bool                    // the master's task ends, and does not come back
		after  testcluster.Interceptor // from then on
		gone   time.Duration           // when the session is gone, at most; 0 for never
		kept   time.Duration           // how long it stays, at least
	}{
		"idle":                         {kept: 100 * time.Hour},
		"the link is cut for a while":  {close: true, after: testcluster.Once("DeleteWorkerSession", "worker", 0, func() {}), gone: time.Second},
		"the end of a session is lost": {close: true, after: block(func(c testcluster.Call) bool { return c.Method == "DeleteWorkerSession" }), gone: 2 * time.Minute},
		"the master has ended":         {stop: true, gone: timeout + 2*time.Minute, kept: timeout - time.Minute},
		"the master is stopped":        {after: testcluster.Freeze(master.Job, master.Index), gone: timeout + 2*time.Minute, kept: timeout - time.Minute},
		"no way to the master":         {before: block(toMaster), after: block(toMaster), kept: 100 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 2}, Kernels: testcluster.Kernels(), OrphanTimeout: timeout})
				w := c.Node("worker", 0).Worker
				c.Intercept(tt.before)
				s, err := c.Session(t.Context(), c.Node(master.Job, master.Index), "a = TestVar() device=/job:worker/task:0", nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Run(t.Context(), nil, []string{"a:0"}); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Hour) // of the fake clock
				c.Intercept(tt.after)
				if tt.close {
					if err := s.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if tt.stop {
					down := func(call testcluster.Call) bool { return call.Method == "DeleteWorkerSession" }
					c.Intercept(block(down))
					c.Stop(master.Job, master.Index)
				}
				<-time.After(tt.kept)
				if n := w.NumSessions(); tt.kept > 0 && n != 1 {
					t.Fatalf("%d sessions after %v", n, tt.kept)
				}
				if tt.gone == 0 {
					c.Intercept(nil)
					_, err := s.Run(t.Context(), nil, []string{"a:0"})
					if err != nil {
						t.Errorf("a step of an idle session: %v", err)
					}
					return
				}
				<-time.After(tt.gone - tt.kept)
				if sessions, graphs := w.NumSessions(), w.NumSteps(); sessions != 0 || graphs != 0 {
					t.Errorf("%d sessions and %d steps are left", sessions, graphs)
				}
			})
		})
	}
}

// A master that could not end a session on a task does so when it reaches the task again.
func TestLostDeletionIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 2}, Kernels: testcluster.Kernels()})
		s, err := c.Session(t.Context(), c.Node("worker", 1), "a = TestVar() device=/job:worker/task:0", nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Intercept(testcluster.Freeze("worker", 0))
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := c.Node("worker", 0).Worker
		if n := w.NumSessions(); n != 1 {
			t.Fatalf("%d sessions", n)
		}
		c.Intercept(nil)
		<-time.After(time.Minute) // of the fake clock
		if n := w.NumSessions(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}
