package master_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

// maxEarly is the longest time before a client's deadline at which a step ends.
const maxEarly = 500 * time.Millisecond

// readsVariable reads a variable of the parameter server on another task.
const readsVariable = `
	x = Placeholder() dtype=float
	v = TestVar() device=/job:ps
	y = TestAdd(x, v) device=/job:worker/task:1
	z = Identity(y)
`

// blame is the beginning of the error of a step of readsVariable while the parameter server is
// stopped: of the three unfinished tasks, it names that one first.
var blame = regexp.MustCompile(`^Operation timed out\. Step \d+ of session [0-9a-f]{32} waits for:
  /job:ps/replica:0/task:0 at \S+: no answer to RunGraph \(\d+ nodes, such as [^)]+\), nor to GetStatus within \d+m?s; never heard of
  /job:worker/replica:0/task:[01]`)

// TestTimeoutNamesTheTaskThatIsSilent stops a parameter server: the tasks that wait for its tensors
// are unfinished, too, and the error says that they live.
func TestTimeoutNamesTheTaskThatIsSilent(t *testing.T) {
	for name, tt := range map[string]struct {
		config  *pb.ConfigProto
		options *pb.RunOptions
		client  time.Duration // of the client's context; 0 for none
	}{
		"RunOptions.timeout_in_ms":             {options: &pb.RunOptions{TimeoutInMs: 3000}},
		"ConfigProto.operation_timeout_in_ms":  {config: &pb.ConfigProto{OperationTimeoutInMs: 3000}},
		"the client's deadline":                {client: 3 * time.Second},
		"the client's deadline and an option":  {client: 3 * time.Second, options: &pb.RunOptions{TimeoutInMs: 3000}},
		"an option before the client's":        {client: time.Minute, options: &pb.RunOptions{TimeoutInMs: 3000}},
		"a deadline that leaves time for less": {client: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := psWorker(t)
				s := openWith(t, c, readsVariable, tt.config)
				x := testcluster.Feeds{"x:0": scalar(1)}
				run(t, s, x, "z:0")
				c.Intercept(testcluster.Freeze("ps", 0))
				ctx := t.Context()
				if tt.client > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.client)
					defer cancel()
				}
				_, err := s.Step(ctx, x, []string{"z:0"}, nil, tt.options)
				expect(t, err, status.DeadlineExceeded, "/job:worker/replica:0/task:0 (this task): RunGraph (", "it answers GetStatus")
				if !blame.MatchString(err.Error()) {
					t.Errorf("the error does not blame the task that is stopped:\n%v", err)
				}
				if ctx.Err() != nil {
					t.Error("the error came after the client's deadline")
				}
				c.Intercept(nil)
			})
		})
	}
}

// A step that reaches --max-step-time while it is prepared, or while it runs, says so.
func TestStepTimeIsNamed(t *testing.T) {
	for name, prepared := range map[string]bool{"preparing": false, "running": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := testcluster.New(t, testcluster.Options{
					Jobs: map[string]int{"ps": 1, "worker": 2}, Kernels: testcluster.Kernels(), Quota: quota.Limits{StepTime: 3 * time.Second},
				})
				s := open(t, c, readsVariable)
				x := testcluster.Feeds{"x:0": scalar(1)}
				if prepared {
					run(t, s, x, "z:0")
				}
				c.Intercept(testcluster.Freeze("ps", 0))
				_, err := s.Step(t.Context(), x, []string{"z:0"}, nil, nil)
				what := map[bool]string{false: "Preparing a step of session", true: "Step "}[prepared]
				expect(t, err, status.DeadlineExceeded,
					"Operation timed out. The time of a step is limited to 3s (--max-step-time). "+what, "/job:ps/replica:0/task:0")
				c.Intercept(nil)
			})
		})
	}
}

// TestStallIsLogged stops a parameter server during a step, starts it again, and stops it again.
func TestStallIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, logged := logs()
		c := testcluster.New(t, testcluster.Options{
			Jobs: map[string]int{"ps": 1, "worker": 2}, Kernels: testcluster.Kernels(), Log: log,
		})
		s := open(t, c, one+"b = TestBlock(a) device=/job:ps")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.Run(ctx, nil, nil, "b")
			ended <- err
		}()
		synctest.Wait()
		const line = "level=WARN msg=\"a step waits for tasks that do not answer\""
		for i, tt := range []struct {
			frozen bool
			wait   time.Duration
			want   int
		}{{true, 9 * time.Second, 0}, {true, 6 * time.Second, 1}, {true, 30 * time.Second, 1}, {false, 15 * time.Second, 1}, {true, 15 * time.Second, 2}} {
			if c.Intercept(nil); tt.frozen {
				c.Intercept(testcluster.Freeze("ps", 0))
			}
			<-time.After(tt.wait)
			got := logged()
			if n := strings.Count(got, line); n != tt.want || n > 0 && !strings.Contains(got, "silent=/job:ps/replica:0/task:0") {
				t.Errorf("stage %d: the stall was logged %d times, want %d, with the name of the task:\n%s", i, n, tt.want, got)
			}
		}
		c.Intercept(nil)
		cancel()
		expect(t, <-ended, status.Cancelled)
	})
}
