package partition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/loopframe"
	"github.com/weft-ml/weft/internal/test/graphtext"
)

func testOps(t testing.TB) graphtext.Ops {
	t.Helper()
	ops, err := graphtext.ParseOps(`
		Const() -> (output: dtype) [value: tensor; dtype: type]
		Identity(input: T) -> (output: T) [T: type]
		NoOp()
		Cast(x: SrcT) -> (y: DstT) [SrcT: type; DstT: type; Truncate: bool = false]
		FloatInput() -> (o: float)
		BoolInput() -> (o: bool)
		Combine(a: float, b: float) -> (o: float)
		Add(x: T, y: T) -> (z: T) [T: type]
		Mul(x: T, y: T) -> (z: T) [T: type]
		Less(x: T, y: T) -> (z: bool) [T: type]
		VariableV2() -> (ref: Ref(dtype)) [shape: shape; dtype: type] stateful
		VarHandleOp() -> (resource: resource) [shape: shape; dtype: type] stateful
		ReadVariableOp(resource: resource) -> (value: dtype) [dtype: type] stateful
		AssignVariableOp(resource: resource, value: dtype) [dtype: type] stateful
		Assign(ref: Ref(T), value: T) -> (output_ref: Ref(T)) [T: type]
		Switch(data: T, pred: bool) -> (output_false: T, output_true: T) [T: type]
		Merge(inputs: N * T) -> (output: T, value_index: int32) [T: type; N: int >= 1]
		Enter(data: T) -> (output: T) [T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10]
		RefEnter(data: Ref(T)) -> (output: Ref(T)) [T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10]
		Exit(data: T) -> (output: T) [T: type]
		NextIteration(data: T) -> (output: T) [T: type]
		LoopCond(input: bool) -> (output: bool)
		PartitionedCall(args: Tin) -> (output: Tout) [Tin: list(type); Tout: list(type); f: func]
		Case(branch_index: int32, input: Tin) -> (output: Tout) [Tin: list(type); Tout: list(type); branches: list(func)]
		_Send(tensor: T) [T: type; tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string; client_terminated: bool = false] stateful
		_Recv() -> (tensor: tensor_type) [tensor_type: type; tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string; client_terminated: bool = false] stateful distributed
	`)
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// onDevices assigns nodes to the device that their name starts with: "A1" and "_A" are on A, as
// with "assigned=A". A node that is assigned to a short name is assigned to the full name.
func onDevices(g *graph.Graph) {
	for n := range g.Nodes() {
		name := n.Assigned
		if name == "" {
			name = strings.ToLower(strings.TrimLeft(n.Name, "_")[:1])
		}
		task, id, _ := strings.Cut(name, ":")
		n.Assigned = fmt.Sprintf("/job:%s/replica:0/task:0/device:CPU:%s", task, id+"0"[min(len(id), 1):])
	}
}

func incarnation(name string) uint64 {
	spec, err := device.Parse(name)
	if err != nil {
		panic(err)
	}
	return uint64(100 + int(spec.Job[0]-'a')*10 + spec.ID)
}

// namer numbers new names like a session, with a separate suffix per level.
func namer(suffix string) func(string) string {
	n := -1
	return func(prefix string) string {
		n++
		return fmt.Sprintf("%s%s%d", prefix, suffix, n)
	}
}

func byTask(n *graph.Node) string {
	spec, err := device.Parse(n.Assigned)
	if err != nil {
		panic(err)
	}
	return spec.TaskName()
}

func byDevice(n *graph.Node) string { return n.Assigned }

func TestScripts(t *testing.T) {
	ops := testOps(t)
	graphtext.RunScripts(t, "testdata/*.txt", func(t *testing.T, c *graphtext.Case) string {
		g, err := graphtext.Parse(ops, c.Input)
		if err != nil {
			t.Fatal(err)
		}
		onDevices(g)
		before := graphtext.Print(g)
		o := Options{
			Location: byDevice, NewName: namer("_S"), Incarnation: incarnation, ControlFlow: true, BFloat16: c.Has("bfloat16"),
		}
		if c.Has("bytask") {
			o.Location = byTask
		}
		parts, err := Split(g, o)
		if err != nil {
			return "error: " + err.Error()
		}
		if after := graphtext.Print(g); after != before {
			t.Errorf("the graph was changed to\n%s", after)
		}
		if c.Has("again") { // as a worker splits its part
			parts = splitAgain(t, parts)
		}
		checkTransfers(t, parts)
		checkFrames(t, parts)
		return printParts(parts)
	})
}

func splitAgain(t *testing.T, parts map[string]*graph.Graph) map[string]*graph.Graph {
	t.Helper()
	out := map[string]*graph.Graph{}
	newName := namer("_G")
	for _, at := range slices.Sorted(maps.Keys(parts)) {
		inner, err := Split(parts[at], Options{Location: byDevice, NewName: newName, Incarnation: incarnation})
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(out, inner)
	}
	return out
}

// printParts prints the parts without the attributes that are the same in every transfer.
func printParts(parts map[string]*graph.Graph) string {
	var b strings.Builder
	for _, at := range slices.Sorted(maps.Keys(parts)) {
		fmt.Fprintf(&b, "--- %s\n", strings.NewReplacer("/job:", "", "/replica:0/task:0", "", "/device:CPU:0", "", "/device:CPU", "").Replace(at))
		for line := range strings.Lines(graphtext.Print(parts[at])) {
			line, _, _ = strings.Cut(line, " assigned=")
			line = strings.NewReplacer("/job:", "", "/replica:0/task:0/device:CPU:0", "", "/replica:0/task:0/device:CPU", "",
				"send_device_incarnation", "incarnation").Replace(line)
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return b.String()
}

// checkFrames checks that every receive runs in the frame in which its tensor is sent.
func checkFrames(t *testing.T, parts map[string]*graph.Graph) {
	t.Helper()
	frame := map[string]string{} // by transfer
	for _, op := range []string{"_Send", "_Recv"} {
		for _, part := range parts {
			frames, err := loopframe.Find(part)
			if err != nil {
				t.Fatal(err)
			}
			for n := range part.Nodes() {
				if n.Op.Name != op || n.Attrs.Bool("client_terminated") {
					continue
				}
				key := n.Attrs.String("send_device") + n.Attrs.String("recv_device") + n.Attrs.String("tensor_name")
				in := frames.RunsIn[n.ID].Name
				if want, sent := frame[key]; sent && in != want {
					t.Errorf("%s is sent in frame %q and received in %q", n.Name, want, in)
				}
				frame[key] = in
			}
		}
	}
}

// checkTransfers checks that every send has one receive with the same key, and that both have the
// right incarnation.
func checkTransfers(t *testing.T, parts map[string]*graph.Graph) {
	t.Helper()
	sends, recvs := map[string]int{}, map[string]int{}
	for at, part := range parts {
		for n := range part.Nodes() {
			own := map[string]string{"_Send": "send_device", "_Recv": "recv_device"}[n.Op.Name]
			if own == "" || n.Attrs.Bool("client_terminated") {
				continue
			}
			if n.Attrs.String(own) != n.Assigned {
				t.Errorf("%s is on %s, but its key says %s", n.Name, n.Assigned, n.Attrs.String(own))
			}
			if got, want := n.Attrs.Int("send_device_incarnation"), incarnation(n.Attrs.String("send_device")); got != int(want) {
				t.Errorf("%s in %s has incarnation %d, want %d", n.Name, at, got, want)
			}
			key := strings.Join([]string{n.Attrs.String("send_device"), n.Attrs.String("recv_device"), n.Attrs.String("tensor_name")}, ";")
			if n.Op.Name == "_Send" {
				sends[key]++
			} else {
				recvs[key]++
			}
		}
	}
	for key, n := range sends {
		if n != 1 || recvs[key] != 1 {
			t.Errorf("%s is sent %d times and received %d times", key, n, recvs[key])
		}
	}
	if len(recvs) != len(sends) {
		t.Errorf("%d keys are received, %d sent", len(recvs), len(sends))
	}
}

// TestEveryPartIsComplete checks that every node is in exactly one part, with all its inputs.
func TestEveryPartIsComplete(t *testing.T) {
	g, err := graphtext.Parse(testOps(t), "A1 = FloatInput()\nB1 = Combine(A1, A1, ^A2)\nA2 = NoOp()\nB2 = Combine(B1, A1)\nA3 = Combine(B2, B1)")
	if err != nil {
		t.Fatal(err)
	}
	onDevices(g)
	parts, err := Split(g, Options{Location: byDevice, NewName: namer("/_"), Incarnation: incarnation, ControlFlow: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for at, part := range parts {
		for n := range part.Nodes() {
			if seen[n.Name] {
				t.Errorf("%s is in two parts", n.Name)
			}
			seen[n.Name] = true
			if n.Assigned != at {
				t.Errorf("%s of %s is in part %s", n.Name, n.Assigned, at)
			}
			for i, in := range n.Inputs() {
				if in.Node == nil {
					t.Errorf("input %d of %s is open", i, n.Name)
				}
			}
		}
		if _, err := part.InOrder(); err != nil {
			t.Error(err)
		}
	}
	for n := range g.Nodes() {
		if !seen[n.Name] {
			t.Errorf("%s is in no part", n.Name)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	var text strings.Builder
	text.WriteString("A = FloatInput()\n")
	for i := range 10000 {
		fmt.Fprintf(&text, "%c%d = Combine(A, A)\n", 'A'+i%4, i)
	}
	g, err := graphtext.Parse(testOps(b), text.String())
	if err != nil {
		b.Fatal(err)
	}
	onDevices(g)
	for b.Loop() {
		if _, err := Split(g, Options{Location: byDevice, NewName: namer("_S"), Incarnation: incarnation, ControlFlow: true}); err != nil {
			b.Fatal(err)
		}
	}
}
