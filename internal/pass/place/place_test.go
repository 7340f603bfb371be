package place

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// testKernels are operations with the device types that have kernels for them. "CPU+2" is a kernel
// of priority 2.
type testKernels struct {
	graphtext.Ops
	impls map[string][]kernel.Impl
}

func (k *testKernels) Kernels(op string) []kernel.Impl { return k.impls[op] }

func newTestKernels(t testing.TB) *testKernels {
	t.Helper()
	k := &testKernels{impls: map[string][]kernel.Impl{}}
	var defs strings.Builder
	for line := range strings.Lines(`
		Const() -> (output: dtype) [value: tensor; dtype: type] : CPU GPU
		Identity(input: T) -> (output: T) [T: type] : CPU GPU
		NoOp() : CPU GPU
		Add(x: T, y: T) -> (z: T) [T: type] : CPU GPU
		Mul(x: T, y: T) -> (z: T) [T: type] : CPU GPU
		Neg(x: T) -> (y: T) [T: type] : CPU
		Cast(x: SrcT) -> (y: DstT) [SrcT: type; DstT: type] : CPU
		Shape(input: T) -> (output: out_type) [T: type; out_type: type = int32] : CPU GPU
		_Arg() -> (output: T) [T: type; index: int = 0] stateful : CPU GPU
		_Retval(input: T) [T: type; index: int = 0] stateful : CPU GPU
		PartitionedCall(args: Tin) -> (output: Tout) [Tin: list(type); Tout: list(type); f: func] : CPU GPU
		RefSelect(index: int32, a: Ref(T), b: Ref(T)) -> (output: Ref(T)) [T: type] : CPU GPU
		VariableV2() -> (ref: Ref(dtype)) [shape: shape; dtype: type] stateful : CPU
		VariableCPU() -> (o: Ref(float)) stateful : CPU
		VariableGPU() -> (o: Ref(float)) stateful : GPU
		VariableNoKernels() -> (o: Ref(float)) [shape: shape = []] stateful :
		TestVariable() -> (o: Ref(float)) stateful : CPU GPU
		TestAdd(a: float, b: float) -> (o: float) : CPU GPU
		TestRelu(i: float) -> (o: float) : CPU GPU
		ReluCPU(i: float) -> (o: float) : CPU
		ReluGPU(i: float) -> (o: float) : GPU
		TestAssign(i: Ref(float), v: float) : CPU GPU
		AssignCPU(i: Ref(float), v: float) : CPU
		AssignGPU(i: Ref(float), v: float) : GPU
		TestInput() -> (a: float, b: float) : CPU
		TestCPUGPUOutput() -> (a: float) : CPU GPU
		TestGPUOutput() -> (a: float) : GPU
		TestDevice() -> (a: float, b: float) : GPU
		TestDeviceEnforce(a: Ref(float)) -> (b: float) : CPU GPU
		TestDatasetOp(a: float) -> (b: float) : CPU+2 GPU+1
		TestXlaOp(a: float) -> (b: float) : XLA_CPU+2 CPU+1
		CreateDatasetCPU() -> (o: resource) : CPU
		CreateDatasetGPU() -> (o: resource) : GPU
		CreateDatasetSP() -> (o: resource) : CPU+2 GPU+1
		CreateDatasetRP() -> (o: resource) : CPU+1 GPU+2
		CreateDatasetNP() -> (o: resource) : CPU GPU
		IteratorNP(i: resource) -> (o: float) : CPU GPU
		IteratorSP(i: resource) -> (o: float) : CPU+2 GPU+1
		IteratorRP(i: resource) -> (o: float) : CPU+1 GPU+2
		IteratorGPU(i: resource) -> (o: float) : GPU
		TestHandleVariable() -> (o: resource) stateful : CPU GPU
		HandleVariableCPU() -> (o: resource) stateful : CPU
		HandleVariableGPU() -> (o: resource) stateful : GPU
		TestHandleAssign(i: resource, v: float) : CPU GPU
		HandleAssignCPU(i: resource, v: float) : CPU
		HandleAssignGPU(i: resource, v: float) : GPU
		TestTwoHandlesIn(i: resource, j: resource) : CPU GPU
		RangeDataset(start: int64) -> (handle: variant) : CPU GPU
		TakeDatasetV2(input: variant) -> (handle: variant) : CPU GPU
		MapDataset(input: variant, other: resource) -> (handle: variant) : CPU GPU
		ListStack(list: variant) -> (t: float) : CPU GPU
		MatMul(a: T, b: T) -> (product: T) [T: type] : CPU/float,double
	`) {
		def, devices, _ := strings.Cut(strings.TrimSpace(line), " :")
		name, _, _ := strings.Cut(def, "(")
		defs.WriteString(def + "\n")
		for d := range strings.FieldsSeq(devices) {
			impl := kernel.Impl{}
			impl.Device, _, _ = strings.Cut(d, "+")
			if typ, types, ok := strings.Cut(d, "/"); ok {
				constraint := kernel.Constraint{Attr: "T"}
				for s := range strings.SplitSeq(types, ",") {
					dtype, _ := tensor.ParseDType(s)
					constraint.Types = append(constraint.Types, dtype)
				}
				impl.Device, impl.Types = typ, []kernel.Constraint{constraint}
			}
			if _, err := fmt.Sscanf(d, impl.Device+"+%d", &impl.Priority); err != nil {
				impl.Priority = 0
			}
			k.impls[name] = append(k.impls[name], impl)
		}
	}
	ops, err := graphtext.ParseOps(defs.String())
	if err != nil {
		t.Fatal(err)
	}
	k.Ops = ops
	return k
}

// cluster returns a set of devices by the name that scripts use.
func cluster(name string) (devices []string, client string) {
	add := func(task, typ string, ids ...int) {
		for _, id := range ids {
			devices = append(devices, fmt.Sprintf("/job:%s/device:%s:%d", strings.Replace(task, "/", "/replica:0/", 1), typ, id))
		}
	}
	switch name {
	case "none":
	case "one": // ten devices of each type on one task
		for i := range 10 {
			add("a/task:0", "CPU", i)
			add("a/task:0", "GPU", 9-i)
		}
		add("a/task:0", "XLA_CPU", 0)
	case "small": // one device of each type on one task
		add("a/task:0", "CPU", 0)
		add("a/task:0", "GPU", 0)
	case "cpu":
		add("a/task:0", "CPU", 0)
	case "mixed": // a GPU on one task, a CPU on the other
		add("b/task:0", "GPU", 0)
		add("b/task:1", "CPU", 0)
	case "tasks": // the client is on the first of two tasks
		add("b/task:0", "CPU", 0)
		add("b/task:0", "GPU", 0)
		add("b/task:1", "CPU", 0)
		add("b/task:1", "GPU", 0)
		client = "/job:b/replica:0/task:0/device:CPU:0"
	default: // two workers and a parameter server, the client on worker 0
		add("ps/task:0", "CPU", 0, 1)
		add("worker/task:1", "CPU", 0, 1)
		add("worker/task:0", "CPU", 0, 1)
		client = "/job:worker/replica:0/task:0/device:CPU:0"
	}
	return devices, client
}

func TestScripts(t *testing.T) {
	kernels := newTestKernels(t)
	graphtext.RunScripts(t, "testdata/*.txt", func(t *testing.T, c *graphtext.Case) string {
		g, err := graphtext.Parse(kernels, c.Input)
		if err != nil {
			t.Fatal(err)
		}
		if c.Has("again") {
			KeepState(g, g.Copy())
		}
		var out strings.Builder
		o := Options{Kernels: kernels, Soft: c.Has("soft")}
		o.Devices, o.Client = cluster(c.Arg("on"))
		if c.Has("log") {
			o.Log = func(line string) { out.WriteString("log: " + line + "\n") }
			o.Warn = func(line string) { out.WriteString("warning: " + line + "\n") }
		}
		if err := Place(g, o); err != nil {
			return out.String() + "error: " + err.Error()
		}
		for n := range g.Nodes() {
			short := strings.NewReplacer("/replica:0", "", "/device:", " ").Replace(n.Assigned)
			fmt.Fprintf(&out, "%s %s\n", n.Name, short)
		}
		return out.String()
	})
}

// TestManyGroups joins ninety variables and their assignments to a few groups, by colocation of
// both variables and assignments.
func TestManyGroups(t *testing.T) {
	var text strings.Builder
	text.WriteString("in = TestInput()\n")
	for i := range 100 {
		varClass, assignClass := "", ""
		if i >= 10 {
			varClass, assignClass = fmt.Sprintf(` _class=["loc:@var_%d"]`, i%6), fmt.Sprintf(` _class=["loc:@assign_%d"]`, i%3)
		}
		fmt.Fprintf(&text, "var_%d = TestVariable()%s\nassign_%d = TestAssign(var_%d, in)%s\n", i, varClass, i, i, assignClass)
	}
	kernels := newTestKernels(t)
	g, err := graphtext.Parse(kernels, text.String())
	if err != nil {
		t.Fatal(err)
	}
	devices, _ := cluster("one")
	if err := Place(g, Options{Devices: devices, Kernels: kernels}); err != nil {
		t.Fatal(err)
	}
	at := func(format string, i int) string { return g.Node(fmt.Sprintf(format, i)).Assigned }
	for i := range 100 {
		if at("var_%d", i) != at("assign_%d", i) || i >= 10 && (at("var_%d", i) != at("var_%d", i%6) || at("assign_%d", i) != at("assign_%d", i%3)) {
			t.Errorf("var_%d is on %s, assign_%d on %s", i, at("var_%d", i), i, at("assign_%d", i))
		}
	}
}

// TestPlacementDoesNotDependOnTheOrderOfDevices lists the same devices in another order.
func TestPlacementDoesNotDependOnTheOrderOfDevices(t *testing.T) {
	kernels := newTestKernels(t)
	place := func(devices []string) string {
		g, err := graphtext.Parse(kernels, "a = TestInput()\nb = TestRelu(a)\nc = ReluCPU(b) device=/device:*:3\nd = TestVariable()")
		if err != nil {
			t.Fatal(err)
		}
		if err := Place(g, Options{Devices: devices, Kernels: kernels}); err != nil {
			t.Fatal(err)
		}
		return graphtext.Print(g)
	}
	devices, _ := cluster("one")
	want := place(devices)
	slices.Reverse(devices)
	if got := place(devices); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func BenchmarkPlace(b *testing.B) {
	kernels := newTestKernels(b)
	var text strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&text, "v%d = VariableV2() shape=[] dtype=float device=/job:ps/task:%d\nn%d = Neg(v%d)\n", i, i%10, i, i)
	}
	var devices []string
	for i := range 10 {
		devices = append(devices, fmt.Sprintf("/job:ps/replica:0/task:%d/device:CPU:0", i), fmt.Sprintf("/job:worker/replica:0/task:%d/device:CPU:0", i))
	}
	g, err := graphtext.Parse(kernels, text.String())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for n := range g.Nodes() {
			n.Assigned = ""
		}
		if err := Place(g, Options{Devices: devices, Client: devices[1], Kernels: kernels}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	g := graph.New(graphtext.Ops{})
	for _, o := range []Options{{Devices: []string{"/job:a"}}, {Devices: []string{"cpu"}}, {Devices: []string{"/job:a/replica:0/task:0/cpu:0"}, Client: "x"}} {
		o.Kernels = &testKernels{}
		if err := Place(g, o); err == nil {
			t.Errorf("%v: no error", o)
		}
	}
}

// TestRegistryImplementsKernels checks that the kernel registry can be used for placement.
func TestRegistryImplementsKernels(t *testing.T) {
	r := kernel.NewRegistry()
	r.Register(kernel.Op{Def: opdef.Def{Name: "NoOp", Doc: "Does nothing."}, Kernels: kernel.Any(nil)})
	g := graph.New(r)
	n, err := g.Add("n", "NoOp", nil)
	if err != nil {
		t.Fatal(err)
	}
	const cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
	if err := Place(g, Options{Devices: []string{cpu}, Client: cpu, Kernels: r}); err != nil || n.Assigned != cpu {
		t.Errorf("on %q, %v", n.Assigned, err)
	}
}
