package master_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/sys/tensormem"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

var soak = flag.Int("soak", 1, "how much longer the soak test is to run than usual: 100 makes 10,000 sessions and 100,000 steps")

// TestSoak opens and closes sessions, runs steps that are cancelled at random moments, and checks
// that nothing is left of them.
func TestSoak(t *testing.T) {
	c := psWorker(t)
	before := settle(t, c)
	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 1))
			for range 25 * *soak {
				useSession(t, c, rng, 10)
			}
		})
	}
	wg.Wait()
	after := settle(t, c)
	for deadline := time.Now().Add(time.Minute); !after.within(before) && time.Now().Before(deadline); after = settle(t, c) {
		runtime.Gosched() // what has nothing more to do may still be on its way out
	}
	if t.Logf("%d sessions, %d steps; before: %+v, after: %+v", 100**soak, 1000**soak, before, after); after.buffers != before.buffers {
		t.Errorf("%d buffers are held, %d before", after.buffers, before.buffers)
	}
	if grown := after.goroutines - before.goroutines; grown > moreGoroutines {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left:\n%s", grown, buf[:runtime.Stack(buf, true)])
	}
	if grown := int64(after.heap) - int64(before.heap); grown > moreHeap {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

// useSession runs steps in a new session and closes it. Some of the steps are cancelled or fail.
func useSession(t *testing.T, c *testcluster.Cluster, rng *rand.Rand, steps int) {
	s, err := c.Session(t.Context(), c.Node("worker", rng.IntN(2)), sum+"f = TestFail(z)\ng = TestBlock(z)\n", nil)
	if err != nil {
		t.Error(err)
		return
	}
	for range steps {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(400))*time.Microsecond)
		var target []string
		want := status.OK
		switch rng.IntN(4) {
		case 0:
			target, want = []string{"f"}, status.InvalidArgument
		case 1:
			target, want = []string{"g"}, status.DeadlineExceeded
		case 2:
			cancel()
			ctx, cancel = context.WithCancel(t.Context()) // runs to the end
		}
		_, err := s.Run(ctx, testcluster.Feeds{"x:0": scalar(1)}, []string{"z:0"}, target...)
		if code := status.CodeOf(err); code != want && code != status.DeadlineExceeded {
			t.Errorf("got %v: %v, want %v", code, err, want)
		}
		cancel()
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

type footprint struct {
	goroutines int
	heap       uint64
	buffers    int64 // buffers of tensors; counted only with -tags invariants
}

// Allowed growth over many sessions.
const (
	moreGoroutines = 5
	moreHeap       = 32 << 20
)

func (f footprint) within(before footprint) bool {
	return f.goroutines <= before.goroutines+moreGoroutines && f.heap <= before.heap+moreHeap && f.buffers == before.buffers
}

// settle waits until no task has a session or a step left, and measures. Values that were never
// received end with the rendezvous of their step.
func settle(t *testing.T, c *testcluster.Cluster) footprint {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, task := range c.Spec().Tasks() {
		w := c.Node(task.Job, task.Index).Worker
		for w.NumSteps() > 0 || w.NumSessions() > 0 {
			if time.Now().After(deadline) {
				t.Fatalf("%v still knows %d steps and %d sessions", task, w.NumSteps(), w.NumSessions())
			}
			runtime.Gosched()
		}
	}
	c.Calls() // what the cluster has recorded is not the tasks'
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), m.HeapAlloc, tensormem.Held()}
}
