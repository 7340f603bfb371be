package partition_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/internal/kernels/array"
	_ "github.com/weft-ml/weft/internal/kernels/comm"
	_ "github.com/weft-ml/weft/internal/kernels/control"
	_ "github.com/weft-ml/weft/internal/kernels/function"
	_ "github.com/weft-ml/weft/internal/kernels/mathops"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestSplitsComputeTheSame runs random graphs with loops and conditions in three forms: whole,
// split by device, and split by task and then by device.
func TestSplitsComputeTheSame(t *testing.T) {
	for seed := range uint64(100) {
		w := &writer{r: rand.New(rand.NewPCG(seed, 0))}
		text := w.program()
		whole := parse(t, text)
		for n := range whole.Nodes() {
			n.Assigned = deviceName(0)
		}
		want := run(t, map[string]*graph.Graph{deviceName(0): whole}, w.results)
		if got := run(t, splitByDevice(t, parse(t, text), true), w.results); !same(got, want) {
			t.Errorf("seed %d, by device: got %v, want %v\n%s", seed, got, want, text)
		}
		parts := map[string]*graph.Graph{}
		for _, part := range split(t, parse(t, text), true, byTask) {
			maps.Copy(parts, splitByDevice(t, part, false))
		}
		if got := run(t, parts, w.results); !same(got, want) {
			t.Errorf("seed %d, by task and device: got %v, want %v\n%s", seed, got, want, text)
		}
	}
}

const numDevices = 4 // two per task

func deviceName(i int) string {
	return fmt.Sprintf("/job:w/replica:0/task:%d/device:CPU:%d", i/2, i%2)
}

func byTask(n *graph.Node) string { return strings.Split(n.Assigned, "/device")[0] }

func parse(t *testing.T, text string) *graph.Graph {
	t.Helper()
	g, err := graphtext.Parse(kernel.Default, text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return g
}

func splitByDevice(t *testing.T, g *graph.Graph, first bool) map[string]*graph.Graph {
	return split(t, g, first, func(n *graph.Node) string { return n.Assigned })
}

func split(t *testing.T, g *graph.Graph, first bool, location func(*graph.Node) string) map[string]*graph.Graph {
	t.Helper()
	names := 0
	suffix := map[bool]string{true: "_S", false: "_G"}[first]
	parts, err := partition.Split(g, partition.Options{
		Location:    location,
		NewName:     func(prefix string) string { names++; return fmt.Sprintf("%s%s%d", prefix, suffix, names) },
		Incarnation: func(string) uint64 { return 7 },
		ControlFlow: first,
	})
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// run runs the parts of a graph as one step and returns its results.
func run(t *testing.T, parts map[string]*graph.Graph, results int) []float32 {
	t.Helper()
	table := rendezvous.New()
	step := &kernel.Step{ID: 1, Context: t.Context(), Rendezvous: table, Resources: kernel.NewResources("")}
	ended := make(chan error, len(parts))
	rets := map[string][]tensor.Tensor{}
	for name, part := range parts {
		device := &kernel.Device{Name: name, Type: kernel.CPU, Incarnation: 7, Resources: kernel.NewResources("w")}
		exec, err := executor.New(part, executor.Config{Device: device, NewKernel: func(n *graph.Node) (kernel.Kernel, error) {
			impl := kernel.Default.Find(n.Op.Name, device.Type, n.Attrs)
			if impl == nil {
				return nil, status.NotFoundf("no kernel for %s", n.Summary())
			}
			return impl.New(&kernel.Construction{
				Node: n.Name, Op: n.Op, Attrs: n.Attrs, Inputs: n.InTypes, Outputs: n.OutTypes, Device: device,
			})
		}})
		if err != nil {
			t.Fatal(err)
		}
		rets[name] = make([]tensor.Tensor, results)
		exec.RunAsync(step, executor.RunOptions{Rets: rets[name]}, func(err error) {
			if err != nil {
				table.Abort(err)
			}
			ended <- err
		})
	}
	for range parts {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	table.Close()
	out := make([]float32, results)
	for _, values := range rets {
		for i := range values {
			if values[i].Initialized() {
				out[i] += tensor.Value[float32](&values[i])
			}
		}
	}
	return out
}

func same(a, b []float32) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// writer writes a random graph as text. Its nodes are scalars on random devices.
type writer struct {
	r       *rand.Rand
	b       strings.Builder
	nodes   int
	results int
}

// add writes a node and returns its name.
func (w *writer) add(op, attrs string, inputs ...string) string {
	name := fmt.Sprintf("n%d", w.nodes)
	w.nodes++
	w.write(name, op, attrs, inputs...)
	return name
}

func (w *writer) write(name, op, attrs string, inputs ...string) {
	fmt.Fprintf(&w.b, "%s = %s(%s) %s assigned=%s\n", name, op, strings.Join(inputs, ", "), attrs, deviceName(w.r.IntN(numDevices)))
}

func (w *writer) constant(after ...string) string {
	for i := range after {
		after[i] = "^" + strings.TrimSuffix(after[i], ":1")
	}
	return w.add("Const", fmt.Sprintf("value=float[]{%d}", 1+w.r.IntN(3)), after...)
}

func (w *writer) program() string {
	values := []string{w.constant(), w.constant(), w.constant()}
	for range 3 {
		values = append(values, w.compute(values, 2)...)
	}
	for range 3 {
		w.write(fmt.Sprintf("result%d", w.results), "_Retval", fmt.Sprintf("T=float index=%d", w.results), w.pick(values))
		w.results++
	}
	return w.b.String()
}

func (w *writer) pick(values []string) string { return values[w.r.IntN(len(values))] }

// compute adds nodes that run in the same context as values, and returns their outputs. depth
// bounds the nesting of loops.
func (w *writer) compute(values []string, depth int) []string {
	var out []string
	for range 2 + w.r.IntN(3) {
		a, b := w.pick(values), w.pick(values)
		switch k := w.r.IntN(8); {
		case k == 0 && depth > 0:
			out = append(out, w.loop(a, b, depth-1))
		case k == 1:
			out = append(out, w.condition(a, b))
		case k == 2:
			out = append(out, w.constant(a))
		case k == 3:
			out = append(out, w.add("Mul", "T=float", a, w.add("Const", "value=float[]{0.5}", "^"+strings.TrimSuffix(a, ":1"))))
		case k == 4:
			out = append(out, w.add("Identity", "T=float", a, "^"+strings.TrimSuffix(b, ":1")))
		default:
			out = append(out, w.add([]string{"Add", "Sub"}[w.r.IntN(2)], "T=float", a, b))
		}
		values = append(values, out[len(out)-1])
	}
	return out
}

// condition adds a condition a < b whose branches compute different values from a.
func (w *writer) condition(a, b string) string {
	pred := w.add("Less", "T=float", a, b)
	choose := w.add("Switch", "T=float", a, pred)
	no, yes := w.add("Identity", "T=float", choose), w.add("Identity", "T=float", choose+":1")
	no, yes = w.add("Sub", "T=float", no, w.constant(no)), w.add("Add", "T=float", yes, w.constant(yes))
	return w.add("Merge", "T=float N=2", no, yes)
}

// loop adds a loop with at most three iterations that computes a value from a and b. All nodes
// inside depend on the counter, so they are all dead after the last iteration. If a part of the
// loop stayed live, it would wait for the other parts.
func (w *writer) loop(a, b string, depth int) string {
	attrs := fmt.Sprintf("T=float frame_name=\"f%d\" parallel_iterations=%d", w.nodes, 1+w.r.IntN(4))
	id := w.nodes
	next := func(i int) string { return fmt.Sprintf("next%d_%d", id, i) }
	count := w.add("Merge", "T=float N=2", w.add("Enter", attrs, w.add("Const", "value=float[]{0}", "^"+strings.TrimSuffix(a, ":1"))), next(0))
	value := w.add("Merge", "T=float N=2", w.add("Enter", attrs, a), next(1))
	fixed := w.add("Enter", attrs+" is_constant=true", b)
	limit := w.add("Const", fmt.Sprintf("value=float[]{%d}", w.r.IntN(4)), "^"+count)
	cond := w.add("LoopCond", "", w.add("Less", "T=float", count, limit))
	countIn, valueIn := w.add("Switch", "T=float", count, cond), w.add("Switch", "T=float", value, cond)
	counted := w.add("Identity", "T=float", countIn+":1")
	inside := []string{w.add("Identity", "T=float", valueIn+":1"), w.add("Identity", "T=float", fixed, "^"+counted), counted}
	body := w.compute(inside, depth)
	w.write(next(0), "NextIteration", "T=float", w.add("Add", "T=float", counted, w.add("Const", "value=float[]{1}", "^"+counted)))
	w.write(next(1), "NextIteration", "T=float", body[len(body)-1])
	return w.add("Exit", "T=float", valueIn)
}
