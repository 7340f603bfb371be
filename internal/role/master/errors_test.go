package master_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func TestErrorNamesTaskAndNode(t *testing.T) {
	s := open(t, psWorker(t), one+`
		b = TestFail(a) device=/job:ps code=9 message="no luck"
		c = TestAdd(b, a)`)
	_, err := s.Run(t.Context(), nil, []string{"c:0"})
	expect(t, err, status.FailedPrecondition, "From /job:ps/replica:0/task:0:\nno luck\n\t [[{{node b}}]]")
}

func TestErrorOfOneTaskEndsTheOthers(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, one+`
		b = TestFail(a) device=/job:ps
		c = TestBlock(a) device=/job:worker/task:1
		d = TestBlock(a)`)
	_, err := s.Run(t.Context(), nil, nil, "b", "c", "d")
	expect(t, err, status.InvalidArgument, "From /job:ps/replica:0/task:0:\nfailed\n\t [[{{node b}}]]")
	if strings.Contains(err.Error(), "====") {
		t.Errorf("errors that follow are listed: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestErrorsOfSeveralTasks makes two tasks fail independently at the same time, and a third as a
// consequence.
func TestErrorsOfSeveralTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, clusterThatFailsTogether(t), one+`
			p = FailLate(a) device=/job:ps
			w = FailLate(a) device=/job:worker/task:1
			d = TestBlock(a)`)
		_, err := s.Run(t.Context(), nil, nil, "p", "w", "d")
		expect(t, err, status.Internal)
		want := `
=====================
INTERNAL: From /job:worker/replica:0/task:1:
late
	 [[{{node w}}]]
INTERNAL: From /job:ps/replica:0/task:0:
late
	 [[{{node p}}]]
=====================
`
		if err.Error() != want {
			t.Errorf("got %q\nwant %q", err, want)
		}
	})
}

// clusterThatFailsTogether has an operation FailLate that fails after a second, even if the step
// was cancelled in between.
func clusterThatFailsTogether(t *testing.T) *testcluster.Cluster {
	return testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"ps": 1, "worker": 2},
		Kernels: testcluster.Kernels(testcluster.Op("FailLate", []string{"x: float"}, []string{"y: float"},
			kernel.Stateless(func(*kernel.Context) error {
				<-time.After(time.Second)
				return status.Internalf("late")
			}))),
	})
}

func TestLongErrorsSurvive(t *testing.T) {
	long := strings.Repeat("x", 5000)
	s := open(t, psWorker(t), one+`b = TestFail(a) device=/job:ps message="`+long+`"`)
	_, err := s.Run(t.Context(), nil, nil, "b")
	expect(t, err, status.InvalidArgument, long)
}

func TestPanicIsAnErrorOfItsStepAlone(t *testing.T) {
	s := open(t, psWorker(t), one+"b = TestPanic(a) device=/job:ps\nc = Identity(a) device=/job:ps")
	_, err := s.Run(t.Context(), nil, nil, "b")
	expect(t, err, status.Internal, "[[{{node b}}]]")
	run(t, s, nil, "c:0")
}

// TestLongStepIsLogged runs a step that waits for one of its tasks for minutes.
func TestLongStepIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, logged := logs()
		c := testcluster.New(t, testcluster.Options{
			Jobs: map[string]int{"ps": 1, "worker": 2}, Kernels: testcluster.Kernels(), Log: log,
		})
		s := open(t, c, one+"b = TestBlock(a) device=/job:ps")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err := s.Run(ctx, nil, nil, "b")
		expect(t, err, status.DeadlineExceeded)
		got := logged()
		if n := strings.Count(got, "level=WARN msg=\"a step still waits for tasks\""); n != 1 || !strings.Contains(got, "/job:ps/replica:0/task:0 at ") {
			t.Errorf("the wait was logged %d times, want once with the task's name:\n%s", n, got)
		}
	})
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		text := one + "b = TestBlock(a) device=/job:ps"
		start := time.Now()
		s := open(t, c, text)
		_, err := s.Step(t.Context(), nil, nil, []string{"b"}, &pb.RunOptions{TimeoutInMs: 3000})
		expect(t, err, status.DeadlineExceeded, "Operation timed out.")
		s = openWith(t, c, text, &pb.ConfigProto{OperationTimeoutInMs: 4000})
		_, err = s.Run(t.Context(), nil, nil, "b")
		expect(t, err, status.DeadlineExceeded, "Operation timed out.")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = open(t, c, text).Run(ctx, nil, nil, "b")
		expect(t, err, status.DeadlineExceeded)
		// the last error is on its way before the client's deadline
		if got := time.Since(start); got != 12*time.Second-maxEarly {
			t.Errorf("three timeouts took %v, want 12s less %v", got, maxEarly)
		}
	})
}

func TestCancelledStep(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, one+"b = TestBlock(a) device=/job:ps\nc = TestAdd(b, a)")
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	c.Intercept(func(_ context.Context, call testcluster.Call) error {
		if call.Method == "RunGraph" {
			close(begun)
		}
		return nil
	})
	go func() {
		<-begun
		cancel()
	}()
	_, err := s.Run(ctx, nil, []string{"c:0"})
	expect(t, err, status.Cancelled)
	c.Intercept(nil)
	run(t, s, nil, "a:0")
}

func TestCloseCancelsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, psWorker(t), one+"b = TestBlock(a) device=/job:ps")
		result := make(chan error)
		go func() {
			_, err := s.Run(t.Context(), nil, nil, "b")
			result <- err
		}()
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		expect(t, <-result, status.Cancelled, "Step was cancelled by an explicit call to `Session::Close()`.")
	})
}

// TestCloseDoesNotWaitForDeadTasks closes a session after a task has died. TensorFlow's master
// would wait until that task comes back.
func TestCloseDoesNotWaitForDeadTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		s := open(t, c, one+"b = TestAdd(a, a) device=/job:ps")
		run(t, s, nil, "b:0")
		c.Stop("ps", 0)
		_, err := s.Run(t.Context(), nil, []string{"b:0"})
		expect(t, err, status.Unavailable, "From /job:ps/replica:0/task:0:\n")
		c.Intercept(func(ctx context.Context, call testcluster.Call) error {
			<-ctx.Done() // nothing answers any more
			return ctx.Err()
		})
		start := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 12*time.Second { // cleanupGrace and cleanupTimeout
			t.Errorf("the session took %v to close", took)
		}
	})
}

func TestRestartedTask(t *testing.T) {
	c := psWorker(t)
	text := one + "b = TestAdd(a, a) device=/job:ps\nc = TestAdd(b, a)"
	s := open(t, c, text)
	run(t, s, nil, "c:0")
	c.Restart("ps", 0)
	_, err := s.Run(t.Context(), nil, []string{"c:0"})
	expect(t, err, status.Aborted)
	_, err = s.Run(t.Context(), nil, []string{"b:0"}) // a signature that was not registered
	expect(t, err, status.Aborted, "Session handle is not found: "+s.Handle+`. Possibly this worker ("/job:ps/replica:0/task:0") just restarted.`)
	if got := run(t, open(t, c, text), nil, "c:0"); got[0] != 3 {
		t.Errorf("a new session gets %v, want 3", got[0])
	}
}

func TestPlanThatCouldNotBeMadeIsTriedAgain(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, one+"b = TestAdd(a, a) device=/job:ps")
	c.Intercept(testcluster.Fail("RegisterGraph", "ps", 0, status.Unavailablef("no route")))
	_, err := s.Run(t.Context(), nil, []string{"b:0"})
	expect(t, err, status.Unavailable, "From /job:ps/replica:0/task:0:\nno route")
	c.Intercept(nil)
	run(t, s, nil, "b:0")
}

func TestRequestThatGivesUpDoesNotSpoilThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		s := open(t, c, one+"b = TestAdd(a, a) device=/job:ps")
		release := make(chan struct{})
		c.Intercept(testcluster.Hold("RegisterGraph", "ps", 0, release))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Run(ctx, nil, []string{"b:0"})
		expect(t, err, status.DeadlineExceeded, "Preparing a step of session", "/job:ps/replica:0/task:0 at ", "no answer to RegisterGraph")
		close(release)
		run(t, s, nil, "b:0")
		if n := testcluster.Count(c.Calls(), "RegisterGraph"); n != 1 {
			t.Errorf("the part was registered %d times, want 1", n)
		}
	})
}

func TestStepsAreCleanedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		s := open(t, c, sum+"f = TestFail(z)\ng = TestBlock(z)\n")
		x := testcluster.Feeds{"x:0": scalar(1)}
		run(t, s, x, "z:0")
		_, err := s.Run(t.Context(), x, nil, "f", "g")
		expect(t, err, status.InvalidArgument)
		_, err = s.Step(t.Context(), x, nil, []string{"g"}, &pb.RunOptions{TimeoutInMs: 100})
		expect(t, err, status.DeadlineExceeded)
		synctest.Wait()
		for _, task := range c.Spec().Tasks() {
			if n := c.Node(task.Job, task.Index).Worker.NumSteps(); n != 0 {
				t.Errorf("%v still knows %d steps", task, n)
			}
		}
	})
}
