package simcluster_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/simcluster"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Starts the worker goroutines of parallel loops, which live as long as the process. A synctest
// bubble in which they were started could not end.
var _ = parallel.Threads()

var figures = flag.Bool("figures", false, "measure clusters of up to 10,000 tasks and print the tables of docs/internals/scale.md")

// model has the times of docs/internals/scale.md.
var model = simcluster.Model{
	Latency: 50 * time.Microsecond, Send: 60 * time.Microsecond, Serve: 60 * time.Microsecond, Compute: 10 * time.Millisecond, Cores: 2,
}

var chief = cluster.Task{Job: "worker", Index: 0}

// growth holds the costs of a session on a number of tasks.
type growth struct {
	tasks int
	// virtual times of creating the session, of the first step, and of a following step
	create, first, step    time.Duration
	createBytes, planBytes int           // sizes of requests
	calls                  int           // of one step
	heap                   int64         // of the master, with the simulated tasks
	allocated              int64         // by creating the session and the first step
	cpuTime                time.Duration // real CPU time of all of it
}

// sum returns a graph that computes a value on each of some tasks, with two nodes each, and the sum
// of the values on one task.
func sum(t *testing.T, tasks []cluster.Task, at cluster.Task) *pb.GraphDef {
	t.Helper()
	s := op.NewScope()
	var values []op.Output
	for _, task := range tasks {
		on := s.WithDevice(task.String())
		x := op.RandomUniform(on, op.Const(on, []int32{}), tensor.Float32)
		values = append(values, op.Neg(on, x))
	}
	op.AddN(s.WithDevice(at.String()).Named("sum"), values)
	def, err := pbconv.GraphToProto(s.Graph().Def())
	if err := errors.Join(s.Err(), err); err != nil {
		t.Error(err)
	}
	return def
}

func open(t *testing.T, m *master.Master, def *pb.GraphDef) string {
	t.Helper()
	resp, err := m.CreateSession(t.Context(), &pb.CreateSessionRequest{GraphDef: def})
	if err != nil {
		t.Error(err)
	}
	return resp.GetSessionHandle()
}

func run(t *testing.T, m *master.Master, session string) {
	t.Helper()
	resp, err := m.RunStep(t.Context(), &message.RunStepRequest{Session: session, Fetches: []string{"sum:0"}})
	if err != nil {
		t.Error(err)
		return
	}
	for i := range resp.Tensors {
		resp.Tensors[i].Tensor.Release()
	}
}

// inGraph measures a session of one master with a partition on each of n tasks. If relays is not 0,
// that many relays forward the calls of the master.
func inGraph(t *testing.T, n, relays int) growth {
	out := growth{tasks: n}
	synctest.Test(t, func(t *testing.T) {
		c := simcluster.New(model, map[string]int{"worker": n}, relays)
		m := c.Master(chief)
		defer m.Close(t.Context())
		var tasks []cluster.Task
		for i := range n {
			tasks = append(tasks, cluster.Task{Job: "worker", Index: i})
		}
		if relays > 0 {
			tasks = nil
			for i := range relays {
				tasks = append(tasks, cluster.Task{Job: "relay", Index: i})
			}
		}
		def := sum(t, tasks, chief)
		runtime.GC()
		before := memory()
		begin := cpuTime()

		start := time.Now()
		session := open(t, m, def)
		out.create = time.Since(start)
		out.createBytes = c.Take().Bytes

		start = time.Now()
		run(t, m, session)
		out.first = time.Since(start)
		synctest.Wait()
		out.planBytes = c.Take().Bytes
		out.allocated = int64(memory().TotalAlloc - before.TotalAlloc)

		start = time.Now()
		run(t, m, session)
		out.step = time.Since(start)
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time, until all goroutines have cleaned up
		for _, n := range c.Take().Calls {
			out.calls += n
		}
		out.cpuTime = cpuTime() - begin
		runtime.GC()
		out.heap = int64(memory().HeapAlloc) - int64(before.HeapAlloc)
		runtime.KeepAlive(def)
	})
	return out
}

func memory() runtime.MemStats {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

// betweenGraphs returns the time of a step when n masters, one per worker, share some parameter
// servers and run their steps concurrently.
func betweenGraphs(t *testing.T, n, ps int) (step time.Duration) {
	const steps = 5
	synctest.Test(t, func(t *testing.T) {
		c := simcluster.New(model, map[string]int{"worker": n, "ps": ps}, 0)
		var servers []cluster.Task
		for i := range ps {
			servers = append(servers, cluster.Task{Job: "ps", Index: i})
		}
		masters, sessions := make([]*master.Master, n), make([]string, n)
		together(n, func(i int) {
			self := cluster.Task{Job: "worker", Index: i}
			masters[i] = c.Master(self, servers...)
			sessions[i] = open(t, masters[i], sum(t, servers, self))
			run(t, masters[i], sessions[i])
		})
		start := time.Now()
		together(n, func(i int) {
			for range steps {
				run(t, masters[i], sessions[i])
			}
		})
		step = time.Since(start) / steps
		together(n, func(i int) { masters[i].Close(t.Context()) })
	})
	return step
}

func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// TestGrowthIsLinear compares the costs of a session on 100 and on 1,000 tasks.
func TestGrowthIsLinear(t *testing.T) {
	inGraph(t, 10, 0) // initializes the state of the process
	small, large := inGraph(t, 100, 0), inGraph(t, 1000, 0)
	for _, tt := range []struct {
		what         string
		small, large float64
		slack        float64 // for costs that vary between runs
	}{
		{"calls of a step", float64(small.calls), float64(large.calls), 1.02},
		{"bytes for the session", float64(small.createBytes), float64(large.createBytes), 1.05},
		{"bytes for the first step", float64(small.planBytes), float64(large.planBytes), 1.05},
		{"time to make the session", small.create.Seconds(), large.create.Seconds(), 1.02},
		{"time of the first step", small.first.Seconds(), large.first.Seconds(), 1.02},
		{"time of a step", small.step.Seconds(), large.step.Seconds(), 1.02},
		{"memory that stays", float64(small.heap), float64(large.heap), 1.5},
		{"memory that is allocated", float64(small.allocated), float64(large.allocated), 1.3},
	} {
		if grown := tt.large / tt.small; grown > 10*tt.slack {
			t.Errorf("%s: %g with 100 tasks, %g with 1,000: %.1f times as much", tt.what, tt.small, tt.large, grown)
		}
	}
}

// TestFigures prints the tables of docs/internals/scale.md.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("without -figures")
	}
	inGraph(t, 10, 0)
	var b strings.Builder
	b.WriteString("| tasks | make the session | first step | a step | calls of a step | master's memory | processor time, in truth |\n|---:|---:|---:|---:|---:|---:|---:|\n")
	flat := map[int]growth{}
	for _, n := range []int{10, 100, 1000, 10_000} {
		g := inGraph(t, n, 0)
		flat[n] = g
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %d | %.1f MiB | %s |\n", n, millis(g.create), millis(g.first), millis(g.step), g.calls,
			float64(g.heap)/(1<<20), millis(g.cpuTime))
	}
	b.WriteString("\n| tasks | one master | with relays | one master for each, 16 ps |\n|---:|---:|---:|---:|\n")
	for _, n := range []int{10, 30, 100, 300, 1000, 3000, 10_000} {
		g, ok := flat[n]
		if !ok {
			g = inGraph(t, n, 0)
		}
		between := "–"
		if n <= 1000 {
			between = millis(betweenGraphs(t, n, 16))
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", n, millis(g.step), millis(inGraph(t, n, int(math.Sqrt(float64(n)))).step), between)
	}
	t.Log("\n" + b.String())
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }

// cpuTime returns the CPU time that this process has used. Unlike the clock, it is real within a
// bubble.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
