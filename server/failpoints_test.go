//go:build failpoints

package server

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

var failSteps = flag.Int("fail-steps", 100, "steps of TestFailpoints for each place and action")

// places are all places that can fail. A panic is tried where the program recovers from it.
var places = []struct {
	name   string
	panics bool
}{
	{"grpch2/accept", false}, {"grpch2/dial", false}, {"grpch2/server-handshake", false}, {"grpch2/client-handshake", false},
	{"grpch2/request-headers", false}, {"grpch2/response-headers", false}, {"grpch2/read", false}, {"grpch2/read-data", false},
	{"grpch2/write", false}, {"grpch2/write-large", false}, {"grpch2/queue-control", false},
	{"rpc/serve", true}, {"rpc/encode-response", true}, {"rpc/decode-response", false},
	{"samehost/dial", false}, {"samehost/borrower-handshake", false}, {"samehost/share-slots", false},
	{"samehost/lender-handshake", false}, {"samehost/accept", false}, {"samehost/lend", false}, {"samehost/fetch-leased", true},
	{"worker/create-session", false}, {"worker/delete-session", false}, {"worker/run-graph", false}, {"worker/store-feeds", false},
	{"worker/request-tensor", false}, {"worker/cleanup", false}, {"worker/ask-master", false},
	{"master/create-session", false}, {"master/run-step", true}, {"master/make-plan", true}, {"master/register-graph", true},
	{"master/run-graph", false}, {"master/get-status", false},
	{"executor/kernel", true}, {"membudget/take", false},
	{"fileio/acquire", false}, {"fileio/open", false}, {"fileio/read", false}, {"fileio/read-at", false}, {"fileio/write", false},
	{"fileio/sync", false}, {"fileio/stat", false}, {"fileio/remove", false}, {"fileio/mkdir", false}, {"fileio/rename", false},
}

// A faulty is a cluster whose steps add 1 to a counter, sum a tensor that crosses tasks, and save
// and restore it.
type faulty struct {
	t       *testing.T
	servers map[cluster.Task]*Server
	graph   *graph.Graph
	last    *weft.Session // for the next place

	init, add, save   *graph.Node
	count, sum, saved op.Output
	x                 op.Output
}

func newFaulty(t *testing.T) *faulty {
	f := &faulty{t: t, servers: map[cluster.Task]*Server{}}
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 2})
	for task, l := range listeners {
		def := cluster.ServerDef{Cluster: spec, Job: task.Job, Task: task.Index}
		f.servers[task] = start(t, def, WithListener(l), WithOrphanTimeout(100*time.Millisecond))
	}
	root := op.NewScope()
	onPS := root.WithDevice("/job:ps")
	v := train.NewVariable(onPS, "counter", tensor.Shape{}, tensor.Int64, train.Zeros, train.Resource())
	f.init, f.add = train.VariablesInitializer(root, v), v.AssignAdd(onPS, op.Const(root, int64(1)))
	f.count = op.Identity(root, v.Read(onPS))
	f.x = op.Placeholder(root, tensor.Float32, op.PlaceholderShape(tensor.MakePartial()))
	large := op.Fill(onPS, op.Const(onPS, []int32{256 << 10}), f.x) // goes through shared memory
	f.sum = op.Sum(root.WithDevice("/job:worker/task:1"), large, op.Const(root, []int32{0}))
	prefix := op.Const(onPS, filepath.Join(t.TempDir(), "a", "x"))
	f.save = op.SaveV2(onPS, prefix, op.Const(onPS, []string{"x"}), op.Const(onPS, []string{""}), []op.Output{f.x})
	after := onPS.WithControlDependencies(f.save)
	f.saved = op.RestoreV2(after, prefix, op.Const(onPS, []string{"x"}), op.Const(onPS, []string{""}), []tensor.DType{tensor.Float32})[0]
	var err error
	if f.graph, err = root.Finalize(); err != nil {
		t.Fatal(err)
	}
	return f
}

// session returns a session over the network, with timeouts that end a lost step.
func (f *faulty) session() *weft.Session {
	s, err := weft.NewSession(f.servers[worker0].Target(), f.graph, weft.WithNetwork(), weft.WithTimeout(5*time.Second))
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// step runs one step, and checks its results if it succeeds.
func (f *faulty) step(ctx context.Context, s *weft.Session, n int) (added bool, err error) {
	if err := s.Exec(ctx, nil, f.add); err != nil {
		return false, err
	}
	got, err := s.Fetch(ctx, weft.Feeds{f.x: tensor.Scalar(float32(n))}, f.sum, f.saved)
	if err != nil {
		return true, err
	}
	if sum, saved := got[0].Go(), got[1].Go(); sum != float32(n)*(256<<10) || saved != float32(n) {
		f.t.Errorf("step %d: the sum is %v, the saved value %v", n, sum, saved)
	}
	return true, nil
}

// TestFailpoints makes each place fail, sleep or panic now and then. Steps may fail; those that
// succeed have the right results, nothing is added twice, and nothing is left afterwards.
func TestFailpoints(t *testing.T) {
	f := newFaulty(t)
	s := f.session()
	if err := s.Exec(t.Context(), nil, f.init); err != nil {
		t.Fatal(err)
	}
	if _, err := f.step(t.Context(), s, 1); err != nil {
		t.Fatal(err)
	}
	f.last = s
	var hits atomic.Int64
	for _, place := range places {
		for _, action := range []string{"error", "sleep", "panic"} {
			if action == "panic" && !place.panics {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", place.name, action), func(t *testing.T) {
				f.try(t, f.last, place.name, action, &hits)
			})
		}
	}
	f.last.Close()
	t.Logf("%d faults", hits.Load())
}

// try runs steps while one place does an action, and leaves a session for the next one.
func (f *faulty) try(t *testing.T, s *weft.Session, place, action string, hits *atomic.Int64) {
	goroutines := runtime.NumGoroutine()
	before := f.counter(t, s)
	var calls, done atomic.Int64
	restore := failpoint.Set(func(at string) error {
		// rarely enough for steps to succeed in between
		if at != place || calls.Add(1)%23 != 7 || action == "sleep" && done.Load() >= 5 {
			return nil
		}
		done.Add(1)
		return failpoint.Do(action, at)
	})
	attempts, added := int64(0), int64(0)
	for i := range *failSteps {
		attempts++
		ok, err := f.step(t.Context(), s, i)
		if ok {
			added++
		}
		if err != nil || i%10 == 9 { // places at the begin and end of sessions
			s.Close()
			s = f.session()
		}
	}
	restore()
	s.Close()
	s = f.session()
	f.last = s
	hits.Add(done.Load())
	if after := f.counter(t, s); after-before < added || after-before > attempts {
		t.Errorf("%d of %d steps added 1, and the counter has grown by %d", added, attempts, after-before)
	}
	f.settle(t, goroutines)
}

// counter reads the counter, which needs one step without faults.
func (f *faulty) counter(t *testing.T, s *weft.Session) int64 {
	got, err := s.Fetch(t.Context(), nil, f.count)
	if err != nil {
		t.Fatalf("a step after the faults: %v", err)
	}
	return got[0].Go().(int64)
}

// settle waits until steps, sessions and goroutines of the failed steps are gone.
func (f *faulty) settle(t *testing.T, goroutines int) {
	const slack = 40 // connections that were opened meanwhile, and idle workers of their pools
	deadline := time.Now().Add(20 * time.Second)
	for {
		sessions, steps := 0, 0
		for _, s := range f.servers {
			sessions, steps = sessions+s.task.Worker.NumSessions(), steps+s.task.Worker.NumSteps()
		}
		n := runtime.NumGoroutine()
		if sessions <= len(f.servers) && steps == 0 && n <= goroutines+slack {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left over: %d sessions, %d steps, %d goroutines instead of %d", sessions, steps, n, goroutines)
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}
