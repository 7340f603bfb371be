package gputest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/test/gputest"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// listProgram uses every operation on tensor lists, with the i-th operation on the i-th place in
// turn. x is a matrix of three rows and two columns.
func listProgram(_ []string, places []*op.Scope, x op.Output) []op.Output {
	next := 0
	on := func() *op.Scope {
		next++
		return places[next%len(places)]
	}
	i := func(v ...int32) op.Output { return op.Const(places[0], v) }
	at := func(v int32) op.Output { return op.Const(places[0], v) }
	f32 := tensor.Float32
	host := places[0].WithDevice("/cpu:0") // a device has no Pack of variants
	row := op.Reshape(on(), op.Slice(on(), x, i(1, 0), i(1, 2)), i(2))

	rows := op.TensorListFromTensor(on(), x, i(2))
	set := op.TensorListSetItem(on(), rows, at(0), op.Neg(on(), row))
	grown := op.TensorListPushBack(on(), op.TensorListPushBack(on(), set, row), op.Square(on(), row))
	shorter, last := op.TensorListPopBack(on(), grown, i(2), f32)
	scattered := op.TensorListScatterIntoExistingList(on(), shorter, op.Exp(on(), x), i(3, 0, 5))
	reserved := op.TensorListReserve(on(), i(2), at(3), f32)
	one := op.TensorListSetItem(on(), reserved, at(1), row)
	missing := op.TensorListGetItem(on(), one, at(0), i(2), f32)
	joined := op.TensorListConcatLists(on(), one, op.TensorListScatterV2(on(), x, i(4, 1, 0), i(2), at(-1)), f32)
	resized := op.TensorListResize(on(), op.TensorListScatter(on(), x, i(2, 0, 1), i(2)), at(2))
	split := op.TensorListSplit(on(), x, i(-1, 2), op.Const(places[0], []int64{1, 2}))
	whole, lengths := op.TensorListConcatV2(on(), split, i(-1, 2), op.Const(places[0], []int64{}), f32)
	also, _ := op.TensorListConcat(on(), split, f32)
	batch := op.TensorListPushBackBatch(on(), op.Pack(host, []op.Output{rows, one, rows}), x)
	lists := op.Unpack(host, batch, 3)

	// lists of zeros, of sums, and of lists
	zeros := op.ZerosLike(on(), grown)
	sums := op.AddN(on(), []op.Output{set, rows, op.ZerosLike(on(), set)})
	nested := op.TensorListPushBack(on(), op.EmptyTensorList(on(), i(), at(-1), tensor.Variant), set)
	nested = op.TensorListPushBack(on(), op.TensorListPushBack(on(), nested, rows), rows)
	nested = op.AddN(on(), []op.Output{nested, op.ZerosLike(on(), nested), nested})
	_, inner := op.TensorListPopBack(on(), nested, i(), tensor.Variant)

	stack := func(list op.Output) op.Output { return op.TensorListStack(on(), list, i(2), f32) }
	return []op.Output{
		op.TensorListGetItem(on(), set, at(0), i(2), f32), stack(grown), last, stack(shorter), stack(scattered), missing, stack(one),
		stack(joined), stack(resized), whole, lengths, also, stack(lists[0]), stack(lists[1]), stack(zeros), stack(sums), stack(inner),
		op.TensorListGather(on(), grown, i(4, 1, 0), i(2), f32), op.TensorListLength(on(), grown),
		op.TensorListElementShape(on(), grown, tensor.Int32),
	}
}

// listDetours returns the number of detours of operations on lists.
func listDetours() (n int64) {
	for name, count := range device.Detours() {
		if strings.Contains(name, "TensorList") || name == "AddN" || name == "ZerosLike" {
			n += count
		}
	}
	return n
}

// runLists runs a program with the devices in turn, and returns what it fetches.
func runLists(
	t *testing.T, target string, x tensor.Tensor, names []string, program func(names []string, places []*op.Scope, x op.Output) []op.Output,
) []tensor.Tensor {
	t.Helper()
	s := op.NewScope()
	var places []*op.Scope
	for _, name := range names {
		places = append(places, s.WithDevice(name))
	}
	in := op.Placeholder(places[0], tensor.Float32)
	fetches := program(names, places, in)
	session := openAt(t, target, s)
	before := listDetours()
	var out []tensor.Tensor
	for range 3 {
		var err error
		if out, err = session.Run(t.Context(), weft.Feeds{in: x}, fetches, nil); err != nil {
			t.Fatalf("%v: %v", names, err)
		}
	}
	if n := listDetours() - before; n > 0 {
		t.Errorf("%v: %d detours of %v", names, n, device.Detours())
	}
	return out
}

func compareLists(t *testing.T, what string, got, want []tensor.Tensor) {
	t.Helper()
	for i := range want {
		sameNumbers(t, fmt.Sprintf("%s: output %d", what, i), &got[i], &want[i])
	}
}

// listPlaces are the devices on which the operations of a program are, in turn.
var listPlaces = [][]string{
	{"/cpu:0"}, {"/gpu:0"}, {"/gpu:1"}, {"/gpu:0", "/cpu:0"}, {"/gpu:0", "/gpu:1"}, {"/gpu:0", "/cpu:0", "/gpu:1"},
}

// TestLists checks that tensor lists keep their elements in the memory of the device, and that
// lists which move between devices take their elements along.
func TestLists(t *testing.T) {
	x := matrix(t, 3, 2, 1, 2, 3, 4, 5, 6)
	var want []tensor.Tensor
	for _, names := range listPlaces {
		got := runLists(t, "local", x, names, listProgram)
		if want == nil {
			want = got
		}
		compareLists(t, fmt.Sprint(names), got, want)
	}
}

// TestListsOfTasks moves lists between the devices of three tasks.
func TestListsOfTasks(t *testing.T) {
	servers := startCluster(t)
	x := matrix(t, 3, 2, 1, 2, 3, 4, 5, 6)
	want := runLists(t, "local", x, []string{"/cpu:0"}, listProgram)
	for _, names := range [][]string{{workerGPUs[0], workerGPUs[2]}, {workerGPUs[1], "/job:ps/task:0/cpu:0", workerGPUs[3]}} {
		compareLists(t, fmt.Sprint(names), runLists(t, servers[1].Target(), x, names, listProgram), want)
	}
}

// TestListGradients differentiates a recurrence whose inputs and states are in lists.
func TestListGradients(t *testing.T) {
	program := func(_ []string, places []*op.Scope, x op.Output) []op.Output {
		first := places[0]
		i := func(v ...int32) op.Output { return op.Const(first, v) }
		rows := op.TensorListFromTensor(first, x, i(2))
		states := op.TensorListReserve(first, i(2), op.Const(first, int32(3)), tensor.Float32)
		h := op.TensorListGetItem(first, rows, op.Const(first, int32(2)), i(2), tensor.Float32)
		for n := range int32(3) {
			s := places[int(n)%len(places)]
			item := op.TensorListGetItem(s, rows, op.Const(s, n), i(2), tensor.Float32)
			h = op.Tanh(s, op.Add(s, op.Mul(s, h, op.Const(s, []float32{.5, -.7})), item))
			states = op.TensorListSetItem(s, states, op.Const(s, n), h)
		}
		y := op.TensorListStack(first, states, i(2), tensor.Float32)
		grads := gradients.Compute(first, []op.Output{op.Square(first, y), h}, []op.Output{x})
		return []op.Output{y, grads[0].Dense}
	}
	x := matrix(t, 3, 2, .1, .2, -.3, .4, .5, -.6)
	var want []tensor.Tensor
	for _, names := range listPlaces {
		got := runLists(t, "local", x, names, program)
		if want == nil {
			want = got
		}
		compareLists(t, fmt.Sprint(names), got, want)
	}
}

// TestListsInLoops builds lists in a loop whose iterations use several devices.
func TestListsInLoops(t *testing.T) {
	program := func(names []string, places []*op.Scope, x op.Output) []op.Output {
		first := places[0]
		at := func(v int32) op.Output { return op.Const(first, v) }
		rows := op.TensorListFromTensor(first, x, op.Const(first, []int32{2}))
		states := op.TensorListReserve(first, op.Const(first, []int32{2}), at(3), tensor.Float32)
		h := op.Mul(first, op.Reshape(first, op.Slice(first, x, op.Const(first, []int32{0, 0}), op.Const(first, []int32{1, 2})),
			op.Const(first, []int32{2})), op.Const(first, []float32{.1, .2}))
		out := op.WhileLoop(first, []op.Output{at(0), h, states},
			func(s *op.Scope, v []op.Output) op.Output { return op.Less(s, v[0], op.Const(s, int32(3))) },
			func(s *op.Scope, v []op.Output) []op.Output {
				there := s.WithDevice(names[len(names)-1])
				item := op.TensorListGetItem(s, rows, v[0], op.Const(s, []int32{2}), tensor.Float32)
				h := op.Tanh(there, op.Add(there, op.Mul(there, v[1], op.Const(s, []float32{.5, -.7})), item))
				return []op.Output{op.Add(s, v[0], op.Const(s, int32(1))), h, op.TensorListSetItem(there, v[2], v[0], h)}
			})
		y := op.TensorListStack(first, out[2], op.Const(first, []int32{2}), tensor.Float32)
		return []op.Output{y, out[1]}
	}
	x := matrix(t, 3, 2, .1, .2, -.3, .4, .5, -.6)
	var want []tensor.Tensor
	for _, names := range listPlaces {
		got := runLists(t, "local", x, names, program)
		if want == nil {
			want = got
		}
		compareLists(t, fmt.Sprint(names), got, want)
	}
}

// TestListsInFunctions computes a loop and its gradient as Keras does for recurrent layers: the
// states of the iterations are in a list, which the loop of the gradient pops.
func TestListsInFunctions(t *testing.T) {
	const program = `
func Below(i: int32, n: int32, h: float, w: float, list: variant) -> (b: bool) {
  b = Less(i, n) T=int32
  return b=b:z:0
}
func Next(i: int32, n: int32, h: float, w: float, list: variant) -> (j: int32, m: int32, k: float, v: float, more: variant) {
  one = Const() value=int32[]{1}
  j = AddV2(i, one:output:0) T=int32
  p = Mul(h, w) T=float
  k = Tanh(p:z:0) T=float
  more = TensorListPushBack(list, h) element_dtype=float
  return j=j:z:0 m=n k=k:y:0 v=w more=more:output_handle:0
}
func Back(i: int32, n: int32, g: float, d: float, w: float, list: variant) -> (j: int32, m: int32, f: float, e: float, v: float, less: variant) {
  one = Const() value=int32[]{1}
  j = AddV2(i, one:output:0) T=int32
  shape = Const() value=int32[1]{3}
  pop = TensorListPopBack(list, shape:output:0) element_dtype=float
  p = Mul(pop:tensor:0, w) T=float
  y = Tanh(p:z:0) T=float
  q = TanhGrad(y:y:0, g) T=float
  f = Mul(q:z:0, w) T=float
  r = Mul(q:z:0, pop:tensor:0) T=float
  e = AddV2(d, r:z:0) T=float
  return j=j:z:0 m=n f=f:z:0 e=e:z:0 v=w less=pop:output_handle:0
}
func Above(i: int32, n: int32, g: float, d: float, w: float, list: variant) -> (b: bool) {
  b = Less(i, n) T=int32
  return b=b:z:0
}
zero = Const() value=int32[]{0} device=%[1]s
n = Const() value=int32[]{20} device=%[1]s
x = Const() value=float[3]{1,2,3} device=%[1]s
x1 = Identity(x) T=float device=%[1]s
w = Const() value=float[3]{0.9,1.1,-1.2} device=%[1]s
shape = Const() value=int32[1]{3} device=%[1]s
any = Const() value=int32[]{-1} device=%[1]s
list = EmptyTensorList(shape, any) element_dtype=float shape_type=int32 device=%[1]s
loop = While(zero, n, x1, w, list) T=[int32,int32,float,float,variant] cond=@Below body=@Next %[3]s device=%[1]s
g = OnesLike(x) T=float device=%[2]s
d = ZerosLike(x) T=float device=%[2]s
back = While(zero, n, g, d, w, loop:4) T=[int32,int32,float,float,float,variant] cond=@Above body=@Back %[3]s device=%[2]s
h = Identity(loop:2) T=float device=%[1]s
dx = Identity(back:2) T=float device=%[2]s
dw = Identity(back:3) T=float device=%[2]s
size = TensorListLength(back:5) device=%[2]s
`
	var want []tensor.Tensor
	for _, lowered := range []string{"_lower_using_switch_merge=true", ""} {
		for _, names := range [][2]string{
			{"/cpu:0", "/cpu:0"}, {"/gpu:0", "/gpu:0"}, {"/gpu:0", "/gpu:1"}, {"/gpu:0", "/cpu:0"}, {"/cpu:0", "/gpu:1"},
		} {
			g, err := graphtext.Parse(kernel.Default, fmt.Sprintf(program, names[0], names[1], lowered))
			if err != nil {
				t.Fatal(err)
			}
			session, err := weft.NewSession("local", g)
			if err != nil {
				t.Fatal(err)
			}
			before := listDetours()
			var fetches []op.Output
			for _, name := range []string{"h", "dx", "dw", "size"} {
				fetches = append(fetches, g.Node(name).Out(0))
			}
			out, err := session.Run(t.Context(), nil, fetches, nil)
			if err != nil {
				t.Fatalf("%v %s: %v", names, lowered, err)
			}
			if n := listDetours() - before; n > 0 {
				t.Errorf("%v %s: %d detours of %v", names, lowered, n, device.Detours())
			}
			if want == nil {
				want = out
				if tensor.Value[int32](&out[3]) != 0 {
					t.Errorf("the list has %v elements at the end", out[3])
				}
			}
			compareLists(t, fmt.Sprintf("%v %s", names, lowered), out, want)
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestListMemory makes lists that have more memory than the device, one after the other. The
// garbage collector frees them.
func TestListMemory(t *testing.T) {
	s := op.NewScope()
	on := s.WithDevice("/gpu:0")
	at := func(v ...int32) op.Output { return op.Const(on, v) }
	x := op.Placeholder(on, tensor.Float32)
	list := op.TensorListReserve(on, at(-1), op.Const(on, int32(8)), tensor.Float32)
	for i := range int32(8) {
		list = op.TensorListSetItem(on, list, op.Const(on, i), op.Mul(on, x, op.Const(on, float32(i))))
	}
	sum := op.Sum(on, op.TensorListStack(on, list, at(-1), tensor.Float32), at(0, 1))
	session := open(t, s)
	ones := make([]float32, 1<<18) // 1 MiB
	for i := range ones {
		ones[i] = 1
	}
	for range 3 * gputest.Memory / (8 << 20) {
		out, err := session.Run(t.Context(), weft.Feeds{x: tensor.Vector(ones...)}, []op.Output{sum}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v := tensor.Value[float32](&out[0]); v != 28<<18 {
			t.Fatalf("the sum is %v, want %v", v, 28<<18)
		}
	}
}
