package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	_ "github.com/weft-ml/weft/internal/kernels/data"
	_ "github.com/weft-ml/weft/internal/kernels/function"
	_ "github.com/weft-ml/weft/internal/kernels/mathops"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// places are the devices of the cluster for functions.
var places = []string{
	"/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:1",
	"/job:worker/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:1",
}

// functionCluster has two tasks with two devices each, and operation TestPlace(x: float) -> (y:
// float): ten times x plus the index in places of the device that it runs on.
func functionCluster(t *testing.T) *testcluster.Cluster {
	place := testcluster.Op("TestPlace", []string{"x: float"}, []string{"y: float"}, kernel.Stateless(func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar(10*tensor.Value[float32](c.Input(0))+float32(slices.Index(places, c.Device.Name))))
		return nil
	}))
	return testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"ps": 1, "worker": 1}, CPUDevices: 2, Kernels: testcluster.Kernels(place),
	})
}

func openFunctions(t *testing.T, c *testcluster.Cluster, share bool, graph string) *testcluster.Session {
	t.Helper()
	s, err := c.Session(t.Context(), c.Node("worker", 0), graph, &pb.ConfigProto{ShareClusterDevicesInSession: share})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func remoteCall(name, target, input, f string) string {
	return fmt.Sprintf("%[1]s/target = Const() value=string[]{%[2]q}\n%[1]s = RemoteCall(%[1]s/target, %[3]s) Tout=[float] f=@%[4]s device=/job:worker/device:CPU:0\n",
		name, target, input, f)
}

const here = `
func Here(x: float) -> (y: float) {
  y = TestPlace(x)
  return y=y:y:0
}
`

func TestRemoteCall(t *testing.T) {
	graph := here + "one = Const() value=float[]{1}\n"
	var fetches []string
	targets := slices.Concat(places, []string{"/job:ps", "/cpu:1", "/job:worker/task:0"})
	for i, target := range targets {
		graph += remoteCall(fmt.Sprint("c", i), target, "one", "Here")
		fetches = append(fetches, fmt.Sprint("c", i))
	}
	c := functionCluster(t)
	s := openFunctions(t, c, false, graph)
	for range 3 {
		got, err := s.Run(t.Context(), nil, fetches)
		if err != nil {
			t.Fatal(err)
		}
		if want := []float32{10, 11, 12, 13, 10, 13, 12}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if n := testcluster.Count(c.Calls(), "RegisterGraph"); n != 2 {
		t.Errorf("graphs were registered %d times on another task, want once for each of its devices", n)
	}
}

// TestRemoteCallsAtTheSameTime calls one function of another task many times in one step.
func TestRemoteCallsAtTheSameTime(t *testing.T) {
	var graph strings.Builder
	graph.WriteString(here)
	var fetches []string
	for i := range 20 {
		fmt.Fprintf(&graph, "x%d = Const() value=float[]{%d}\n", i, i)
		graph.WriteString(remoteCall(fmt.Sprint("c", i), "/job:ps", fmt.Sprint("x", i), "Here"))
		fetches = append(fetches, fmt.Sprint("c", i))
	}
	s := openFunctions(t, functionCluster(t), false, graph.String())
	got, err := s.Run(t.Context(), nil, fetches)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != float32(10*i) {
			t.Errorf("call %d returned %v", i, v)
		}
	}
}

func TestRemoteCallsThatCannotBe(t *testing.T) {
	for target, want := range map[string]string{
		"garbage":           "Could not parse garbage into a device specification.",
		"":                  "Could not parse  into a device specification.",
		"/job:nope":         "Could not find worker with target: /job:nope/replica:0/task:0",
		"/job:ps/cpu:9":     "/job:ps/replica:0/task:0/device:CPU:9 unknown device.",
		"/job:worker/cpu:9": "/job:worker/replica:0/task:0/device:CPU:9 unknown device.",
	} {
		s := openFunctions(t, functionCluster(t), false, here+"one = Const() value=float[]{1}\n"+remoteCall("c", target, "one", "Here"))
		_, err := s.Run(t.Context(), nil, []string{"c"})
		expect(t, err, status.InvalidArgument, want, "[[{{node c}}]]")
	}
}

const spread = `
func Spread(x: float) -> (y: float) {
  a = TestPlace(x) device=/job:ps/cpu:1
  b = TestPlace(a:y:0) device=/cpu:1
  c = TestPlace(x)
  d = TestAdd(b:y:0, c:y:0) device=/job:ps
  e = TestPlace(d:z:0) device=/cpu:0
  return y=e:y:0
}
one = Const() value=float[]{1}
y = PartitionedCall(one) Tout=[float] f=@Spread _noinline=true device=/job:worker/replica:0/task:0/device:CPU:1
`

// TestFunctionOnSeveralTasks calls a function that is not inlined and has nodes on all devices.
func TestFunctionOnSeveralTasks(t *testing.T) {
	c := functionCluster(t)
	s := openFunctions(t, c, true, spread)
	for range 3 {
		got, err := s.Run(t.Context(), nil, []string{"y"})
		if err != nil {
			t.Fatal(err)
		}
		if want := float32(10*((10*11+3)+13) + 2); got[0] != want {
			t.Errorf("got %v, want %v", got[0], want)
		}
	}
	_, err := openFunctions(t, c, false, spread).Run(t.Context(), nil, []string{"y"})
	expect(t, err, status.InvalidArgument, "Cannot assign a device for operation a", "but available devices are [ /job:worker/replica:0/task:0/device:CPU:0,")
}

// TestFunctionOnSeveralDevices calls such a function within a task: tensors also cross devices in
// loops.
func TestFunctionOnSeveralDevices(t *testing.T) {
	s := openFunctions(t, functionCluster(t), false, `
		func Spread(x: float) -> (y: float) {
		  a = TestPlace(x) device=/cpu:1
		  e = Enter(a:y:0) T=float frame_name="f" is_constant=false parallel_iterations=10 device=/cpu:0
		  m = Merge(e:output:0, n:output:0) T=float N=2 device=/cpu:0
		  limit = Const(^m) value=float[]{1000}
		  p = TestPlace(m:output:0) device=/cpu:1
		  c = Less(p:y:0, limit:output:0) T=float device=/cpu:0
		  l = LoopCond(c:z:0) device=/cpu:0
		  s = Switch(m:output:0, l:output:0) T=float device=/cpu:0
		  b = TestPlace(s:output_true:0) device=/cpu:1
		  n = NextIteration(b:y:0) T=float device=/cpu:0
		  x = Exit(s:output_false:0) T=float device=/cpu:0
		  return y=x:output:0
		}
		one = Const() value=float[]{1}
		y = PartitionedCall(one) Tout=[float] f=@Spread _noinline=true device=/job:worker/replica:0/task:0/device:CPU:0`)
	got, err := s.Run(t.Context(), nil, []string{"y"})
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != 133 {
		t.Errorf("got %v, want 133", got[0])
	}
}

func TestRemoteFunctionFails(t *testing.T) {
	c := functionCluster(t)
	s := openFunctions(t, c, true, `
		func Fails(x: float) -> (y: float) {
		  a = TestFail(x) code=3 message="broken" device=/job:ps
		  b = TestBlock(x) device=/cpu:1
		  y = TestAdd(a:y:0, b:y:0)
		  return y=y:z:0
		}
		one = Const() value=float[]{1}
		y = PartitionedCall(one) Tout=[float] f=@Fails _noinline=true device=/job:worker/replica:0/task:0/device:CPU:0`)
	for range 2 {
		_, err := s.Run(t.Context(), nil, []string{"y"})
		// the receiver of a may be the first to report it
		expect(t, err, status.InvalidArgument, "broken\n\t [[{{node a}}]]")
	}
}

// TestRemoteFunctionIsCancelled checks that the end of a step ends its calls on other tasks.
func TestRemoteFunctionIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := functionCluster(t)
		s := openFunctions(t, c, false, `
			func Waits(x: float) -> (y: float) {
			  y = TestBlock(x)
			  return y=y:y:0
			}
			one = Const() value=float[]{1}
			`+remoteCall("y", "/job:ps", "one", "Waits"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := s.Run(ctx, nil, []string{"y"})
			ended <- err
		}()
		synctest.Wait()
		if n := testcluster.Count(c.Calls(), "RunGraph"); n != 1 {
			t.Fatalf("%d calls of RunGraph, want 1", n)
		}
		cancel()
		expect(t, <-ended, status.Cancelled)
		synctest.Wait()
		if n := testcluster.Count(c.Calls(), "CleanupGraph"); n != 1 {
			t.Errorf("%d calls of CleanupGraph, want 1", n)
		}
	})
}

// TestEndlessRemoteCalls makes two tasks call each other endlessly.
func TestEndlessRemoteCalls(t *testing.T) {
	s := openFunctions(t, functionCluster(t), false, `
		func Ping(x: float) -> (y: float) {
		  target = Const() value=string[]{"/job:worker"}
		  y = RemoteCall(target:output:0, x) Tin=[float] Tout=[float] f=@Pong
		  return y=y:output:0
		}
		func Pong(x: float) -> (y: float) {
		  target = Const() value=string[]{"/job:ps"}
		  y = RemoteCall(target:output:0, x) Tin=[float] Tout=[float] f=@Ping
		  return y=y:output:0
		}
		one = Const() value=float[]{1}
		`+remoteCall("y", "/job:ps", "one", "Ping"))
	_, err := s.Run(t.Context(), nil, []string{"y"})
	expect(t, err, status.ResourceExhausted, "calls of functions on other tasks are under way")
}

// TestIteratorGoesOnInOtherGraphs checks that graphs of a session share an iterator although a
// function makes its dataset.
func TestIteratorGoesOnInOtherGraphs(t *testing.T) {
	const next = "%s = IteratorGetNext(it) output_types=[float] output_shapes=[shape[]]\n"
	graph := `
func Numbers() -> (d: variant) {
  numbers = Const() value=float[3]{1, 2, 3}
  d = TensorSliceDataset(numbers:output:0) Toutput_types=[float] output_shapes=[shape[]]
  return d=d:handle:0
}
it = OneShotIterator() dataset_factory=@Numbers output_types=[float] output_shapes=[shape[]]
` + fmt.Sprintf(next, "a") + fmt.Sprintf(next, "b")
	s := openFunctions(t, functionCluster(t), false, graph)
	for i, fetch := range []string{"a:0", "b:0", "c:0"} {
		if fetch == "c:0" {
			if err := s.Extend(t.Context(), graph+fmt.Sprintf(next, "c"), 3); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Run(t.Context(), nil, []string{fetch}); err != nil || got[0] != float32(i+1) {
			t.Errorf("%s: %v, %v; want %d", fetch, got, err, i+1)
		}
	}
}
