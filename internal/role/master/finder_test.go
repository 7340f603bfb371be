package master_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

func TestSessionWaitsForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, logged := logs()
		c := testcluster.New(t, testcluster.Options{
			Jobs: map[string]int{"ps": 1, "worker": 2}, Kernels: testcluster.Kernels(), Log: log,
		})
		c.Stop("ps", 0)
		go func() {
			<-time.After(25 * time.Second)
			c.Start("ps", 0)
		}()
		start := time.Now()
		run(t, open(t, c, one+"b = TestAdd(a, a) device=/job:ps"), nil, "b:0")
		if took := time.Since(start); took < 25*time.Second || took > 27*time.Second {
			t.Errorf("the session took %v, want little more than 25s", took)
		}
		got := logged()
		if n := strings.Count(got, "level=WARN msg=\"CreateSession still waiting for response from worker\""); n != 2 || !strings.Contains(got, "peer=/job:ps/replica:0/task:0") {
			t.Errorf("the wait was logged %d times, want 2 with the task's name:\n%s", n, got)
		}
	})
}

func TestWaitForTasksEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		c.Stop("ps", 0)
		c.Stop("worker", 1)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := c.Session(ctx, c.Node("worker", 0), one, nil)
		expect(t, err, status.DeadlineExceeded, "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1")
		_, err = c.Session(t.Context(), c.Node("worker", 0), one, &pb.ConfigProto{OperationTimeoutInMs: 500})
		expect(t, err, status.DeadlineExceeded, "Operation timed out.")
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err = c.Node("worker", 0).Master.ListDevices(ctx, &pb.ListDevicesRequest{})
		expect(t, err, status.Cancelled, "waiting for the devices of")
	})
}

func TestTaskThatAnswersWithAnErrorEndsTheWait(t *testing.T) {
	c := psWorker(t)
	c.Stop("worker", 1)
	c.Intercept(testcluster.Fail("GetStatus", "ps", 0, status.Unimplementedf("not here")))
	_, err := c.Session(t.Context(), c.Node("worker", 0), one, nil)
	expect(t, err, status.Unimplemented, "From /job:ps/replica:0/task:0:\nnot here")
}

func TestTaskThatTakesNoSessionIsNamed(t *testing.T) {
	c := psWorker(t)
	c.Intercept(testcluster.Fail("CreateWorkerSession", "ps", 0, status.Internalf("full")))
	_, err := c.Session(t.Context(), c.Node("worker", 0), one, nil)
	expect(t, err, status.Internal, "From /job:ps/replica:0/task:0:\nfull")
	if n := c.Node("worker", 1).Worker.NumSessions(); n != 0 {
		t.Errorf("%d sessions are left on another task, want none", n)
	}
}
