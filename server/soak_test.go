package server

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/tensormem"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

var soak = flag.Int("soak", 1, "how much longer the soak test is to run than usual: 100 makes 10,000 sessions and 100,000 steps")

// TestSoak opens and closes sessions over connections and runs steps. Some are cancelled at random
// moments or fail. Nothing of them may remain.
func TestSoak(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 2})
	// it creates the connections, which stay
	useSession(t, servers[worker0], rand.New(rand.NewPCG(9, 9)), 10)
	before := settle(t, servers)
	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 1))
			for range 25 * *soak {
				useSession(t, servers[cluster.Task{Job: "worker", Index: rng.IntN(2)}], rng, 10)
			}
		})
	}
	wg.Wait()
	after := settle(t, servers)
	for deadline := time.Now().Add(time.Minute); !after.within(before) && time.Now().Before(deadline); after = settle(t, servers) {
		runtime.Gosched() // goroutines may still be ending
	}
	t.Logf("%d sessions, %d steps; before: %+v, after: %+v", 100**soak, 1000**soak, before, after)
	if grown := after.goroutines - before.goroutines; grown > moreGoroutines {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left:\n%s", grown, buf[:runtime.Stack(buf, true)])
	}
	if grown := int64(after.heap) - int64(before.heap); grown > moreHeap {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if after.buffers != before.buffers {
		t.Errorf("%d buffers are held, %d before", after.buffers, before.buffers)
	}
}

// TestSessionsThatNobodyGets gives up first steps, which create sessions, at random moments. The
// servers must close these sessions, because no client knows their handles.
func TestSessionsThatNobodyGets(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	root := op.NewScope()
	c := op.Const(root.WithDevice("/job:ps"), float32(1))
	took, made := 2*time.Millisecond, 0
	for range 100 {
		s := session(t, servers[worker0], root, weft.WithNetwork())
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(2*took))))
		begin := time.Now()
		_, err := s.Run(ctx, nil, []graph.Output{c}, nil)
		cancel()
		if err == nil {
			took = (took + time.Since(begin)) / 2 // so that later ones are given up halfway
			made++
		} else if took += 20 * time.Microsecond; status.CodeOf(err) != status.DeadlineExceeded {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d of 100 first steps were made", made)
	settle(t, servers)
}

// useSession runs steps in a new session and closes it. Some of the steps are cancelled or fail.
func useSession(t *testing.T, s *Server, rng *rand.Rand, steps int) {
	root := op.NewScope()
	onPS, onWorker := root.WithDevice("/job:ps/task:0"), root.WithDevice("/job:worker/task:1")
	x := op.Placeholder(root.Named("x"), tensor.Float32)
	y := op.Mul(onPS, x, op.Neg(onWorker, x)) // the graph would hold a constant
	z := op.Add(onWorker, y, x)
	waiting := onPS.Add("TestWaitForEver", []op.Arg{op.One(y)}, nil)
	wrong := op.Reshape(onWorker, z, op.Identity(onPS, op.Cast(onPS, x, tensor.Int32)))
	g, err := root.Finalize()
	if err != nil {
		t.Error(err)
		return
	}
	session, err := weft.NewSession(s.Target(), g, weft.WithNetwork())
	if err != nil {
		t.Error(err)
		return
	}
	feeds := map[graph.Output]tensor.Tensor{x: tensor.Vector[float32](7, 8, 9)}
	for range steps {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(3000))*time.Microsecond)
		want, fetches, targets := status.OK, []graph.Output{z}, []*graph.Node(nil)
		switch rng.IntN(4) {
		case 0:
			fetches, want = []graph.Output{z, wrong}, status.InvalidArgument
		case 1:
			targets, want = []*graph.Node{waiting}, status.DeadlineExceeded
		case 2:
			cancel()
			ctx, cancel = context.WithCancel(t.Context()) // runs to the end
		}
		got, err := session.Run(ctx, feeds, fetches, targets)
		if code := status.CodeOf(err); code != want && code != status.DeadlineExceeded {
			t.Errorf("got %v: %v, want %v", code, err, want)
		}
		for i := range got {
			got[i].Release()
		}
		cancel()
	}
	if err := session.Close(); err != nil {
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
	moreGoroutines = 20 // of connections between tasks
	moreHeap       = 32 << 20
)

func (f footprint) within(before footprint) bool {
	return f.goroutines <= before.goroutines+moreGoroutines && f.heap <= before.heap+moreHeap && f.buffers == before.buffers
}

// settle waits until no task has a session or a step left, and measures. Values that were never
// received end with the rendezvous of their step.
func settle(t *testing.T, servers map[cluster.Task]*Server) footprint {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for task, s := range servers {
		w := s.task.Worker
		for w.NumSteps() > 0 || w.NumSessions() > 0 {
			if time.Now().After(deadline) {
				t.Fatalf("%v still knows %d steps and %d sessions", task, w.NumSteps(), w.NumSessions())
			}
			runtime.Gosched()
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), m.HeapAlloc, tensormem.Held()}
}
